//! What the command wrote, for the benchmark results in it: its standard output and named files.
//!
//! Recognising results is not done here.

use super::Options;
use super::capture::Capture;
use crate::signals::Blocked;
use anyhow::Result;
use rustix::fd::OwnedFd;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The outputs that are to be read when the command has ended.
#[derive(Debug)]
pub struct Outputs {
    capture: Option<Capture>,
    stdout: Option<OwnedFd>,
    files: Vec<(PathBuf, Option<Version>)>,
}

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Collected {
    /// One text per output: standard output first, then the files in their order.
    pub texts: Vec<String>,
    /// What could not be read, and what to do about it.
    pub warnings: Vec<String>,
}

/// Changes whenever a file is written or replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Version {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Outputs {
    /// Makes ready, before the command starts.
    ///
    /// # Errors
    /// The standard output cannot be captured.
    pub fn start(options: &Options, blocked: &Blocked) -> Result<Self> {
        let (capture, stdout) = options
            .capture
            .then(|| Capture::start(blocked))
            .transpose()?
            .unzip();
        let files = options
            .results
            .iter()
            .map(|path| (path.clone(), version(path)))
            .collect();
        Ok(Self {
            capture,
            stdout,
            files,
        })
    }

    /// Where the command's standard output is to go, if not where ours does.
    pub(super) fn take_stdout(&mut self) -> Option<OwnedFd> {
        self.stdout.take()
    }

    /// Reads them, after the command has ended.
    ///
    /// # Errors
    /// The captured output cannot be read. A file that cannot is a warning.
    pub async fn collect(self) -> Result<Collected> {
        let mut collected = Collected::default();
        if let Some(capture) = self.capture {
            let captured = capture.finish().await?;
            collected.texts.push(captured.text);
            if !captured.complete {
                collected.warnings.push(
                    "--capture: the output was still being written after the command had ended; \
                     results at its end may be missing"
                        .to_owned(),
                );
            }
        }
        for (path, before) in self.files {
            let shown = path.display();
            match fs::read(&path) {
                Ok(_) if version(&path) == before => collected.warnings.push(format!(
                    "--results {shown}: left out, as the command did not write it this time"
                )),
                Ok(bytes) => collected
                    .texts
                    .push(String::from_utf8_lossy(&bytes).into_owned()),
                Err(error) => collected.warnings.push(format!(
                    "--results {shown}: {error}; give the file that the command writes, as seen \
                     from this directory"
                )),
            }
        }
        Ok(collected)
    }
}

fn version(path: &Path) -> Option<Version> {
    let of = |metadata: Metadata| Version {
        inode: metadata.ino(),
        size: metadata.size(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    };
    fs::metadata(path).ok().map(of)
}
