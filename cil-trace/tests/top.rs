//! The screen of `top` without a terminal: what it shows, and what keys do to it.
//!
//! `INSTA_UPDATE=always cargo test -p cil-trace --test top` blesses a wanted change.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "top/locks.rs"]
mod locks;

use cil_trace::top::state::{KEPT, REPLAYED, SPANS, Source, State};
use cil_trace::top::tabs::TABS;
use cil_trace::top::theme::Theme;
use cil_trace::top::update::{Effect, Input};
use cil_trace::top::view;
use cil_trace_common::cause::Cause;
use cil_trace_common::loss::LossCause;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_core::device::{Dev, Device};
use cil_trace_core::history::History;
use cil_trace_core::recording::Recording;
use cil_trace_core::series::Series;
use cil_trace_core::session::{Header, Machine, Outcome, ProbeOutcome};
use cil_trace_core::tick::{Cost, InFlight, Loss, Tick};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use std::path::Path;
use std::time::Duration;

const THEME: Theme = Theme {
    colour: true,
    unicode: true,
};

const S: u64 = 1_000_000_000;

fn dbench() -> Recording {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/dbench.data");
    Recording::open(&path).unwrap()
}

/// A replay, with every tick that it wants read.
struct Replay {
    recording: Recording,
    state: State,
}

impl Replay {
    fn new(theme: Theme) -> Self {
        let recording = dbench();
        let source = Source::Replay {
            file: "dbench.data".to_owned(),
            last: recording.last_tick().unwrap().unwrap(),
            speed: 1.0,
        };
        let history = History::new(recording.header().clone(), REPLAYED);
        let state = State::new(history, source, theme);
        let mut replay = Self { recording, state };
        replay.read();
        replay
    }

    fn read(&mut self) {
        while let Some((from, to)) = self.state.wanted() {
            let most = usize::try_from(to - from + 1).unwrap();
            let ticks = self.recording.ticks_from(from, most).unwrap();
            self.state.update(Input::Ticks(ticks));
        }
    }

    fn press(&mut self, keys: &[KeyCode]) -> Option<Effect> {
        let mut effect = None;
        for &key in keys {
            effect = press(&mut self.state, key);
            self.read();
        }
        effect
    }
}

fn press(state: &mut State, key: KeyCode) -> Option<Effect> {
    state.update(Input::Key(KeyEvent::new(key, KeyModifiers::NONE)))
}

fn letters(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

fn drawn(state: &mut State, columns: u16, rows: u16) -> Terminal<TestBackend> {
    state.update(Input::Resize(columns, rows));
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| view::draw(state, frame)).unwrap();
    terminal
}

fn text(state: &mut State, columns: u16, rows: u16) -> String {
    drawn(state, columns, rows).backend().to_string()
}

/// The first line tells the time.
fn below_the_title(text: &str) -> String {
    text.split_once('\n').unwrap().1.to_owned()
}

fn golden(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_tab_in_every_size_is_as_blessed() {
    let mut replay = Replay::new(THEME);
    replay.press(&[KeyCode::End]);
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        let mut all = String::new();
        for tab in TABS {
            replay.press(&[KeyCode::Char(tab.key)]);
            all += &format!(
                "== {}\n{}",
                tab.name,
                text(&mut replay.state, columns, rows)
            );
        }
        replay.press(&[KeyCode::Char('?')]);
        all += &format!("== help\n{}", text(&mut replay.state, columns, rows));
        replay.press(&[KeyCode::Esc, KeyCode::Char('2'), KeyCode::Enter]);
        all += &format!(
            "== a row of flushes\n{}",
            text(&mut replay.state, columns, rows)
        );
        replay.press(&[KeyCode::Esc]);
        golden(&format!("top.{columns}x{rows}"), &all);
    }
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    let mut replay = Replay::new(THEME);
    for (columns, rows) in [(79, 24), (80, 23), (20, 3), (1, 1)] {
        let text = text(&mut replay.state, columns, rows);
        assert!(
            columns < 20 || text.contains(&format!("{columns} x {rows}")),
            "{text}"
        );
    }
    golden("top.too-small", &text(&mut replay.state, 40, 10));
}

#[test]
fn time_goes_back_and_on() {
    let mut replay = Replay::new(THEME);
    let last = replay.recording.last_tick().unwrap().unwrap();
    assert!(last >= 2, "the recording has several ticks");
    assert_eq!((replay.state.moment, replay.state.paused), (0, false));
    replay.state.update(Input::Beat);
    replay.read();
    assert_eq!(replay.state.moment, 1);
    replay.press(&[KeyCode::Left]);
    assert_eq!((replay.state.moment, replay.state.paused), (0, true));
    replay.state.update(Input::Beat);
    assert_eq!(replay.state.moment, 0, "it is held");
    replay.press(&[KeyCode::Right, KeyCode::Right]);
    assert_eq!(replay.state.moment, 2);
    replay.press(&[KeyCode::End]);
    assert_eq!(replay.state.moment, last);
    replay.press(&[KeyCode::Right]);
    assert_eq!(replay.state.moment, last, "there is no more");
    replay.press(&[KeyCode::Home]);
    assert_eq!(replay.state.moment, 0);
    replay.press(&[KeyCode::Char('p')]);
    for _ in 0..=last {
        replay.state.update(Input::Beat);
        replay.read();
    }
    assert_eq!((replay.state.moment, replay.state.paused), (last, true));
}

#[test]
fn going_back_beyond_what_is_kept_reads_the_recording_again() {
    let mut replay = Replay::new(THEME);
    replay.press(&[KeyCode::End]);
    let last = replay.state.moment;
    let there = below_the_title(&text(&mut replay.state, 120, 40));
    replay.state.history.keep(cil_trace_core::history::Keep {
        ns: u64::MAX,
        ticks: 1,
    });
    assert_eq!(replay.state.history.bounds(), Some((last, last)));
    replay.press(&[KeyCode::Home]);
    assert_eq!(replay.state.moment, 0);
    replay.press(&[KeyCode::End]);
    assert_eq!(below_the_title(&text(&mut replay.state, 120, 40)), there);
}

#[test]
fn the_screen_shows_what_batch_prints() {
    let mut replay = Replay::new(THEME);
    replay.press(&[KeyCode::Home, KeyCode::Right]);
    let screen = text(&mut replay.state, 100, 60);
    let batch = assert_cmd::Command::new(env!("CARGO_BIN_EXE_cil-trace"))
        .args([
            "top",
            "--replay",
            "tests/recordings/dbench.data",
            "--batch",
            "2",
        ])
        .env("TZ", "UTC")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .assert()
        .success();
    let batch = String::from_utf8(batch.get_output().stdout.clone()).unwrap();
    let second = batch.split("tick 1,").nth(1).unwrap();
    let mut compared = 0;
    for line in second
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
    {
        assert!(
            screen.contains(line.trim_end()),
            "not on the screen: {line}\n{screen}"
        );
        compared += 1;
    }
    assert!(compared > 15, "{batch}");
}

#[test]
fn a_recording_without_an_end_is_announced() {
    let copy = tempfile::tempdir().unwrap();
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    for name in ["interrupted.data", "interrupted.data-wal"] {
        std::fs::copy(recordings.join(name), copy.path().join(name)).unwrap();
    }
    let batch = assert_cmd::Command::new(env!("CARGO_BIN_EXE_cil-trace"))
        .args(["top", "--replay", "interrupted.data", "--batch", "1"])
        .current_dir(copy.path())
        .assert()
        .success();
    let told = String::from_utf8(batch.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("interrupted.data-wal and interrupted.data-shm belong to it"),
        "{told}"
    );
}

#[test]
fn sorting_filtering_and_choosing() {
    let mut replay = Replay::new(THEME);
    replay.press(&[KeyCode::End, KeyCode::Char('6')]);
    let column = |state: &State, name: &str| -> Vec<String> {
        let table = state.shown.table.as_ref().unwrap();
        let place = table
            .columns
            .iter()
            .position(|column| column.name == name)
            .unwrap();
        table.rows.iter().map(|row| row[place].human()).collect()
    };
    replay.press(&letters(">"));
    let mut pids = column(&replay.state, "pid");
    pids.sort_by_key(|pid| pid.parse::<u64>().unwrap());
    assert_eq!(column(&replay.state, "pid"), pids);
    replay.press(&letters("r"));
    pids.reverse();
    assert_eq!(column(&replay.state, "pid"), pids);
    // The chosen row is found again when rows move.
    replay.press(&[KeyCode::Down]);
    let chosen = pids[1].clone();
    replay.press(&letters("r"));
    let row = replay.state.place().row;
    assert_eq!(column(&replay.state, "pid")[row], chosen);

    replay.press(&letters("/DBENCH"));
    assert!(replay.state.filtering);
    replay.press(&[KeyCode::Enter]);
    let comms = column(&replay.state, "comm");
    assert!(
        !comms.is_empty() && comms.iter().all(|comm| comm == "dbench"),
        "{comms:?}"
    );
    replay.press(&letters("/nothing has this"));
    assert!(text(&mut replay.state, 80, 24).contains("the filter hides"));
    replay.press(&[KeyCode::Esc]);
    assert_eq!(replay.state.filter, "");
}

#[test]
fn a_row_is_shown_whole() {
    let mut replay = Replay::new(THEME);
    replay.press(&[KeyCode::End, KeyCode::Char('2'), KeyCode::Enter]);
    let lines = replay.state.shown.lines.join("\n");
    for part in [
        "cause",
        "latency p50",
        "loop0 log-force:fsync: latency",
        "@@@",
        "stack of",
    ] {
        assert!(lines.contains(part), "no {part}:\n{lines}");
    }
    replay.press(&[KeyCode::Esc]);
    assert_eq!(replay.state.overlay, None);
}

#[test]
fn what_the_state_cannot_do_is_asked_for() {
    let mut replay = Replay::new(THEME);
    let effects = [
        ("q", Effect::Quit),
        ("s", Effect::Save),
        ("f", Effect::Flamegraph),
    ];
    for (key, effect) in effects {
        assert_eq!(replay.press(&letters(key)), Some(effect));
    }
    for (key, effect) in [
        ('c', Effect::Quit),
        ('z', Effect::Suspend),
        ('l', Effect::Redraw),
    ] {
        let key = KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
        assert_eq!(replay.state.update(Input::Key(key)), Some(effect));
    }
    let mut live = live(1);
    let asked = press(&mut live, KeyCode::Char('+'));
    assert_eq!(asked, Some(Effect::Interval(Duration::from_secs(2))));
    press(&mut live, KeyCode::Char('-'));
    let asked = press(&mut live, KeyCode::Char('-'));
    assert_eq!(asked, Some(Effect::Interval(Duration::from_millis(500))));
}

const LOOP0: Dev = Dev::new(7, 0);
const LOOP1: Dev = Dev::new(7, 1);

/// A live session of so many seconds: two filesystems, a flush that hangs, and a loss at the end.
fn live(seconds: u64) -> State {
    let xfs = |dev, name: &str| Device {
        dev,
        name: name.to_owned(),
        filesystem: Some("xfs".to_owned()),
        mountpoint: Some(format!("/mnt/{name}")),
        request_based: Some(true),
        ..Device::default()
    };
    let attached = [
        Probe::Commits,
        Probe::Pushes,
        Probe::Forces,
        Probe::FlushRequests,
        Probe::FlushEnd,
    ];
    let mut probes: Vec<_> = attached
        .iter()
        .map(|probe| ProbeOutcome {
            probe: probe.name().to_owned(),
            outcome: Outcome::Attached,
            how: "raw_tracepoint".to_owned(),
            reason: String::new(),
        })
        .collect();
    probes.push(ProbeOutcome {
        probe: Probe::FlushIssues.name().to_owned(),
        outcome: Outcome::Skipped,
        how: String::new(),
        reason: "no tracepoint block_rq_issue".to_owned(),
    });
    let header = Header {
        machine: Machine {
            kernel: "6.12.0".to_owned(),
            cpus: 2,
            ..Machine::default()
        },
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        probes,
        devices: vec![xfs(LOOP0, "loop0"), xfs(LOOP1, "loop1")],
        ..Header::default()
    };
    let source = Source::Live(Duration::from_secs(1));
    let mut state = State::new(History::new(header, KEPT), source, THEME);
    for second in 0..seconds {
        state.update(Input::Ticks(vec![second_of(second, second + 1 == seconds)]));
    }
    state
}

fn second_of(second: u64, last: bool) -> Tick {
    let of = |metric, dev, cause: Cause, count| {
        let label = cause as u16;
        (
            Series {
                label,
                ..Series::of(metric, dev)
            },
            count,
        )
    };
    let end_ns = (second + 1) * S;
    Tick {
        index: second,
        start_ns: second * S,
        end_ns,
        counters: vec![
            (Series::of(Metric::Commits, LOOP0), 100 + second * 10),
            (Series::of(Metric::Commits, LOOP1), 7),
            of(Metric::FlushRequested, LOOP0, Cause::LogForceFsync, 40),
            of(Metric::FlushRequested, LOOP1, Cause::Gc, 2),
        ],
        losses: if last {
            vec![Loss {
                probe: Probe::FlushRequests,
                cause: LossCause::MapFull,
                count: 3,
            }]
        } else {
            vec![]
        },
        in_flight: Some(vec![InFlight {
            dev: LOOP1,
            flushes: 1,
            oldest_ns: S / 2,
            cause: Cause::Gc as u16,
        }]),
        cost: Some(Cost {
            bpf_run_ns: 20_000_000,
            own_ns: 4_000_000,
        }),
        ..Tick::default()
    }
}

#[test]
fn what_calls_for_attention_is_red_and_marked() {
    let mut state = live(5);
    press(&mut state, KeyCode::Char('7'));
    let screen = text(&mut state, 80, 24);
    for part in [
        "! a flush on loop1 has been under way for 4.50 s",
        "LOST: 3 events",
        "4.50 s !",
        "tracing took 1 % of the CPUs, cil-trace itself 0.2 %",
    ] {
        assert!(screen.contains(part), "no {part}:\n{screen}");
    }
    // What is not measured is no number.
    let issued = screen
        .lines()
        .find(|line| line.contains("flushes issued "))
        .unwrap();
    assert_eq!(issued.split_whitespace().nth(2), Some("-"), "{screen}");
    golden("top.alarms", &screen);
    let red = |state: &mut State| {
        let terminal = drawn(state, 80, 24);
        let cells = terminal.backend().buffer().content().to_vec();
        let red = cells.iter().filter(|cell| cell.fg == Color::Red);
        red.map(|cell| cell.symbol()).collect::<String>()
    };
    let marked = red(&mut state);
    assert!(
        marked.contains("4.50 s !") && marked.contains("LOST"),
        "{marked}"
    );
    state.theme = Theme {
        colour: false,
        unicode: true,
    };
    assert_eq!(red(&mut state), "");
    let terminal = drawn(&mut state, 80, 24);
    let cells = terminal.backend().buffer().content();
    assert!(
        cells
            .iter()
            .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
}

#[test]
fn no_colour_stands_on_a_background_of_ours() {
    // Whether the terminal is light or dark, its own background is behind everything.
    let mut replay = Replay::new(THEME);
    for tab in TABS {
        replay.press(&[KeyCode::End, KeyCode::Char(tab.key)]);
        let terminal = drawn(&mut replay.state, 80, 24);
        let cells = terminal.backend().buffer().content();
        assert!(cells.iter().all(|cell| cell.bg == Color::Reset));
        let unreadable = [
            Color::White,
            Color::Yellow,
            Color::LightYellow,
            Color::Gray,
            Color::Black,
        ];
        assert!(cells.iter().all(|cell| !unreadable.contains(&cell.fg)));
    }
}

#[test]
fn an_ascii_terminal_gets_ascii() {
    let mut replay = Replay::new(Theme {
        colour: false,
        unicode: false,
    });
    for tab in TABS {
        replay.press(&[KeyCode::End, KeyCode::Char(tab.key)]);
        let screen = drawn(&mut replay.state, 80, 24);
        let cells = screen.backend().buffer().content();
        assert!(
            cells.iter().all(|cell| cell.symbol().is_ascii()),
            "{}",
            tab.name
        );
    }
}

#[test]
fn a_filesystem_at_a_time() {
    let mut state = live(5);
    press(&mut state, KeyCode::Char('2'));
    let rows = |state: &State| state.shown.table.as_ref().unwrap().rows.len();
    assert_eq!(rows(&state), 2);
    press(&mut state, KeyCode::Char('d'));
    assert_eq!(state.device().as_deref(), Some("loop0"));
    assert_eq!(rows(&state), 1);
    assert!(
        text(&mut state, 80, 24).contains("140/s"),
        "its own commits"
    );
    press(&mut state, KeyCode::Char('d'));
    assert_eq!(state.device().as_deref(), Some("loop1"));
    assert!(text(&mut state, 80, 24).contains("7/s"));
    press(&mut state, KeyCode::Char('d'));
    assert_eq!(state.device(), None);
    assert!(text(&mut state, 80, 24).contains("147/s"));
}

#[test]
fn a_held_picture_stays_while_time_goes_on() {
    let mut state = live(200);
    assert_eq!(
        state.history.bounds(),
        Some((80, 199)),
        "two minutes are kept"
    );
    press(&mut state, KeyCode::Char('p'));
    let held = text(&mut state, 80, 24);
    for second in 200..300 {
        state.update(Input::Ticks(vec![second_of(second, false)]));
    }
    let later = text(&mut state, 80, 24);
    assert_eq!(below_the_title(&held), below_the_title(&later));
    assert!(later.contains("-100.0 s"), "{later}");
    press(&mut state, KeyCode::Home);
    assert_eq!(
        state.moment, 80,
        "what was kept when it was held is still there"
    );
    press(&mut state, KeyCode::Left);
    assert!(state.message.is_some(), "nothing older");
    press(&mut state, KeyCode::Char('p'));
    assert_eq!((state.moment, state.paused), (299, false));
    assert_eq!(state.history.bounds(), Some((180, 299)));
}

#[test]
fn a_stretch_is_what_its_name_says() {
    let mut state = live(130);
    let commits = |state: &mut State| {
        let screen = text(state, 80, 24);
        let line = screen
            .lines()
            .find(|line| line.contains("commits "))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    // 107 and 10 more each second: of the last, of ten, of 120, of all.
    for (span, rate) in SPANS.iter().zip(["1,397/s", "1,352/s", "802/s", "752/s"]) {
        assert!(text(&mut state, 80, 24).contains(&format!("shown: {}", span.1)));
        assert_eq!(commits(&mut state), rate, "{}", span.1);
        press(&mut state, KeyCode::Char('w'));
    }
}

#[test]
fn any_keys_and_any_sizes_do_no_harm() {
    const KEYS: &[KeyCode] = &[
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::F(1),
        KeyCode::Null,
    ];
    let mut random = fastrand::Rng::with_seed(7);
    let mut states = [live(3), Replay::new(THEME).state];
    let recording = dbench();
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let mut seconds = 3;
    for step in 0..100_000_u32 {
        let state = &mut states[usize::from(step % 4 == 0)];
        let input = match random.u8(..) {
            0..20 => {
                let size = (random.u16(1..210), random.u16(1..70));
                terminal.backend_mut().resize(size.0, size.1);
                Input::Resize(size.0, size.1)
            }
            20..24 => Input::Beat,
            24..30 if !state.source.is_replay() => {
                seconds += 1;
                Input::Ticks(vec![second_of(seconds - 1, random.bool())])
            }
            30..120 => Input::Key(KeyEvent::new(
                KEYS[random.usize(..KEYS.len())],
                KeyModifiers::NONE,
            )),
            120..126 => Input::Key(KeyEvent::new(
                KeyCode::Char(random.lowercase()),
                KeyModifiers::CONTROL,
            )),
            _ => Input::Key(KeyEvent::new(
                KeyCode::Char(random.char(' '..='~')),
                KeyModifiers::NONE,
            )),
        };
        state.update(input);
        if let Some((from, to)) = state.wanted() {
            let most = usize::try_from(to - from + 1).unwrap();
            let ticks = recording.ticks_from(from, most).unwrap();
            state.update(Input::Ticks(ticks));
        }
        terminal.draw(|frame| view::draw(state, frame)).unwrap();
    }
}
