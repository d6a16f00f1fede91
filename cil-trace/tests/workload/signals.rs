//! Signals, from `kill` and from a terminal.

use crate::start::{await_end, pidfd};
use crate::wrapper::{Wrapper, command};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

pub fn term_is_passed_on() {
    let script = "sleep 1000 & trap 'kill $!; exit 5' TERM; echo ready; wait";
    let wrapper = Wrapper::ready(&["--", "sh", "-c", script]);
    wrapper.signal(Signal::SIGTERM);
    assert_eq!(wrapper.finish().status.code(), Some(5));
}

pub fn an_interrupt_reaches_what_a_shell_runs() {
    // Standard output ends when the sleep does.
    let wrapper = Wrapper::ready(&["--", "sh", "-c", "(echo ready; exec sleep 1000); exit 3"]);
    wrapper.signal(Signal::SIGINT);
    assert_eq!(wrapper.finish().status.code(), Some(130));
}

pub fn a_second_interrupt_aborts() {
    let script = "trap 'echo got' INT; echo ready; while :; do sleep 0.02; done";
    let mut wrapper = Wrapper::ready(&["--", "sh", "-c", script]);
    wrapper.signal(Signal::SIGINT);
    wrapper.expect("got");
    wrapper.signal(Signal::SIGINT);
    let finished = wrapper.finish();
    assert_eq!(finished.status.code(), Some(130));
    assert!(
        finished.stderr.starts_with("Aborted\n"),
        "{}",
        finished.stderr
    );
}

/// A recorder in a session of its own, at a terminal.
struct AtTerminal {
    child: Child,
    keys: File,
    screen: BufReader<File>,
}

impl AtTerminal {
    fn start(arguments: &[&str]) -> Self {
        let terminal = openpty(None, None).unwrap();
        let side = || Stdio::from(terminal.slave.try_clone().unwrap());
        let mut command = command(arguments);
        command.stdin(side()).stdout(side()).stderr(side());
        // SAFETY: system calls only.
        unsafe {
            command.pre_exec(|| {
                nix::unistd::setsid()?;
                // Standard input, the terminal, becomes the controlling one.
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().unwrap();
        let keys = File::from(terminal.master);
        Self {
            child,
            screen: BufReader::new(keys.try_clone().unwrap()),
            keys,
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// All up to a line that contains `text`.
    fn read_to(&mut self, text: &str) -> String {
        let mut seen = String::new();
        while !seen.lines().any(|line| line.contains(text)) {
            assert_ne!(self.screen.read_line(&mut seen).unwrap(), 0, "{seen}");
        }
        seen
    }

    fn status(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

const CTRL_C: &[u8] = b"\x03";

pub fn a_terminals_interrupt_comes_once() {
    let script = "trap 'echo interrupted' INT; trap 'echo terminated; exit 4' TERM; echo ready
                  while :; do sleep 0.02; done";
    let mut wrapper = AtTerminal::start(&["--", "sh", "-c", script]);
    wrapper.read_to("ready");
    let recorder = Pid::from_raw(wrapper.child.id().cast_signed());
    // Held back, so that it comes to the interrupt when the command is done with its own.
    kill(recorder, Signal::SIGSTOP).unwrap();
    wrapper.press(CTRL_C);
    let mut seen = wrapper.read_to("interrupted");
    // Read after the interrupt; the command shows a second one before it.
    kill(recorder, Signal::SIGTERM).unwrap();
    kill(recorder, Signal::SIGCONT).unwrap();
    seen += &wrapper.read_to("terminated");
    assert_eq!(seen.matches("interrupted").count(), 1, "{seen}");
    assert_eq!(wrapper.status(), Some(4));
}

pub fn a_terminals_interrupt_reaches_another_session() {
    let script = "trap 'exit 4' INT; echo ready; while :; do sleep 0.02; done";
    let mut wrapper = AtTerminal::start(&["--", "setsid", "sh", "-c", script]);
    wrapper.read_to("ready");
    wrapper.press(CTRL_C);
    assert_eq!(wrapper.status(), Some(4));
}

pub fn without_a_command_a_signal_ends_the_recording() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut wrapper = Wrapper::start(&mut command(&["-a"]));
        wrapper.expect_error("watching");
        wrapper.signal(signal);
        let finished = wrapper.finish();
        assert_eq!(finished.status.code(), Some(0));
        assert!(
            finished.stderr.starts_with("Stopped\n"),
            "{}",
            finished.stderr
        );
    }
}

pub fn what_is_ignored_stays_ignored() {
    let wrapped = command(&["-a"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", r#"trap "" HUP; exec "$@""#, "sh"])
        .arg(wrapped.get_program());
    let mut wrapper = Wrapper::start(shell.args(wrapped.get_args()));
    wrapper.expect_error("watching");
    let status = fs::read_to_string(format!("/proc/{}/status", wrapper.pid())).unwrap();
    let blocked = status
        .lines()
        .find_map(|line| line.strip_prefix("SigBlk:\t"))
        .unwrap();
    let blocked = u64::from_str_radix(blocked, 16).unwrap();
    let bit = |signal: Signal| blocked >> (signal as i32 - 1) & 1;
    assert_eq!((bit(Signal::SIGHUP), bit(Signal::SIGTERM)), (0, 1));
    wrapper.signal(Signal::SIGTERM);
    wrapper.finish();
}

pub fn the_command_survives_the_recorder() {
    let script = "echo $$; echo ready; read line; echo heard $line";
    let mut wrapper = Wrapper::start(&mut command(&["--", "sh", "-c", script]));
    let command = pidfd(wrapper.line().parse().unwrap());
    wrapper.expect("ready");
    wrapper.signal(Signal::SIGKILL);
    wrapper.stdin.as_mut().unwrap().write_all(b"you\n").unwrap();
    await_end(&command);
    assert_eq!(wrapper.finish().text(), "heard you\n");
}
