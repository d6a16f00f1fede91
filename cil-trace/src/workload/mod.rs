//! The traced command: started behind a gate, signalled, ended, waited for, its output read.
//!
//! Nothing here knows that anything is traced. The order of use is
//! [`Blocked::block`](crate::signals::Blocked::block) before any thread, [`resolve`] before
//! anything heavy, [`Outputs::start`], [`Prepared::new`], (attach), [`Prepared::go`],
//! [`Watch::ended`], [`Outputs::collect`].

mod capture;
mod identity;
mod outputs;
mod pidfd;
mod resolve;
mod spawn;
mod tree;
mod wait;
mod watch;

pub use identity::{Identity, RunAs, chown_back};
pub use outputs::{Collected, Outputs};
pub use resolve::{Unrunnable, resolve};
pub use spawn::{Prepared, Started};
pub use tree::descendants;
pub use wait::ExitInfo;
pub use watch::{Ended, Subject, Watch};

use std::ffi::OsString;
use std::path::PathBuf;

/// The command to trace and what is wanted of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The command and its arguments; never empty.
    pub argv: Vec<OsString>,
    /// As whom it runs.
    pub run_as: RunAs,
    /// Copy its standard output, to read the results in it.
    pub capture: bool,
    /// Files that it writes its results to.
    pub results: Vec<PathBuf>,
}
