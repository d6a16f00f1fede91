//! Starts the command in two steps: it exists, with a known pid, before it may run.
//!
//! Probes are attached in between, so that even the shortest command is seen whole. If cil-trace
//! dies before the second step, the command never runs; if it dies after it, the command goes on.

use super::identity::Identity;
use super::resolve::Unrunnable;
use super::{Options, Outputs};
use crate::signals::Blocked;
use anyhow::{Context as _, Result, anyhow};
use nix::sys::signal::SigSet;
use rustix::fd::{AsRawFd as _, OwnedFd, RawFd};
use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// A command that waits behind its gate. Dropping it makes the process go away without running it.
#[derive(Debug)]
pub struct Prepared {
    pid: Pid,
    pidfd: OwnedFd,
    program: OsString,
    gate: Gate,
}

impl Prepared {
    /// Forks the process that will be the command.
    ///
    /// The earlier the better: `max_rss_bytes` of the command is never below what cil-trace
    /// itself had in memory here, as the kernel counts from the fork.
    ///
    /// # Errors
    /// The user is unknown or cannot be become, or the process cannot be made.
    pub fn new(options: &Options, outputs: &mut Outputs, blocked: &Blocked) -> Result<Self> {
        let identity = Identity::resolve(&options.run_as)?;
        let (program, arguments) = options.argv.split_first().context("the command is empty")?;
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(identity) = &identity {
            command.envs(identity.environment());
        }
        if let Some(stdout) = outputs.take_stdout() {
            command.stdout(Stdio::from(stdout));
        }
        let (gate, pid) = Gate::new(command, blocked.before, identity)
            .with_context(|| format!("cannot start {}", program.display()))?;
        // Valid even if the process died just now, as nobody has waited for it.
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).context("cannot open a pidfd")?;
        Ok(Self {
            pid,
            pidfd,
            program: program.clone(),
            gate,
        })
    }

    /// The process that will be the command.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Lets the command run, and returns when it does, or when a signal has ended it before.
    ///
    /// # Errors
    /// What exec said.
    pub fn go(self) -> Result<Started, Unrunnable> {
        let started = Instant::now();
        match self.gate.open() {
            Ok(_) => Ok(Started {
                pid: self.pid,
                pidfd: self.pidfd,
                started,
            }),
            Err(error) => Err(Unrunnable::new(&self.program, error)),
        }
    }
}

/// A command that runs.
#[derive(Debug)]
pub struct Started {
    pub(super) pid: Pid,
    pub(super) pidfd: OwnedFd,
    pub(super) started: Instant,
}

/// Holds a forked child before its exec.
///
/// `spawn` returns when the child has executed the command or failed to, so it waits in a thread.
#[derive(Debug)]
struct Gate {
    latch: Option<OwnedFd>,
    spawn: Option<JoinHandle<io::Result<Child>>>,
}

impl Gate {
    fn new(mut command: Command, mask: SigSet, identity: Option<Identity>) -> Result<(Self, Pid)> {
        let (pid_reader, pid_writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let (latch_reader, latch) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut child_side = ChildSide {
            mask,
            identity,
            pid_writer,
            latch_reader,
            latch: latch.as_raw_fd(),
        };
        // SAFETY: `wait_for_gate` makes system calls only; it neither allocates nor locks.
        unsafe { command.pre_exec(move || child_side.wait_for_gate()) };
        let spawn = thread::Builder::new()
            .name("spawn".to_owned())
            .spawn(move || command.spawn())
            .context("cannot start a thread")?;
        let mut gate = Self {
            latch: Some(latch),
            spawn: Some(spawn),
        };
        let mut pid = [0; size_of::<i32>()];
        // A pipe takes and gives so few bytes as one. None come if the child never got so far.
        retry_on_intr(|| read(&pid_reader, &mut pid))?;
        match Pid::from_raw(i32::from_ne_bytes(pid)) {
            Some(pid) => Ok((gate, pid)),
            None => Err(match gate.join() {
                Ok(_) => anyhow!("a signal ended it before it was ready"),
                Err(error) => error.into(),
            }),
        }
    }

    fn open(mut self) -> io::Result<Child> {
        if let Some(latch) = &self.latch {
            // It fails if the child is dead already, which `join` takes as a start.
            let _ = write(latch, &[1]);
        }
        self.join()
    }

    /// How spawn came out. Closes the gate, if it is not open, so that there is an end to wait for.
    fn join(&mut self) -> io::Result<Child> {
        drop(self.latch.take());
        let spawn = self.spawn.take().ok_or(io::ErrorKind::NotConnected)?;
        spawn
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the spawning thread panicked")))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Ok(mut child) = self.join() {
            // It has not executed the command, so it ends at once; there is nothing to learn of it.
            let _ = child.wait();
        }
    }
}

/// What the forked child holds of the gate.
struct ChildSide {
    mask: SigSet,
    identity: Option<Identity>,
    pid_writer: OwnedFd,
    latch_reader: OwnedFd,
    /// The child's own copy of the parent's end.
    latch: RawFd,
}

impl ChildSide {
    /// Runs between fork and exec.
    fn wait_for_gate(&mut self) -> io::Result<()> {
        // SAFETY: closes this process's copy, which nothing here owns. While it were open, the
        // parent's death would go unnoticed.
        unsafe { libc::close(self.latch) };
        self.mask.thread_set_mask()?;
        if let Some(identity) = &self.identity {
            identity.assume()?;
        }
        write(
            &self.pid_writer,
            &getpid().as_raw_nonzero().get().to_ne_bytes(),
        )?;
        if retry_on_intr(|| read(&self.latch_reader, &mut [0]))? == 0 {
            // The parent is gone or has changed its mind. std would tell it, and abort if it could
            // not. SAFETY: ends this process, without anything of the parent's being run.
            unsafe { libc::_exit(0) };
        }
        Ok(())
    }
}
