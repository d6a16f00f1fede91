//! How a recording ends of itself.

use crate::start::{await_end, pidfd};
use crate::wrapper::{Wrapper, command, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gettid};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

pub fn the_status_is_passed_on() {
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        assert_eq!(
            run(&["--", "sh", "-c", script]).status.code(),
            Some(status),
            "{script}"
        );
    }
}

pub fn usage_is_measured() {
    // A page fault for each of 4096 pages, and none the fewer for being a grandchild's.
    let script = "head -c 16777216 /dev/zero | tail -c 16777216 > /dev/null; :";
    let finished = run(&["--", "sh", "-c", script]);
    let value = |name: &str| -> u64 {
        let (_, rest) = finished.stderr.split_once(&format!(" {name}: ")).unwrap();
        rest.split([',', ' ']).next().unwrap().parse().unwrap()
    };
    assert!(value("minor_faults") >= 4096, "{}", finished.stderr);
    assert!(value("max_rss_bytes") >= 16 << 20, "{}", finished.stderr);
    assert!(
        value("voluntary_context_switches") > 0,
        "{}",
        finished.stderr
    );
    let cpu = value("user_ns") + value("sys_ns");
    assert!(cpu > 0 && value("wall_ns") > 0, "{}", finished.stderr);
}

pub fn a_daemon_is_not_waited_for() {
    let script = "setsid sleep 1000 > /dev/null 2>&1 & echo $!";
    let finished = run(&["--", "sh", "-c", script]);
    assert_eq!(finished.status.code(), Some(0));
    let daemon = Pid::from_raw(finished.text().trim_end().parse().unwrap());
    kill(daemon, Signal::SIGKILL).unwrap();
}

pub fn the_duration_ends_the_command_and_its_descendants() {
    // Both hold standard output, one of them in a session of its own.
    let script = "setsid sleep 1000 & sleep 1000";
    let finished = run(&["--duration", "1s", "--", "sh", "-c", script]);
    assert_eq!(finished.status.code(), Some(143), "{}", finished.stderr);
}

pub fn a_descendant_has_time_to_clean_up() {
    // The shell dies of TERM at once, what it runs takes its time.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cleaned");
    let script = format!(
        r#"sh -c 'trap "sleep 0.5; touch {}; exit" TERM; echo ready
                  while :; do sleep 0.02; done'"#,
        file.display()
    );
    let mut wrapper = Wrapper::ready(&["--duration", "2s", "--", "sh", "-c", &script]);
    let (status, stderr) = wrapper.status();
    assert!(file.exists(), "{stderr}");
    assert_eq!(status.code(), Some(143), "{stderr}");
}

pub fn what_ignores_term_is_killed() {
    let wrapped = command(&["--duration", "10ms", "--", "sleep", "1000"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", r#"trap "" TERM; exec "$@""#, "sh"])
        .arg(wrapped.get_program());
    let finished = Wrapper::start(shell.args(wrapped.get_args())).finish();
    assert_eq!(finished.status.code(), Some(137), "{}", finished.stderr);
}

pub fn without_a_command_the_duration_ends_the_recording() {
    let finished = run(&["--duration", "10ms"]);
    assert_eq!(finished.status.code(), Some(0));
    assert!(
        finished.stderr.starts_with("watching\nDuration\n"),
        "{}",
        finished.stderr
    );
}

pub fn a_process_is_watched_to_its_end() {
    let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut wrapper = Wrapper::start(&mut command(&["-p", &cat.id().to_string()]));
    wrapper.expect_error("watching");
    drop(cat.stdin.take());
    let (status, stderr) = wrapper.status();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.starts_with("ProcessGone\n"), "{stderr}");
    cat.wait().unwrap();
}

pub fn what_is_no_process_is_refused() {
    let mut gone = Command::new("true").spawn().unwrap();
    let pid = gone.id();
    await_end(&pidfd(pid.cast_signed()));
    gone.wait().unwrap();
    let (tell, told) = channel();
    let (hold, held) = channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(gettid()).unwrap();
        held.recv().unwrap_err()
    });
    let thread_id = told.recv().unwrap().to_string();
    for (pid, remedy) in [(pid.to_string(), "`ps -e`"), (thread_id, "it is a thread")] {
        let finished = run(&["-p", &pid]);
        assert_eq!(finished.status.code(), Some(125));
        assert!(
            finished.stderr.starts_with(&format!("-p {pid}: ")),
            "{}",
            finished.stderr
        );
        assert!(finished.stderr.contains(remedy), "{}", finished.stderr);
    }
    drop(hold);
    thread.join().unwrap();
}
