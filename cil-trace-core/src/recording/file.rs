//! The files of a recording: what lies at a path, and making room for a new one.

use super::error::{RecordingError, in_file};
use super::tables::APPLICATION_ID;
use crate::session::SCHEMA;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database, and what lies beside it while it is in WAL mode.
const PARTS: [&str; 3] = ["", "-wal", "-shm"];

/// How long to wait for a reader that holds the file for a moment.
const PATIENCE: Duration = Duration::from_secs(2);

/// `path` with something after its last letter.
pub(super) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether a write-ahead log belongs to the database there.
pub(super) fn has_wal(path: &Path) -> bool {
    suffixed(path, "-wal").exists()
}

/// SQLite's own name for a path: never one that it takes for something else (`:memory:`).
fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

/// Opens an existing database for writing.
pub(super) fn open_for_writing(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_timeout(PATIENCE)?;
    // A kill leaves the file whole without it; only a crash of the machine could tear it. An fsync
    // would be one of the very flushes that are being counted.
    connection.pragma_update(None, "synchronous", "OFF")?;
    Ok(connection)
}

/// Opens a recording for reading, wherever it lies.
///
/// # Errors
/// [`RecordingError`], telling apart what is missing, not ours, too new or unreadable.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, RecordingError> {
    let not_ours = |what| {
        let path = path.to_owned();
        RecordingError::NotARecording { path, what }
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = path.to_owned();
            return Err(RecordingError::Missing { path });
        }
        Err(source) => {
            let path = path.to_owned();
            return Err(RecordingError::Unreadable { path, source });
        }
        Ok(meta) if meta.is_dir() => return Err(not_ours("it is a directory")),
        Ok(meta) if !meta.is_file() => return Err(not_ours("it is not a regular file")),
        Ok(meta) if meta.len() == 0 => return Err(not_ours("it is empty")),
        Ok(_) => {}
    }
    let opened = connect(path).and_then(|connection| {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        let identity = (pragma("application_id")?, pragma("user_version")?);
        Ok((connection, identity))
    });
    match opened {
        Ok((_, (id, _))) if id != APPLICATION_ID => {
            Err(not_ours("it is an SQLite file of another program"))
        }
        Ok((_, (_, found))) if found > SCHEMA => {
            let path = path.to_owned();
            Err(RecordingError::Newer { path, found })
        }
        Ok((connection, _)) => Ok(connection),
        Err(error) => Err(match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => not_ours("it is not an SQLite file"),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => cannot_open(path, error),
            _ => in_file(path)(error),
        }),
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if has_wal(path) {
        Connection::open_with_flags(plain(path), flags)?
    } else {
        // Nobody writes to it. A recording that lost its `-wal` still says WAL in its header, and
        // in a directory that is not writable only `immutable` opens that.
        let uri = format!("file:{}?immutable=1", percent_encoded(&plain(path)));
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
    };
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// SQLite says `unable to open` for whatever the operating system refused.
fn cannot_open(path: &Path, source: rusqlite::Error) -> RecordingError {
    let path = path.to_owned();
    match fs::File::open(&path) {
        Err(source) => RecordingError::Unreadable { path, source },
        Ok(_) => RecordingError::Unrecoverable { path, source },
    }
}

/// A path as part of a URI (RFC 3986, section 2.1).
fn percent_encoded(path: &Path) -> String {
    use std::fmt::Write;
    let mut uri = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// A new file that has its final name only once [`Draft::publish`] is called.
pub(super) struct Draft<'a> {
    target: &'a Path,
    path: PathBuf,
}

impl<'a> Draft<'a> {
    /// Creates the empty file, readable by its owner only, beside its target.
    ///
    /// # Errors
    /// [`RecordingError::WouldOverwrite`], [`RecordingError::InUse`] or
    /// [`RecordingError::Create`]; nothing has changed then.
    pub(super) fn beside(target: &'a Path) -> Result<Self, RecordingError> {
        let old = suffixed(target, ".old");
        for path in [target, &old] {
            if !replaceable(path)? {
                let path = path.to_owned();
                return Err(RecordingError::WouldOverwrite { path });
            }
        }
        if has_wal(target) && target.exists() {
            absorb_wal(target)?;
        }
        let path = suffixed(target, &format!(".{}.new", std::process::id()));
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| RecordingError::Create {
                path: target.to_owned(),
                source,
            })?;
        Ok(Self { target, path })
    }

    /// Where it is for now.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name; an earlier recording of that name becomes `<name>.old`. Returns whether
    /// there was one.
    ///
    /// # Errors
    /// [`RecordingError::SetAside`] or [`RecordingError::Create`].
    pub(super) fn publish(self) -> Result<bool, RecordingError> {
        let replaces = set_aside(self.target)?;
        fs::rename(&self.path, self.target).map_err(|source| RecordingError::Create {
            path: self.target.to_owned(),
            source,
        })?;
        Ok(replaces)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // Gone already once published; otherwise there is nobody left to tell.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a new recording may take that name: nothing is lost that we did not write.
fn replaceable(path: &Path) -> Result<bool, RecordingError> {
    match open_for_reading(path) {
        Ok(_) | Err(RecordingError::Missing { .. } | RecordingError::Newer { .. }) => Ok(true),
        // What `mktemp` leaves.
        Err(RecordingError::NotARecording { .. }) => {
            Ok(fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0))
        }
        Err(RecordingError::Unreadable { path, source }) => {
            Err(RecordingError::Create { path, source })
        }
        Err(_) => Ok(false),
    }
}

/// Makes a recording that was cut short one file again, unless somebody has it open.
fn absorb_wal(path: &Path) -> Result<(), RecordingError> {
    let absorbed = open_for_writing(path).and_then(|connection| {
        connection.busy_timeout(Duration::ZERO)?;
        connection.pragma_update(None, "journal_mode", "DELETE")
    });
    match absorbed {
        Err(error) if is_busy(&error) => {
            let path = path.to_owned();
            Err(RecordingError::InUse { path })
        }
        // What cannot be absorbed is renamed with its `-wal`.
        _ => Ok(()),
    }
}

/// Whether somebody else has the database open.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Renames what lies at `path`, its `-wal` and `-shm` to `.old`.
///
/// The three move as one: a `-wal` that stays, or that meets another database under its name,
/// would be taken for that one's.
fn set_aside(path: &Path) -> Result<bool, RecordingError> {
    if !PARTS.iter().any(|part| suffixed(path, part).exists()) {
        return Ok(false);
    }
    let failed = |source| {
        let path = path.to_owned();
        RecordingError::SetAside { path, source }
    };
    let old = suffixed(path, ".old");
    for part in PARTS.into_iter().rev() {
        let from = suffixed(path, part);
        let to = suffixed(&old, part);
        if from.exists() {
            fs::rename(from, to).map_err(failed)?;
        } else if to.exists() {
            fs::remove_file(to).map_err(failed)?;
        }
    }
    Ok(true)
}

/// Takes a new recording away again, and gives the one that it replaced its name back.
pub(super) fn take_back(path: &Path, replaces: bool) {
    let old = suffixed(path, ".old");
    for part in PARTS {
        // What cannot be undone leaves the earlier recording under `.old`, where it is not lost.
        let _ = fs::remove_file(suffixed(path, part));
        if replaces {
            let _ = fs::rename(suffixed(&old, part), suffixed(path, part));
        }
    }
}
