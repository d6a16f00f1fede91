//! What can go wrong with a recording, each with its remedy.

use crate::session::SCHEMA;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a recording could not be written or read.
///
/// The text names the file and the remedy; the cause below it is the error's source.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// There is nothing at that path.
    #[error("no recording at {path}: make one with `cil-trace record -o {path} -- COMMAND`", path = path.display())]
    Missing {
        /// The path that was given.
        path: PathBuf,
    },
    /// Something else lies there.
    #[error(
        "{path} is not a cil-trace recording ({what}): give the FILE that `cil-trace record -o FILE` wrote",
        path = path.display()
    )]
    NotARecording {
        /// The path that was given.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// A later version wrote it.
    #[error(
        "{path} was written by a newer cil-trace (schema {found}; this one reads up to {SCHEMA}): read it with that version or a later one",
        path = path.display()
    )]
    Newer {
        /// The path that was given.
        path: PathBuf,
        /// Its schema version.
        found: u32,
    },
    /// The operating system does not let us read it.
    #[error(
        "cannot read {path}: a recording is private to who made it (mode 0600), so read it as its owner or as root",
        path = path.display()
    )]
    Unreadable {
        /// The path that was given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// SQLite cannot recover it where it lies.
    #[error(
        "cannot open {path}: its recording was cut short, and {path}-wal, which belongs to it, cannot be read in a directory that is not writable; copy {path} and {path}-wal to a writable one",
        path = path.display()
    )]
    Unrecoverable {
        /// The path that was given.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Its contents do not make sense.
    #[error(
        "{path} is damaged: check it with `sqlite3 {path} 'PRAGMA integrity_check'`, or record again",
        path = path.display()
    )]
    Damaged {
        /// The path that was given.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A new recording would replace something else.
    #[error(
        "{path} exists and is not a cil-trace recording, so it is not overwritten: move it away or choose another file with -o FILE",
        path = path.display()
    )]
    WouldOverwrite {
        /// The file in the way.
        path: PathBuf,
    },
    /// A new recording would replace one that is being written or read.
    #[error(
        "{path} is open in another program, perhaps a running `cil-trace record`: choose another file with -o FILE",
        path = path.display()
    )]
    InUse {
        /// The file in the way.
        path: PathBuf,
    },
    /// The file could not be made.
    #[error("cannot create {path}: choose a file in a writable directory with -o FILE", path = path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An earlier recording could not be renamed; it is as it was.
    #[error(
        "cannot rename {path} to {path}.old to make room: move it away or choose another file with -o FILE",
        path = path.display()
    )]
    SetAside {
        /// The earlier recording.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No room.
    #[error("no space left for {path}: free some, or choose a file on another filesystem with -o FILE", path = path.display())]
    Full {
        /// The recording.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// All is written, but the file could not be made one.
    #[error(
        "{path} is complete, but open in another program, so {path}-wal remains a part of it: keep the two together",
        path = path.display()
    )]
    StillOpen {
        /// The recording.
        path: PathBuf,
    },
    /// Anything else that SQLite says.
    #[error(
        "{path}: SQLite failed; check the file with `sqlite3 {path} 'PRAGMA integrity_check'`",
        path = path.display()
    )]
    Database {
        /// The recording.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// Says which file an error of SQLite is about.
pub(super) fn in_file(path: &Path) -> impl Fn(rusqlite::Error) -> RecordingError + '_ {
    move |source| {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => RecordingError::Full { path, source },
            _ => RecordingError::Database { path, source },
        }
    }
}
