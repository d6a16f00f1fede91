//! As whom the command runs. Root sees more of it; anybody else sees that nothing is tried.

use crate::wrapper::{GIVE, Wrapper, command, run};
use nix::unistd::{Gid, getegid, geteuid, setgroups};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::process::CommandExt as _;

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
    if geteuid().is_root() {
        // Groups that the command must not keep.
        let groups = [0, 4].map(Gid::from_raw);
        // SAFETY: one system call.
        unsafe { command.pre_exec(move || Ok(setgroups(&groups)?)) };
    }
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

pub fn files_go_back_to_the_caller_of_sudo() {
    let directory = tempfile::tempdir().unwrap();
    let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
    fs::write(&file, "").unwrap();
    symlink(&file, &link).unwrap();
    let ours = (geteuid().as_raw(), getegid().as_raw());
    let theirs = if geteuid().is_root() {
        (61234, 61235)
    } else {
        ours
    };
    let owner = |path| {
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.uid(), metadata.gid())
    };
    let give = |path, sudo: &[(&str, &str)]| {
        let mut command = command(&["--", "true"]);
        command.env(GIVE, path).envs(sudo.iter().copied());
        let finished = Wrapper::start(&mut command).finish();
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    };
    give(&file, &[]);
    assert_eq!(owner(&file), ours, "without sudo");
    give(&link, &SUDO);
    assert_eq!(
        (owner(&link), owner(&file)),
        (theirs, ours),
        "not what a link leads to"
    );
    give(&file, &SUDO);
    assert_eq!(owner(&file), theirs);
}
