//! Looks a command up as exec will, so that a missing one is told before anything is touched.
//!
//! A courtesy: exec's own answer is the authoritative one.

use nix::unistd::{AccessFlags, access};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Where execvp(3) looks when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Why a command cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Unrunnable {
    /// Exit status 127.
    #[error(
        "{}: command not found; check its spelling and PATH (sudo sets its own), or give its full \
         path (if the file is there, the interpreter in its first line is missing)",
        command.display()
    )]
    NotFound {
        /// As it was given.
        command: OsString,
    },
    /// Exit status 126.
    #[error(
        "{}: cannot be executed: {reason}; check that it is a program for this machine, and that \
         its mode and the directories above let the workload's user execute it",
        command.display()
    )]
    NotExecutable {
        /// As it was given.
        command: OsString,
        /// What exec said or would say.
        reason: io::Error,
    },
}

impl Unrunnable {
    /// From the error of exec.
    pub(super) fn new(command: &OsStr, reason: io::Error) -> Self {
        let command = command.to_owned();
        match reason.kind() {
            io::ErrorKind::NotFound => Self::NotFound { command },
            _ => Self::NotExecutable { command, reason },
        }
    }
}

/// Finds `command` in `path`, the value of PATH, or as a path if it has a slash.
///
/// # Errors
/// The failure that exec would end with.
pub fn resolve(command: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Unrunnable> {
    let mut refused = None;
    for candidate in candidates(command, path) {
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            // Like execvp: go on looking, and tell if nothing better comes. Like a shell, and
            // unlike execvp: a directory of PATH that we may not search has no command.
            Err(error) if is_path(command) || candidate.exists() => refused = Some(error),
            Err(_) => {}
        }
    }
    let reason = refused.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(Unrunnable::new(command, reason))
}

/// A path is not looked for in PATH.
fn is_path(command: &OsStr) -> bool {
    command.as_bytes().contains(&b'/')
}

fn candidates(command: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    if command.is_empty() {
        return Vec::new();
    }
    if is_path(command) {
        return vec![command.into()];
    }
    // An empty element is the current directory; join makes a bare name of it.
    std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH)))
        .map(|directory| directory.join(command))
        .collect()
}

fn executable(candidate: &Path) -> io::Result<()> {
    if candidate.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(access(candidate, AccessFlags::X_OK)?)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn file(directory: &Path, name: &str, mode: u32) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn looks_on_behind_what_is_not_executable() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        file(first.path(), "tool", 0o644);
        let found = resolve("tool".as_ref(), Some(&path));
        assert!(
            matches!(found, Err(Unrunnable::NotExecutable { .. })),
            "{found:?}"
        );

        let good = file(second.path(), "tool", 0o755);
        assert_eq!(resolve("tool".as_ref(), Some(&path)).unwrap(), good);
        assert_eq!(
            resolve(good.as_os_str(), Some(OsStr::new(""))).unwrap(),
            good
        );
    }

    #[test]
    fn tells_missing_from_not_executable() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("nosuch");
        for command in [missing.as_os_str(), OsStr::new("nosuch"), OsStr::new("")] {
            let found = resolve(command, Some(directory.path().as_os_str()));
            assert!(
                matches!(found, Err(Unrunnable::NotFound { .. })),
                "{found:?}"
            );
        }
        let found = resolve(directory.path().as_os_str(), None);
        assert!(
            matches!(found, Err(Unrunnable::NotExecutable { .. })),
            "{found:?}"
        );
    }
}
