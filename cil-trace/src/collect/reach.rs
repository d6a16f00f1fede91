//! Which modules the kernel side should reach into, as they come and go.
//!
//! What is attached to a module holds it, so that `rmmod xfs` fails; and what is not loaded cannot
//! be attached to.

use crate::system::environment::{XfsSupport, is_loaded, xfs_support};
use std::time::{Duration, Instant};

/// How long XFS is held after the last one was unmounted: a benchmark or a test that unmounts and
/// mounts again is then seen whole.
const HELD: Duration = Duration::from_secs(2);

/// The modules that the kernel side reaches into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// XFS.
    pub xfs: bool,
    /// The loop driver, which nothing holds.
    pub loop_devices: bool,
}

impl Reach {
    /// The module that must be left alone although it is loaded.
    #[must_use]
    pub fn left_alone(self) -> Option<&'static str> {
        (!self.xfs).then_some("xfs")
    }
}

/// What there is to reach into.
pub struct Presence {
    built_in: bool,
    /// When an XFS was last seen to be mounted, or XFS was found loaded at the start.
    seen: Option<Instant>,
}

impl Presence {
    /// As it is now.
    #[must_use]
    pub fn new() -> Self {
        let support = xfs_support();
        Self {
            built_in: support == XfsSupport::BuiltIn,
            seen: (support == XfsSupport::Module).then(Instant::now),
        }
    }

    /// What the kernel side should reach into now, given what it reaches into and whether an XFS is
    /// mounted anywhere, and any followed one on a loop device.
    #[must_use]
    pub fn wanted(&mut self, current: Option<Reach>, mounted: bool, on_loop: bool) -> Reach {
        if mounted {
            self.seen = Some(Instant::now());
        }
        let held = self.seen.is_some_and(|at| at.elapsed() < HELD);
        Reach {
            xfs: self.built_in || mounted || held,
            // To look is free at the start; later it is worth a change of everything only if needed.
            loop_devices: match current {
                Some(current) => current.loop_devices || on_loop && is_loaded("loop"),
                None => is_loaded("loop"),
            },
        }
    }
}
