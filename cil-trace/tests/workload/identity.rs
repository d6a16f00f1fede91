//! As whom the command runs. Root sees more of it; anybody else sees that nothing is tried.

use crate::wrapper::{Wrapper, command, run};
use cil_trace::workload::chown_back;
use nix::unistd::{getegid, geteuid};
use std::os::unix::fs::MetadataExt as _;

const WHO: &str = "echo $(id -u) $(id -g) $(id -G) $HOME $USER $LOGNAME";
/// A user who is in no passwd.
const SUDO: [(&str, &str); 3] = [
    ("SUDO_UID", "61234"),
    ("SUDO_GID", "61235"),
    ("SUDO_USER", "dave"),
];

fn who(arguments: &[&str]) -> String {
    let arguments = [arguments, &["--", "sh", "-c", WHO]].concat();
    let mut command = command(&arguments);
    command
        .envs(SUDO)
        .envs([("HOME", "/h"), ("USER", "u"), ("LOGNAME", "l")]);
    let finished = Wrapper::start(&mut command).finish();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    finished.text().trim_end().to_owned()
}

pub fn sudo_runs_as_its_caller() {
    let ours = format!("{} {} ", geteuid(), getegid());
    if geteuid().is_root() {
        assert_eq!(who(&[]), "61234 61235 61235 /h dave dave");
        assert_eq!(
            who(&["--user", "nobody"]),
            "65534 65534 65534 /nonexistent nobody nobody"
        );
    } else {
        assert!(
            who(&[]).starts_with(&ours),
            "the variables alone give nobody any right"
        );
    }
    let kept = who(&["--keep-root"]);
    assert!(
        kept.starts_with(&ours) && kept.ends_with(" /h u l"),
        "{kept}"
    );
}

pub fn another_user_needs_root_and_a_name() {
    let finished = run(&["--user", "no-such-user", "--", "true"]);
    assert_eq!(finished.status.code(), Some(125));
    assert!(
        finished.stderr.starts_with("--user no-such-user: "),
        "{}",
        finished.stderr
    );
    if !geteuid().is_root() {
        let finished = run(&["--user", "root", "--", "true"]);
        assert_eq!(finished.status.code(), Some(125));
        assert!(finished.stderr.contains("only root"), "{}", finished.stderr);
    }
}

pub fn files_go_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    chown_back(&file).unwrap();
    let owner = std::fs::metadata(&file).unwrap();
    assert_eq!(
        (owner.uid(), owner.gid()),
        (geteuid().as_raw(), getegid().as_raw())
    );
}
