//! A signal ends the running child, then this program by its normal way out, so that guards
//! unmount and remove what they hold.
//!
//! Ctrl-C reaches the child by itself, being in the same process group; TERM and HUP are passed
//! on. Nothing here ends the process.

use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

static CHILD: AtomicI32 = AtomicI32::new(0);
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// From now on INT, TERM and HUP no longer end this program at once.
///
/// # Errors
/// The handlers could not be installed.
pub fn defer() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            RECEIVED.store(signal, Ordering::SeqCst);
            let child = CHILD.load(Ordering::SeqCst);
            if child != 0 && signal != SIGINT {
                // An error means that the child is gone, which is what was wanted.
                kill(Pid::from_raw(child), Signal::SIGTERM).ok();
            }
        }
    });
    Ok(())
}

/// Runs `wait`, which waits for the child with this id; meanwhile signals are passed on to it.
pub fn while_running<T>(child: u32, wait: impl FnOnce() -> T) -> T {
    CHILD.store(child.cast_signed(), Ordering::SeqCst);
    let result = wait();
    CHILD.store(0, Ordering::SeqCst);
    result
}

/// # Errors
/// A signal came since [`defer`].
pub fn check() -> Result<()> {
    match RECEIVED.load(Ordering::SeqCst) {
        0 => Ok(()),
        signal => bail!("interrupted by signal {signal}"),
    }
}
