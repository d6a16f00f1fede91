//! Files that a command writes beside its recording.

use crate::workload::chown_back;
use anyhow::{Context as _, Result, bail};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// How every SQLite file begins (sqlite.org/fileformat2.html, section 1.3).
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Writes a file, which belongs to the user who called sudo; a recording is not written over.
///
/// # Errors
///
/// It is a recording, or cannot be written; the text names the option to change.
pub fn write(path: &Path, contents: impl AsRef<[u8]>, option: &str) -> Result<()> {
    let shown = path.display();
    if begins_as_sqlite(path) {
        bail!("{shown} is a recording or another database; give another file with {option}");
    }
    fs::write(path, contents)
        .with_context(|| format!("{shown}: cannot be written; give another file with {option}"))?;
    chown_back(path)
}

/// Whether it is a recording, or another database.
#[must_use]
pub fn begins_as_sqlite(path: &Path) -> bool {
    let mut start = [0; SQLITE.len()];
    // What is no regular file may block, and is no recording.
    fs::metadata(path).is_ok_and(|meta| meta.is_file())
        && File::open(path)
            .and_then(|mut file| file.read_exact(&mut start))
            .is_ok()
        && start == SQLITE
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_recording_is_not_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.data");
        let recording = [SQLITE, b"rest"].concat();
        fs::write(&path, &recording).unwrap();
        let error = write(&path, "<svg/>", "-o").unwrap_err().to_string();
        assert!(error.contains("-o"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), recording);

        let picture = directory.path().join("x.svg");
        write(&picture, "<svg/>", "-o").unwrap();
        write(&picture, "<svg></svg>", "-o").unwrap();
        assert_eq!(fs::read_to_string(picture).unwrap(), "<svg></svg>");
    }
}
