//! Copies the command's standard output on its way, byte for byte, to read results in it.
//!
//! The copying is done by tee(1), a process of its own, so that the command goes on undisturbed
//! whatever becomes of cil-trace. The copy is a file without a name, so that it leaves no trace.

use crate::signals::Blocked;
use anyhow::{Context as _, Result};
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionread};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How much of the output's end is read; the results come last.
const LIMIT: u64 = 16 << 20;
/// How long tee may take to write what it has, after the command's end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at until then; it has no way to tell.
const POLL: Duration = Duration::from_millis(2);

/// A running copy.
#[derive(Debug)]
pub(super) struct Capture {
    tee: Child,
    copy: File,
}

/// What was captured.
#[derive(Debug)]
pub(super) struct Captured {
    /// The end of the output, at most 16 MiB.
    pub text: String,
    /// False if tee was not done in time: its reader is slow, or descendants write on and on.
    pub complete: bool,
}

impl Capture {
    /// Starts tee. The command's standard output is to be the descriptor returned.
    ///
    /// tee is to end at the end of its input and by nothing that is meant for the command, such as
    /// a signal to the whole process group; so it inherits what is blocked.
    ///
    /// # Errors
    /// tee is not installed, or the temporary directory cannot be written.
    pub fn start(_: &Blocked) -> Result<(Self, OwnedFd)> {
        let copy = tempfile::tempfile().context(
            "--capture: cannot make a temporary file; set TMPDIR to a directory with space",
        )?;
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let fd = copy.as_raw_fd();
        let mut command = Command::new("tee");
        command
            .arg(format!("/dev/fd/{fd}"))
            .stdin(Stdio::from(reader));
        // SAFETY: one system call, on a descriptor that `copy` holds open.
        unsafe {
            command
                .pre_exec(move || Ok(fcntl_setfd(BorrowedFd::borrow_raw(fd), FdFlags::empty())?));
        }
        let tee = command
            .spawn()
            .context("--capture: cannot run tee; install coreutils, or leave --capture out")?;
        Ok((Self { tee, copy }, writer))
    }

    /// The output, once all that the command wrote has gone through. To be called after its end.
    ///
    /// Descendants that keep the pipe open are not waited for; tee goes on for them.
    ///
    /// # Errors
    /// The copy cannot be read.
    pub async fn finish(mut self) -> Result<Captured> {
        let through = async {
            while self.tee.try_wait()?.is_none() && !idle(self.tee.id()) {
                sleep(POLL).await;
            }
            io::Result::Ok(())
        };
        let complete = timeout(PATIENCE, through)
            .await
            .map_or(Ok(false), |done| done.map(|()| true));
        let complete = complete.context("--capture: cannot wait for tee")?;
        let text = read_end(&mut self.copy).context("--capture: cannot read the output's copy")?;
        Ok(Captured { text, complete })
    }
}

/// Whether tee has written all that was in the pipe and waits for more.
///
/// In this order: what is read after the pipe was empty, is read from a later writer. False if
/// /proc does not tell.
fn idle(tee: u32) -> bool {
    let empty = || {
        let pipe = File::open(format!("/proc/{tee}/fd/0")).ok()?;
        Some(ioctl_fionread(pipe.as_fd()).ok()? == 0)
    };
    // "running", or the number of the system call that it sleeps in; -1 for a page fault.
    let reads = || {
        let state = fs::read_to_string(format!("/proc/{tee}/syscall")).ok()?;
        let number: libc::c_long = state.split(' ').next()?.parse().ok()?;
        Some(number >= 0 && number != libc::SYS_write)
    };
    empty() == Some(true) && reads() == Some(true)
}

fn read_end(file: &mut File) -> io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LIMIT)))?;
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
