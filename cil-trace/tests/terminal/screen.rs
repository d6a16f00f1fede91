//! What `top` does to its terminal.

use crate::tmux::Tmux;
use cil_trace::top::state::{REPLAYED, Source, State};
use cil_trace::top::terminal::Screen;
use cil_trace::top::theme::Theme;
use cil_trace_core::history::History;
use cil_trace_core::session::Header;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Makes this binary a program that panics.
pub const PANIC: &str = "--panic";

/// A program that panics while it has a screen.
pub fn panic() -> ! {
    let mut screen = Screen::new().unwrap();
    let source = Source::Live(Duration::from_secs(1));
    let history = History::new(Header::default(), REPLAYED);
    let state = State::new(history, source, Theme::of(|_| None));
    screen.draw(&state).unwrap();
    panic!("forced");
}

/// `top` on a recording.
fn top() -> String {
    let program = env!("CARGO_BIN_EXE_cil-trace");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/dbench.data");
    format!("{program} top --replay {}", recording.display())
}

/// A terminal with a program on it that has written its process id, and the modes from before.
fn started(program: &str) -> (Tmux, Pid) {
    let tmux = Tmux::new();
    tmux.command("stty -a > before");
    tmux.line(&format!(
        "sh -c 'echo $$ > pid; exec {program}'; echo status $? > status"
    ));
    let pid = Pid::from_raw(tmux.file("pid").trim().parse().unwrap());
    (tmux, pid)
}

/// The same with `top`, once it is drawn.
fn showing() -> (Tmux, Pid) {
    let (tmux, pid) = started(&top());
    tmux.wait("screen", |screen| screen.contains("[1 Overview]"));
    assert_eq!(tmux.state(), (true, false), "it has the screen to itself");
    (tmux, pid)
}

/// The terminal is as it was, and the program has ended so.
fn given_back(tmux: &Tmux, status: &str) {
    assert_eq!(tmux.file("status").trim(), status);
    assert_eq!(
        tmux.state(),
        (false, true),
        "the screen and the cursor are back"
    );
    tmux.command("stty -a > after");
    assert_eq!(tmux.file("after"), tmux.file("before"));
    tmux.command("echo it echoes");
    assert!(tmux.screen().contains("it echoes"));
}

pub fn the_terminal_comes_back_after_q() {
    let (tmux, _) = showing();
    tmux.keys(&["q"]);
    given_back(&tmux, "status 0");
}

pub fn the_terminal_comes_back_after_sigterm() {
    let (tmux, pid) = showing();
    kill(pid, Signal::SIGTERM).unwrap();
    given_back(&tmux, "status 0");
}

pub fn the_terminal_comes_back_after_sighup() {
    let (tmux, pid) = showing();
    kill(pid, Signal::SIGHUP).unwrap();
    given_back(&tmux, "status 0");
}

pub fn the_terminal_comes_back_after_a_panic() {
    let program = std::env::current_exe().unwrap();
    let (tmux, _) = started(&format!("{} {PANIC}", program.display()));
    tmux.wait("message", |screen| {
        screen.contains("forced") && screen.contains("panicked")
    });
    given_back(&tmux, "status 101");
}

pub fn ctrl_z_stops_and_fg_goes_on() {
    let (tmux, pid) = showing();
    tmux.keys(&["C-z"]);
    tmux.wait("word of the shell", |screen| screen.contains("Stopped"));
    assert_eq!(tmux.state(), (false, true));
    tmux.command("stty -a > stopped");
    assert_eq!(tmux.file("stopped"), tmux.file("before"));
    // In the background it waits, and does not draw over what is there.
    tmux.command("bg; echo in the background");
    await_process(pid.as_raw(), "stopped", |state| {
        state.is_some_and(|state| state.starts_with('T'))
    });
    assert_eq!(tmux.state(), (false, true));
    tmux.line("fg");
    tmux.wait("screen", |screen| screen.contains("[1 Overview]"));
    assert_eq!(tmux.state(), (true, false));
    tmux.keys(&["2"]);
    tmux.wait("other tab", |screen| screen.contains("[2 Flushes]"));
    tmux.keys(&["q"]);
    tmux.wait("prompt", |screen| screen.contains("fg"));
    assert_eq!(tmux.state(), (false, true));
    tmux.command("stty -a > after");
    assert_eq!(tmux.file("after"), tmux.file("before"));
}

pub fn a_stopped_program_ends_when_told_to() {
    let (tmux, pid) = showing();
    tmux.keys(&["C-z"]);
    tmux.wait("word of the shell", |screen| screen.contains("Stopped"));
    kill(pid, Signal::SIGTERM).unwrap();
    kill(pid, Signal::SIGCONT).unwrap();
    await_process(pid.as_raw(), "gone", |state| {
        state.is_none_or(|state| state.starts_with('Z'))
    });
    tmux.command("stty -a > after");
    assert_eq!(tmux.file("after"), tmux.file("before"));
    assert_eq!(tmux.state(), (false, true));
}

pub fn sigstop_and_sigcont_leave_a_screen() {
    let (tmux, pid) = showing();
    kill(pid, Signal::SIGSTOP).unwrap();
    // The shell takes the terminal as soon as it sees that.
    tmux.wait("word of the shell", |screen| screen.contains("Stopped"));
    tmux.line("fg");
    tmux.wait("screen", |screen| {
        screen.contains("[1 Overview]") && !screen.contains("Stopped")
    });
    tmux.keys(&["2"]);
    tmux.wait("screen", |screen| screen.contains("[2 Flushes]"));
    assert_eq!(tmux.state(), (true, false));
    tmux.keys(&["q"]);
    tmux.command("stty -a > after");
    assert_eq!(tmux.file("after"), tmux.file("before"));
}

pub fn it_ends_with_its_terminal() {
    let (tmux, pid) = showing();
    tmux.close();
    await_process(pid.as_raw(), "gone", |state| {
        state.is_none_or(|state| state.starts_with('Z'))
    });
}

pub fn a_resize_is_followed() {
    let (tmux, _) = showing();
    tmux.resize(60, 20);
    tmux.wait("complaint", |screen| screen.contains("60 x 20: too small"));
    tmux.resize(130, 40);
    tmux.wait("larger screen", |screen| {
        screen
            .lines()
            .nth(38)
            .is_some_and(|line| line.contains("[1 Overview]"))
    });
    tmux.resize(80, 24);
    tmux.wait("smaller screen", |screen| {
        let has = |row: usize, text: &str| {
            let line = screen.lines().nth(row);
            line.is_some_and(|line| line.contains(text))
        };
        // Both ends of it: tmux shows the lower part of the larger one first.
        has(0, "dbench.data") && has(22, "[1 Overview]")
    });
    tmux.keys(&["q"]);
    given_back(&tmux, "status 0");
}

pub fn no_color_is_honoured() {
    // 3x and 9x choose a colour of the text, 4x and 10x one of the background.
    let coloured = |text: &str| {
        let sequences = text.split("\x1b[").skip(1);
        sequences
            .filter_map(|rest| rest.split('m').next())
            .flat_map(|codes| codes.split(';'))
            .any(|code| {
                let code: u32 = code.parse().unwrap_or(0);
                matches!(code, 30..=38 | 40..=48 | 90..=97 | 100..=107)
            })
    };
    let (tmux, _) = showing();
    tmux.wait("tick", |screen| screen.contains("tick 1/4"));
    assert!(coloured(&colours(&tmux)), "curves have a colour");
    let (tmux, _) = started(&format!("env NO_COLOR=1 {}", top()));
    tmux.wait("tick", |screen| screen.contains("tick 1/4"));
    assert!(!coloured(&colours(&tmux)), "{}", colours(&tmux));
}

pub fn keys_write_files() {
    let (tmux, _) = showing();
    tmux.keys(&["End"]);
    tmux.wait("end", |screen| screen.contains("tick 4/4"));
    tmux.keys(&["s"]);
    tmux.wait("message", |screen| screen.contains("saved"));
    tmux.keys(&["f"]);
    tmux.wait("message", |screen| screen.contains("drew the flushes"));
    tmux.keys(&["3"]);
    tmux.wait("other tab", |screen| screen.contains("[3 Pushes]"));
    tmux.keys(&["f"]);
    // The recording is older than the stacks of pushes.
    tmux.wait("message", |screen| screen.contains("nothing to draw"));
    tmux.keys(&["q"]);
    given_back(&tmux, "status 0");
    let saved = files(&tmux, ".data");
    let report = Command::new(env!("CARGO_BIN_EXE_cil-trace"))
        .arg("report")
        .arg(&saved[0])
        .arg("flushes")
        .output()
        .unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("log-force:fsync"), "{report}");
    let pictures = files(&tmux, ".svg");
    assert_eq!(pictures.len(), 1, "{pictures:?}");
    let picture = std::fs::read_to_string(&pictures[0]).unwrap();
    assert!(picture.contains("Cache flushes") && picture.contains("</svg>"));
}

pub fn a_reader_that_goes_ends_it() {
    let tmux = Tmux::new();
    tmux.command(&format!(
        "{} | head -n 1; echo ${{PIPESTATUS[0]}} > status",
        top()
    ));
    assert_eq!(tmux.file("status"), "0\n");
    assert!(tmux.screen().contains("tick 0,"), "{}", tmux.screen());
}

pub fn without_a_terminal_frames_come() {
    let tmux = Tmux::new();
    tmux.command(&format!("{} > frames; echo $? > status", top()));
    assert_eq!(tmux.file("status"), "0\n");
    let frames = tmux.file("frames");
    for tick in 0..5 {
        assert!(frames.contains(&format!("  tick {tick}, ")), "{frames}");
    }
    assert!(!frames.contains('\x1b'));
}

/// The screen with the escape sequences of colours.
fn colours(tmux: &Tmux) -> String {
    tmux.run(&["capture-pane", "-p", "-e"])
}

/// The files in the shell's directory with such an ending.
fn files(tmux: &Tmux, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(tmux.directory()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect()
}

/// Waits until a process is as wanted.
///
/// # Panics
/// It does not become so.
fn await_process(pid: i32, what: &str, wanted: impl Fn(Option<&str>) -> bool) {
    let begun = Instant::now();
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        // The name in parentheses may hold anything.
        let state = stat.as_deref().and_then(|stat| stat.rsplit(") ").next());
        if wanted(state) {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{pid} is not {what}: {stat:?}"
        );
        sleep(Duration::from_millis(20));
    }
}
