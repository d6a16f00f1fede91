//! Waiting for what comes about by itself.

use std::thread;
use std::time::{Duration, Instant};

/// Waits for `condition`; the limit is for a machine that is stuck, not a measure of speed.
///
/// # Panics
/// It was waited for in vain.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    let mut asked = start;
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "still waiting until {what}"
        );
        // What is asked often may take the time that it needs itself.
        thread::sleep(asked.elapsed().max(Duration::from_millis(10)));
        asked = Instant::now();
    }
}
