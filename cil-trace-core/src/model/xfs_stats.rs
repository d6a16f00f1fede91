//! XFS's own statistics (`/sys/fs/xfs/<dev>/stats/stats`), a witness beside our numbers.
//!
//! Every line is a name and numbers; lines and numbers are only ever appended by newer kernels
//! (`fs/xfs/xfs_stats.c`), so what is not asked for is not looked at.

/// A counter: its line, and its place in it from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Counter(&'static str, usize);

const LOG_WRITES: Counter = Counter("log", 0);
const LOG_BLOCKS: Counter = Counter("log", 1);
const LOG_NOICLOGS: Counter = Counter("log", 2);
const LOG_FORCES: Counter = Counter("log", 3);

/// iclog writes between two texts (`xs_log_writes`).
#[must_use]
pub fn log_writes(start: &str, end: &str) -> Option<u64> {
    LOG_WRITES.between(start, end)
}

/// Blocks of 512 bytes written to the log (`xs_log_blocks`).
#[must_use]
pub fn log_blocks(start: &str, end: &str) -> Option<u64> {
    LOG_BLOCKS.between(start, end)
}

/// Waits for an iclog (`xs_log_noiclogs`).
#[must_use]
pub fn log_noiclogs(start: &str, end: &str) -> Option<u64> {
    LOG_NOICLOGS.between(start, end)
}

/// Log forces (`xs_log_force`).
#[must_use]
pub fn log_forces(start: &str, end: &str) -> Option<u64> {
    LOG_FORCES.between(start, end)
}

impl Counter {
    /// `None` if a text does not have it; the counters are 32 bits wide and wrap. They begin at 0
    /// with a mount, so that an empty start is 0.
    fn between(self, start: &str, end: &str) -> Option<u64> {
        let before = if start.is_empty() { 0 } else { self.of(start)? };
        Some(u64::from(self.of(end)?.wrapping_sub(before)))
    }

    fn of(self, text: &str) -> Option<u32> {
        let Self(name, place) = self;
        let mut lines = text.lines().map(str::split_ascii_whitespace);
        let mut numbers =
            lines.find_map(|mut words| (words.next() == Some(name)).then_some(words))?;
        numbers.nth(place)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str =
        "extent_alloc 1 2 3 4\nlog 10 640 1 4294967290 5\nnew_in_8.0 1 x y\nxpc 1 2 3\n";

    #[test]
    fn differences_of_the_log_line() {
        let end = "log_items 7 7 7 7\nlog 14 900 3 4 9 77\n";
        assert_eq!(log_writes(START, end), Some(4));
        assert_eq!(log_blocks(START, end), Some(260));
        assert_eq!(log_noiclogs(START, end), Some(2));
        assert_eq!(log_forces(START, end), Some(10), "wrapped at 2^32");
    }

    #[test]
    fn what_is_missing_is_none() {
        for text in ["log", "log 1 2 3", "log 1 2 3 many", "push_ail 1 2 3 4"] {
            assert_eq!(log_forces(START, text), None, "{text:?}");
            assert_eq!(log_forces(text, START), None, "{text:?}");
        }
        assert_eq!(log_forces(START, ""), None);
    }

    #[test]
    fn a_filesystem_mounted_since_began_at_zero() {
        assert_eq!(log_writes("", START), Some(10));
    }
}
