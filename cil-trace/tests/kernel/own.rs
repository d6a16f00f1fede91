//! Workloads that are tests of this program too: the traced command runs one of them alone.

use crate::tool::{Recording, record};
use crate::xfs::Xfs;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Names the directory that a workload writes in.
const DIRECTORY: &str = "CIL_TRACE_TEST_DIRECTORY";

/// Records the ignored test `name`, which finds `xfs` by [`directory`] and these variables, with
/// every inode's locks.
pub fn record_own(xfs: &Xfs, name: &str, variables: &[(&str, &Path)]) -> Recording {
    let set = |variable: &str, value: &Path| {
        let mut text = OsString::from(format!("{variable}="));
        text.push(value);
        text
    };
    let mut command = vec!["env".into(), set(DIRECTORY, &xfs.mountpoint())];
    command.extend(variables.iter().map(|(name, value)| set(name, value)));
    command.push(env::current_exe().unwrap().into());
    command.extend(["--exact", name, "--ignored", "--nocapture"].map(OsString::from));
    let command: Vec<_> = command.iter().map(OsString::as_os_str).collect();
    let options = ["--device", xfs.device(), "--overhead-budget", "off"].map(OsStr::new);
    let recording = record(&options, &command);
    recording.expect_status(0);
    recording
}

/// In a workload: where it writes.
pub fn directory() -> PathBuf {
    env::var_os(DIRECTORY).unwrap().into()
}

/// What the workload printed as `key=NUMBER`.
pub fn printed(recording: &Recording, key: &str) -> u64 {
    let text = String::from_utf8_lossy(&recording.output.stdout);
    let number = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    number
        .unwrap_or_else(|| panic!("no {key} in {text}"))
        .parse()
        .unwrap()
}
