//! The command and its descendants, to signal them all.
//!
//! Found by parent, so a daemon whose parent has ended is not among them.

use super::pidfd::Pidfd;
use nix::sys::signal::Signal;
use rustix::io::Errno;
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::io;

/// These processes and all that descend from them now.
///
/// # Errors
/// /proc cannot be read.
pub fn descendants(mut pending: Vec<i32>) -> io::Result<Vec<i32>> {
    let mut children = BTreeMap::<i32, Vec<i32>>::new();
    let processes = procfs::process::all_processes().map_err(io::Error::other)?;
    // One that ends while we look is of no interest any more.
    for stat in processes.filter_map(|process| process.ok()?.stat().ok()) {
        children.entry(stat.ppid).or_default().push(stat.pid);
    }
    let mut found = Vec::new();
    while let Some(pid) = pending.pop() {
        // Removed, so that each parent is looked at once.
        pending.extend(children.remove(&pid).unwrap_or_default());
        found.push(pid);
    }
    Ok(found)
}

/// Some processes, by pid.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<i32, Pidfd>);

impl Tree {
    /// Adds `root` and what descends from it and the processes already here.
    ///
    /// # Errors
    /// /proc cannot be read, or descriptors run out.
    pub fn grow(&mut self, root: Pid) -> io::Result<()> {
        let known = self.0.keys().copied();
        let roots = std::iter::once(root.as_raw_nonzero().get())
            .chain(known)
            .collect();
        for pid in descendants(roots)? {
            if let (Some(process), false) = (Pid::from_raw(pid), self.0.contains_key(&pid)) {
                match Pidfd::open(process) {
                    Ok(pidfd) => self.0.insert(pid, pidfd),
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => None,
                    Err(error) => return Err(error),
                };
            }
        }
        Ok(())
    }

    /// Sends a signal to each that is still there.
    ///
    /// # Errors
    /// One may not be signalled (it became another user's); the others were.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.0
            .values()
            .map(|process| process.signal(signal))
            .fold(Ok(()), io::Result::and)
    }

    /// Returns when all have ended. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub async fn ended(&self) -> io::Result<()> {
        for process in self.0.values() {
            process.ended().await?;
        }
        Ok(())
    }
}
