//! Up to exec.

use crate::wrapper::{HOLD, Wrapper, command, run};
use cil_trace::signals::Blocked;
use cil_trace::workload::{Options, Outputs, Prepared, RunAs};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{PidfdFlags, pidfd_open};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use tempfile::TempDir;

/// A recorder that holds `touch FILE` behind its gate.
struct Held {
    directory: TempDir,
    wrapper: Wrapper,
    pid: i32,
}

impl Held {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (fifo, file) = (directory.path().join("fifo"), directory.path().join("file"));
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        let script = format!("touch {}; echo $$", file.display());
        let mut wrapper = Wrapper::start(command(&["--", "sh", "-c", &script]).env(HOLD, &fifo));
        let pid = wrapper.error_line().parse().unwrap();
        Self {
            directory,
            wrapper,
            pid,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// A descriptor of a process that is not ours to wait for.
pub fn pidfd(pid: i32) -> OwnedFd {
    pidfd_open(
        rustix::process::Pid::from_raw(pid).unwrap(),
        PidfdFlags::empty(),
    )
    .unwrap()
}

/// Blocks until the process has ended.
pub fn await_end(pidfd: &OwnedFd) {
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], None).unwrap();
}

pub fn nothing_runs_before_the_gate_opens() {
    let held = Held::new();
    let image = fs::read_link(format!("/proc/{}/exe", held.pid)).unwrap();
    assert_eq!(
        image,
        std::env::current_exe().unwrap(),
        "it has not executed anything"
    );
    assert!(!held.path("file").exists());

    fs::write(held.path("fifo"), "").unwrap();
    let (file, pid) = (held.path("file"), held.pid);
    let finished = held.wrapper.finish();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(
        finished.text().trim_end(),
        pid.to_string(),
        "the process known before"
    );
    assert!(file.exists());
}

pub fn nothing_runs_if_the_recorder_dies_first() {
    let held = Held::new();
    let child = pidfd(held.pid);
    held.wrapper.signal(Signal::SIGKILL);
    await_end(&child);
    assert!(!held.path("file").exists());
    assert_eq!(held.wrapper.finish().stderr, "", "it dies in silence");
}

pub fn nothing_runs_if_the_recorder_changes_its_mind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    let options = Options {
        argv: vec!["touch".into(), file.clone().into()],
        run_as: RunAs::Ourselves,
        capture: false,
        results: Vec::new(),
    };
    // In a thread that ends, as this one goes on to other tests with its signals not blocked.
    let prepare = move || {
        let blocked = Blocked::block().unwrap();
        let mut outputs = Outputs::start(&options, &blocked).unwrap();
        Prepared::new(&options, &mut outputs, &blocked).unwrap()
    };
    let prepared = thread::spawn(prepare).join().unwrap();
    let pid = Pid::from_raw(prepared.pid().cast_signed());
    kill(pid, None).unwrap();
    drop(prepared);
    assert_eq!(
        kill(pid, None),
        Err(Errno::ESRCH),
        "not even a zombie is left"
    );
    assert!(!file.exists());
}

fn file(directory: &Path, name: &str, text: &str, mode: u32) -> String {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.into_os_string().into_string().unwrap()
}

pub fn a_missing_command_is_127() {
    let directory = tempfile::tempdir().unwrap();
    let script = file(
        directory.path(),
        "script",
        "#!/no/such/interpreter\n",
        0o755,
    );
    for missing in ["no-such-command", "/no/such/command", &script] {
        // A PATH that everybody may search: execvp prefers to tell of a directory that it may not.
        let finished =
            Wrapper::start(command(&["--", missing]).env("PATH", "/usr/bin:/bin")).finish();
        assert_eq!(finished.status.code(), Some(127), "{}", finished.stderr);
        assert!(
            finished
                .stderr
                .starts_with(&format!("{missing}: command not found; "))
        );
    }
}

pub fn what_cannot_be_executed_is_126() {
    let directory = tempfile::tempdir().unwrap();
    let no_program = file(directory.path(), "data", "text", 0o644);
    for denied in [no_program.as_str(), "/"] {
        let finished = run(&["--", denied]);
        assert_eq!(finished.status.code(), Some(126), "{}", finished.stderr);
        assert!(
            finished
                .stderr
                .starts_with(&format!("{denied}: cannot be executed: "))
        );
    }
}

pub fn a_script_without_first_line_runs() {
    let directory = tempfile::tempdir().unwrap();
    let script = file(directory.path(), "script", "exit 9\n", 0o755);
    assert_eq!(
        run(&["--", &script]).status.code(),
        Some(9),
        "as execvp has it"
    );
}

pub fn the_command_finds_itself_as_without_wrapper() {
    // No shell, as a shell resets what it runs.
    const LOOKS: [&[&str]; 4] = [
        &[
            "grep",
            "-E",
            "^(Sig(Blk|Ign|Cgt)|Umask|Groups)",
            "/proc/self/status",
        ],
        &["ls", "/proc/self/fd"],
        &["readlink", "/proc/self/cwd"],
        &["env"],
    ];
    for look in LOOKS {
        let mut direct = Command::new(look[0]);
        direct.args(&look[1..]);
        let mut wrapped = command(&["--"]);
        wrapped.args(look);
        let [direct, wrapped] = [direct, wrapped].map(|mut command| {
            // SAFETY: does nothing. Its presence makes std fork; posix_spawn, which it takes
            // otherwise, leaves signals of the C library's own ignored.
            unsafe { command.pre_exec(|| Ok(())) };
            let output = command.output().unwrap();
            assert!(output.status.success(), "{command:?}");
            String::from_utf8(output.stdout).unwrap()
        });
        assert_eq!(wrapped, direct);
    }
}
