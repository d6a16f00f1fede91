//! What goes into the command and what comes out of it.

use crate::wrapper::{Wrapper, command, run};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::thread;

/// Every byte, in runs that are no multiple of a pipe's or tee's buffer.
fn binary() -> Vec<u8> {
    (0..3_000_017_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

fn copies_exactly(arguments: &[&str]) -> String {
    let mut wrapper = Wrapper::start(&mut command(arguments));
    let mut stdin = wrapper.stdin.take().unwrap();
    let writer = thread::spawn(move || stdin.write_all(&binary()));
    let finished = wrapper.finish();
    writer.join().unwrap().unwrap();
    assert!(
        finished.stdout == binary(),
        "{} bytes came out",
        finished.stdout.len()
    );
    assert_eq!(finished.status.code(), Some(0));
    finished.stderr
}

pub fn standard_input_and_output_are_the_commands_own() {
    copies_exactly(&["--", "cat"]);
}

pub fn captured_output_is_exact() {
    copies_exactly(&["--capture", "--", "cat"]);
    let finished = run(&["--capture", "--", "sh", "-c", "echo Throughput 1; exit 3"]);
    assert_eq!(
        (finished.status.code(), finished.text()),
        (Some(3), "Throughput 1\n")
    );
    assert!(
        finished
            .stderr
            .contains(r#"texts: ["Throughput 1\n"], warnings: []"#)
    );
}

pub fn captured_output_is_awaited() {
    // More than a pipe's 64 KiB, so tee waits for us to read, while the command ends: once with its
    // last kilobyte in tee's hands, once with its last lines in the pipe before tee.
    for last in [21_089, 28_000] {
        let script = format!("echo $$ >&2; seq 10000 {last}");
        let mut wrapper = Wrapper::start(&mut command(&["--capture", "--", "sh", "-c", &script]));
        // In whichever order they come: the recorder's line and the command's.
        let lines = [wrapper.error_line(), wrapper.error_line()];
        let pid = lines.iter().find(|line| *line != "watching").unwrap();
        let process = PathBuf::from(format!("/proc/{pid}"));
        while process.exists() {
            thread::yield_now();
        }
        let finished = wrapper.finish();
        assert!(finished.text().ends_with(&format!("\n{last}\n")));
        let captured = format!(r#"\n{last}\n"], warnings: []"#);
        assert!(finished.stderr.contains(&captured), "up to {last}");
    }
}

pub fn a_descendant_with_the_pipe_does_not_block() {
    let mut wrapper = Wrapper::start(&mut command(&[
        "--capture",
        "--",
        "sh",
        "-c",
        "sleep 1000 & echo $!",
    ]));
    let sleep = wrapper.line();
    let (status, stderr) = wrapper.status();
    assert_eq!(status.code(), Some(0));
    assert!(
        stderr.contains(&format!(r#"texts: ["{sleep}\n"], warnings: []"#)),
        "{stderr}"
    );
    kill(Pid::from_raw(sleep.parse().unwrap()), Signal::SIGKILL).unwrap();
}

pub fn a_closed_reader_reaches_the_command() {
    let mut wrapper = Wrapper::start(&mut command(&["--capture", "--", "yes"]));
    wrapper.expect("y");
    wrapper.close_stdout();
    let (status, stderr) = wrapper.status();
    assert_eq!(status.code(), Some(141), "{stderr}");
}

pub fn captured_output_survives_a_signal_to_the_group() {
    // As timeout(1) does it.
    let script = "trap 'echo last words; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let arguments = ["--capture", "--", "sh", "-c", script];
    let mut wrapper = Wrapper::start(command(&arguments).process_group(0));
    wrapper.expect("ready");
    killpg(wrapper.pid(), Signal::SIGTERM).unwrap();
    let finished = wrapper.finish();
    assert_eq!(finished.text().lines().next(), Some("last words"));
    assert!(
        finished.stderr.contains("last words"),
        "captured too: {}",
        finished.stderr
    );
}

pub fn captured_output_survives_the_recorder() {
    let script = "echo ready; read line; echo heard $line";
    let mut wrapper = Wrapper::ready(&["--capture", "--", "sh", "-c", script]);
    wrapper.signal(Signal::SIGKILL);
    wrapper.stdin.as_mut().unwrap().write_all(b"you\n").unwrap();
    assert_eq!(wrapper.finish().text(), "heard you\n");
}

pub fn result_files_are_read_or_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name| {
        directory
            .path()
            .join(name)
            .into_os_string()
            .into_string()
            .unwrap()
    };
    let [written, rewritten, stale, missing] =
        ["written", "rewritten", "stale", "missing"].map(path);
    for file in [&rewritten, &stale] {
        fs::write(file, "of before\n").unwrap();
    }
    let script = format!("echo one > {written}; echo two > {rewritten}");
    let files = [&written, &rewritten, &stale, &missing].map(|file| ["--results", file]);
    let arguments = [files.as_flattened(), &["--", "sh", "-c", &script]].concat();
    let finished = run(&arguments);
    assert_eq!(
        finished.status.code(),
        Some(0),
        "a missing file is no failure"
    );
    assert!(
        finished.stderr.contains(r#"texts: ["one\n", "two\n"]"#),
        "{}",
        finished.stderr
    );
    for named in [stale, missing] {
        assert!(
            finished.stderr.contains(&format!("--results {named}: ")),
            "{}",
            finished.stderr
        );
    }
}
