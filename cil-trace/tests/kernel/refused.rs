//! What cil-trace cannot do it says in one message with the remedy, and leaves everything as it
//! was.

use crate::tool::program;
use crate::xfs::Xfs;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A directory for recordings, and a workload that would leave a file in it.
struct Attempt {
    directory: TempDir,
}

impl Attempt {
    fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// `record` to `recording` with `ARGS -- touch ran`, by `command` or in its place.
    fn record(&self, mut command: Command, args: &[&str]) -> Refusal<'_> {
        command
            .arg("record")
            .arg("-o")
            .arg(self.path("recording"))
            .args(args);
        Refusal {
            attempt: self,
            output: command
                .arg("--")
                .arg("touch")
                .arg(self.path("ran"))
                .output()
                .unwrap(),
        }
    }
}

struct Refusal<'a> {
    attempt: &'a Attempt,
    output: Output,
}

impl Refusal<'_> {
    /// cil-trace itself failed, named the problem, ran nothing and wrote nothing.
    fn expect(&self, words: &[&str]) {
        says(&self.output, 125, words);
        assert!(
            !self.attempt.path("ran").exists(),
            "the workload ran all the same"
        );
        assert!(
            !self.attempt.path("recording").exists(),
            "a recording was begun"
        );
    }
}

fn says(output: &Output, status: i32, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "no {word:?} in: {stderr}");
    }
}

/// Runs `preparation` in mount and process namespaces of its own, then cil-trace with what follows.
/// The latter because cil-trace looks for XFS in the mounts of every process that it sees.
fn in_namespaces(preparation: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation=private"])
        .args(["--pid", "--fork", "--mount-proc"])
        .args(["sh", "-ec"])
        .arg(format!("{preparation}\nexec \"$0\" \"$@\""))
        .arg(program());
    command
}

#[test]
fn without_an_xfs_mounted() {
    // Other filesystems of this machine stay mounted, and sysfs would still tell of them.
    let hide = "mount -t tmpfs none /sys/fs/xfs
        for mount in $(findmnt -rno TARGET -t xfs | tac); do umount -l \"$mount\"; done";
    Attempt::new()
        .record(in_namespaces(hide), &[])
        .expect(&["no XFS is mounted", "mount -t xfs"]);
}

#[test]
fn without_btf() {
    let _xfs = Xfs::new();
    let hide = "mount -t tmpfs none /sys/kernel/btf";
    Attempt::new()
        .record(in_namespaces(hide), &[])
        .expect(&["/sys/kernel/btf/vmlinux"]);
}

#[test]
fn a_device_without_xfs() {
    let mounted = Xfs::new();
    let unmounted = Xfs::new();
    unmounted.unmount();
    for device in [unmounted.device(), "loop999"] {
        let command = Command::new(program());
        let there = mounted.mountpoint();
        Attempt::new()
            .record(command, &["--device", device])
            .expect(&[device, &there.to_string_lossy()]);
    }
}

#[test]
fn without_root() {
    let _xfs = Xfs::new();
    let attempt = Attempt::new();
    // nobody needs to reach the program and the directory.
    let copy = attempt.path("cil-trace");
    fs::copy(program(), &copy).unwrap();
    fs::set_permissions(attempt.directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(copy);
    attempt.record(command, &[]).expect(&["sudo"]);
}

#[test]
fn an_output_directory_that_cannot_be_written() {
    let _xfs = Xfs::new();
    let attempt = Attempt::new();
    let ran = attempt.path("ran");
    let output = Command::new(program())
        .args(["record", "-o", "/proc/cil-trace.data", "--", "touch"])
        .arg(&ran)
        .output()
        .unwrap();
    says(&output, 125, &["/proc/cil-trace.data", "-o"]);
    assert!(!ran.exists(), "the workload ran all the same");
}

/// Nothing ran, so nothing may take an older recording's place.
#[test]
fn a_command_that_cannot_run_leaves_the_older_recording() {
    let _xfs = Xfs::new();
    let attempt = Attempt::new();
    let file = attempt.path("recording");
    let record = |command: &Path| {
        let mut record = Command::new(program());
        record
            .arg("record")
            .arg("-o")
            .arg(&file)
            .arg("--")
            .arg(command)
            .output()
            .unwrap()
    };
    says(&record(Path::new("true")), 0, &[]);
    let older = fs::read(&file).unwrap();
    let script = attempt.path("not-executable");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    for (command, status) in [(attempt.path("missing"), 127), (script, 126)] {
        says(&record(&command), status, &[&command.to_string_lossy()]);
        assert!(
            fs::read(&file).unwrap() == older,
            "status {status} changed the older recording"
        );
    }
    assert!(!attempt.path("recording.old").exists());
}

#[test]
fn a_file_that_is_no_recording() {
    let attempt = Attempt::new();
    let file = attempt.path("text");
    fs::write(&file, "no recording\n").unwrap();
    for file in [file, attempt.path("missing")] {
        let report = Command::new(program())
            .arg("report")
            .arg(&file)
            .output()
            .unwrap();
        says(&report, 1, &[&file.to_string_lossy()]);
    }
}
