//! What a failure does to the exit status.
//!
//! Errors carry their own message and remedy; this module only maps them to numbers.

use crate::workload::Unrunnable;
use std::io;

/// What went wrong while running.
pub const RUNNING: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// `record` itself failed, whatever became of the workload.
pub const RECORD: u8 = 125;
/// The command was found, but could not be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such command.
pub const NOT_FOUND: u8 = 127;

/// A command line that parses but means nothing, found out after parsing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// The exit status for `error`, `own` being that of the command's own failures.
///
/// A broken pipe is success, except in `record`, whose status speaks of the workload.
#[must_use]
pub fn status(error: &anyhow::Error, own: u8) -> u8 {
    for cause in error.chain() {
        if cause.is::<Usage>() {
            return USAGE;
        }
        match cause.downcast_ref() {
            Some(Unrunnable::NotFound { .. }) => return NOT_FOUND,
            Some(Unrunnable::NotExecutable { .. }) => return NOT_EXECUTABLE,
            None => {}
        }
        let broken_pipe = cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        if broken_pipe && own != RECORD {
            return 0;
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(cause: impl Into<anyhow::Error>) -> anyhow::Error {
        cause.into().context("outer")
    }

    #[test]
    fn the_cause_decides_however_deep() {
        assert_eq!(status(&wrapped(Usage("two files".into())), RUNNING), USAGE);
        let missing = Unrunnable::NotFound {
            command: "x".into(),
        };
        assert_eq!(status(&wrapped(missing), RECORD), NOT_FOUND);
        assert_eq!(status(&wrapped(io::Error::other("disk")), RUNNING), RUNNING);
        assert_eq!(status(&wrapped(io::Error::other("disk")), RECORD), RECORD);
    }

    #[test]
    fn a_broken_pipe_is_success_but_not_for_record() {
        let pipe = || wrapped(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(status(&pipe(), RUNNING), 0);
        assert_eq!(status(&pipe(), RECORD), RECORD);
    }
}
