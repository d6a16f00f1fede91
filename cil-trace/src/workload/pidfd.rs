//! A process held by a descriptor, so that it is never mistaken for a later one with its pid.

use nix::sys::signal::Signal;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use std::io;
use tokio::io::unix::AsyncFd;

/// A process, ours or another's.
#[derive(Debug)]
pub(super) struct Pidfd(AsyncFd<OwnedFd>);

impl Pidfd {
    /// The process that has this pid now. Needs a tokio runtime.
    ///
    /// # Errors
    /// ESRCH if there is none, EINVAL or ENOENT if it is a thread that is not its process's first.
    pub fn open(pid: Pid) -> io::Result<Self> {
        Self::new(pidfd_open(pid, PidfdFlags::empty())?)
    }

    /// From a descriptor of pidfd_open(2). Needs a tokio runtime.
    ///
    /// # Errors
    /// It is none.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: an OwnedFd stays open, and the same, as long as it lives.
        Ok(Self(unsafe { AsyncFd::register(fd) }?))
    }

    /// Sends a signal; one that comes too late is no error.
    ///
    /// # Errors
    /// The process belongs to somebody else.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let signal = rustix::process::Signal::from_named_raw(signal as i32)
            .ok_or(io::ErrorKind::InvalidInput)?;
        match pidfd_send_signal(&self.0, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns when the process has ended; a child is still to be waited for. Nothing is lost when
    /// the future is dropped.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub async fn ended(&self) -> io::Result<()> {
        self.0.readable().await?.retain_ready();
        Ok(())
    }
}
