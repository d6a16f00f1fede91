//! Signals sent to cil-trace, read as data so that their origin is known.
//!
//! What they do is decided by whoever reads them.

use anyhow::{Context as _, Result};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;

/// The signals that end a program that does nothing about them and are meant for the command: to
/// end it, or to tell it something of its own.
const ENDING: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// Signals that are held back until somebody reads them, the ending ones among them.
///
/// Of a series of commands each gets its own reader, one after the other.
#[derive(Debug)]
pub struct Blocked {
    fd: Arc<SignalFd>,
    /// The mask before, which the command is to have.
    pub(crate) before: SigSet,
}

impl Blocked {
    /// Holds the ending signals back in this thread and those that it starts from now on, so it
    /// comes before any thread.
    ///
    /// A signal that is ignored already stays so (`nohup`, a shell's background job): a blocked
    /// one would reach us all the same. Processes that we start inherit what is blocked; the command
    /// is given back what was before.
    ///
    /// # Errors
    /// The kernel refuses; there is no descriptor left, for instance.
    pub fn block() -> Result<Self> {
        Self::block_also(&[])
    }

    /// The same with others, which are read as well.
    ///
    /// # Errors
    /// As [`Blocked::block`].
    pub fn block_also(others: &[Signal]) -> Result<Self> {
        let mask: SigSet = ENDING
            .iter()
            .chain(others)
            .copied()
            .filter(|&signal| !is_ignored(signal))
            .collect();
        let before = mask
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .context("cannot block signals")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let fd = SignalFd::with_flags(&mask, flags).context("cannot open a signalfd")?;
        let fd = Arc::new(fd);
        Ok(Self { fd, before })
    }

    /// Whether a signal asks for the end, while no command runs that it could be meant for. It is
    /// taken.
    ///
    /// # Errors
    /// The descriptor cannot be read.
    pub fn asked_to_stop(&self) -> Result<Option<Signal>> {
        while let Some(info) = self.fd.read_signal().context("cannot read signals")? {
            let signal = Signal::try_from(info.ssi_signo.cast_signed())?;
            if stops(signal) {
                return Ok(Some(signal));
            }
        }
        Ok(None)
    }
}

/// Whether a signal asks for the end; the others mean something to the command alone.
pub(crate) fn stops(signal: Signal) -> bool {
    use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    matches!(signal, SIGINT | SIGTERM | SIGHUP | SIGQUIT)
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action this only writes the present one to `action`, for which all
    // zeroes is valid too, should the call fail.
    let action = unsafe {
        libc::sigaction(signal as libc::c_int, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// A signal that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    /// Which.
    pub signal: Signal,
    /// The kernel sent it for a key or a hangup, to our whole process group; not `kill`.
    pub from_terminal: bool,
}

/// These signals, as they come.
#[derive(Debug)]
pub(crate) struct Signals(AsyncFd<Arc<SignalFd>>);

impl Signals {
    /// Starts reading; those that came since they were blocked come first.
    ///
    /// # Errors
    /// Never inside a tokio runtime with I/O, unless descriptors run out.
    pub fn new(blocked: &Blocked) -> Result<Self> {
        let fd = Arc::clone(&blocked.fd);
        // SAFETY: a SignalFd owns its descriptor, which stays open, and the same, as long as it lives.
        let fd = unsafe { AsyncFd::register(fd) }.context("cannot wait for signals")?;
        Ok(Self(fd))
    }

    /// The next signal. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The descriptor cannot be read.
    pub async fn next(&self) -> io::Result<Received> {
        loop {
            let mut ready = self.0.readable().await?;
            let Ok(read) = ready.try_io(|fd| {
                fd.get_ref()
                    .read_signal()?
                    .ok_or_else(|| io::ErrorKind::WouldBlock.into())
            }) else {
                continue;
            };
            let info = read?;
            return Ok(Received {
                signal: Signal::try_from(info.ssi_signo.cast_signed())?,
                from_terminal: info.ssi_code == libc::SI_KERNEL,
            });
        }
    }
}
