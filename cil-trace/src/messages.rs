//! Where log messages go: to standard error, or aside while a screen is up.
//!
//! What is set aside is not lost: it goes to standard error when the screen is gone.

use std::io::{self, Write, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Most bytes that are set aside.
const MOST: usize = 64 << 10;

static ASIDE: Mutex<Aside> = Mutex::new(Aside {
    held: false,
    text: Vec::new(),
    told: 0,
});

struct Aside {
    held: bool,
    text: Vec<u8>,
    /// Bytes of it that [`latest`] has told.
    told: usize,
}

fn aside() -> MutexGuard<'static, Aside> {
    // A panic in the middle leaves a text that is as good as any.
    ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on messages are set aside.
pub fn hold() {
    aside().held = true;
}

/// From now on messages go to standard error, those that were set aside first.
pub fn release() {
    // Called also where a panic has just begun, perhaps in the middle of a message.
    let mut aside = match ASIDE.try_lock() {
        Ok(aside) => aside,
        Err(TryLockError::Poisoned(error)) => error.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    aside.held = false;
    aside.told = 0;
    // Nobody is left to tell if this fails.
    let _ = stderr().write_all(&aside.text);
    aside.text.clear();
}

/// The latest of the messages that have been set aside since the last call.
pub fn latest() -> Option<String> {
    let mut aside = aside();
    let new = String::from_utf8_lossy(&aside.text[aside.told..]).into_owned();
    aside.told = aside.text.len();
    let line = new.lines().last()?;
    Some(line.strip_prefix("cil-trace: ").unwrap_or(line).to_owned())
}

/// What the logger writes to.
pub struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut aside = aside();
        if !aside.held {
            return stderr().write(bytes);
        }
        let room = MOST.saturating_sub(aside.text.len());
        aside
            .text
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_told_once() {
        hold();
        Output.write_all(b"cil-trace: one\ncil-trace: two\n").ok();
        assert_eq!(latest().as_deref(), Some("two"));
        assert_eq!(latest(), None);
        release();
        assert_eq!(latest(), None);
    }
}
