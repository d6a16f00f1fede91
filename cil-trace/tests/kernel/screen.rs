//! `top` on this machine's kernel: the screen agrees with plain frames, and with a recording made
//! at the same time.

use crate::eventually::eventually;
use crate::shell::{attempt, output};
use crate::tmux::Tmux;
use crate::tool::{program, report_by_tick, uint, window};
use crate::xfs::Xfs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The counts that are watched as rates: on the screen, and in the rows of `ticks`.
const RATES: [(&str, &str); 5] = [
    ("commits", "commits"),
    ("pushes", "pushes"),
    ("forces", "forces"),
    ("flushes requested", "flushes_requested"),
    ("flushes issued", "flushes_issued"),
];

/// Each tab's key, and what stands on it while dbench runs.
const TABS: [(&str, &str); 8] = [
    ("2", "log-force:fsync"),
    ("3", "wrote iclog"),
    ("4", "[4 Locks]"),
    ("5", "[5 ilock]"),
    ("6", "dbench"),
    ("7", "fan"),
    ("8", "raw_tracepoint xfs_log_force"),
    ("1", "Cache flushes by cause"),
];

/// `top` on the filesystem, in a terminal as wide as plain frames are.
fn top(xfs: &Xfs) -> Tmux {
    let tmux = Tmux::new();
    tmux.resize(100, 60);
    tmux.line(&format!(
        "{} top --device {}",
        program().display(),
        xfs.device()
    ));
    tmux.wait("a tick", |screen| {
        screen.contains("live") && has_ticks(screen)
    });
    tmux
}

/// Without a tick there is no rate.
fn has_ticks(screen: &str) -> bool {
    totals(screen).len() == RATES.len()
}

/// The counts since the start, as people read them: the last column of the table of rates.
fn totals(text: &str) -> BTreeMap<&'static str, u64> {
    let Some((_, table)) = text.split_once("\nRates") else {
        return BTreeMap::new();
    };
    let total = |name: &str| {
        let mut lines = table.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with(name))?;
        line.split_whitespace()
            .last()?
            .replace(',', "")
            .parse()
            .ok()
    };
    let found = RATES
        .iter()
        .filter_map(|(name, _)| Some((*name, total(name)?)));
    found.collect()
}

/// The same of a recording's ticks that end after `from` and not after `to`.
fn summed(report: &Value, from: u64, to: u64) -> BTreeMap<&'static str, u64> {
    let ticks = report["ticks"].as_array().unwrap().iter();
    let ticks: Vec<_> = ticks
        .filter(|tick| (from + 1..=to).contains(&uint(&tick["t_ns"])))
        .collect();
    let sum = |key: &str| ticks.iter().map(|tick| uint(&tick[key])).sum();
    RATES.iter().map(|(name, key)| (*name, sum(key))).collect()
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_screen_agrees_with_frames_and_with_a_recording() {
    let xfs = Xfs::new();
    let frames = xfs.outside("frames");
    let batch = Command::new(program())
        .args(["top", "--device", xfs.device(), "--batch", "1000000"])
        .stdout(File::create(&frames).unwrap())
        .spawn()
        .unwrap();
    let batch = Killed(batch);
    eventually("a frame comes", || !last_totals(&frames).is_empty());
    let tmux = top(&xfs);
    let file = xfs.outside("cil-trace.data");
    let mut recording = Command::new(program())
        .args([
            "record",
            "-q",
            "--keep-root",
            "--device",
            xfs.device(),
            "-o",
        ])
        .arg(&file)
        .args(["--", "dbench", "-t", "20", "-D"])
        .arg(xfs.mountpoint())
        .arg("2")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    tmux.wait("flushes of dbench", |screen| {
        totals(screen).get("flushes requested") > Some(&500)
    });
    for (key, words) in TABS {
        tmux.keys(&[key]);
        tmux.wait(words, |screen| screen.contains(words));
    }
    tmux.keys(&["p"]);
    let held = tmux.wait("held picture", |screen| screen.contains("PAUSED"));
    tmux.keys(&["s"]);
    let saved = tmux.wait("saved recording", |screen| screen.contains("saved"));
    assert!(recording.wait().unwrap().success());

    // What was saved is what was seen, and shows it again.
    let saved = tmux.directory().join(saved_name(&saved));
    let of_screen = report_by_tick(&saved);
    let seen = totals(&held);
    assert_eq!(
        seen,
        summed(&of_screen, 0, u64::MAX),
        "left: seen; right: saved\n{held}"
    );
    assert!(seen["flushes requested"] > 100, "{held}");
    let replayed = output(
        &program().to_string_lossy(),
        &[
            "top",
            "--replay",
            &*saved.to_string_lossy(),
            "--batch",
            "1000000",
        ],
    );
    let (_, frame) = replayed.rsplit_once("  tick ").unwrap();
    for line in frame.lines().skip(1).filter(|line| !line.is_empty()) {
        assert!(held.contains(line.trim_end()), "not seen: {line}\n{held}");
    }

    // What `record` saw meanwhile is within a tick of it.
    let recorded = report_by_tick(&file);
    let (start, moment) = (window(&recorded).start, window(&of_screen).end);
    let early = summed(&of_screen, 0, start);
    let ends: Vec<u64> = recorded["ticks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tick| uint(&tick["t_ns"]))
        .collect();
    let before = ends.iter().rfind(|end| **end <= moment);
    let before = before.copied().unwrap_or(start);
    // dbench may have ended by then; nothing came after it.
    let after = ends.iter().find(|end| **end >= moment);
    let after = after.copied().unwrap_or(before);
    let (least, most) = (summed(&recorded, 0, before), summed(&recorded, 0, after));
    for (name, count) in seen {
        let count = count - early[name];
        assert!(
            (least[name]..=most[name]).contains(&count),
            "{name}: {count} on the screen, {} to {} recorded",
            least[name],
            most[name]
        );
    }

    // When all is quiet, everybody has counted the same, and all that was recorded.
    tmux.keys(&["p"]);
    let all = summed(&recorded, 0, u64::MAX);
    eventually(
        "screen and frames agree, and hold all that was recorded",
        || {
            let (screen, frames) = (totals(&tmux.screen()), last_totals(&frames));
            !screen.is_empty()
                && screen == frames
                && frames.iter().all(|(name, count)| *count >= all[name])
        },
    );
    drop(batch);
    tmux.keys(&["q"]);
    eventually("the terminal is back", || tmux.state() == (false, true));
}

/// The totals of the last whole frame of a file.
fn last_totals(frames: &Path) -> BTreeMap<&'static str, u64> {
    let text = fs::read_to_string(frames).unwrap();
    // Each frame is written at once.
    let last = text.rfind("\nRates").unwrap_or(0);
    totals(&text[last..])
}

/// The file's name in `saved 3.00 s of ticks: cil-trace report NAME`.
fn saved_name(screen: &str) -> String {
    let (_, rest) = screen.split_once("cil-trace report ").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

/// A filesystem that is frozen, until this is dropped.
struct Frozen<'a>(&'a Xfs);

impl<'a> Frozen<'a> {
    fn new(xfs: &'a Xfs) -> Self {
        output("fsfreeze", &["-f".as_ref(), xfs.mountpoint().as_os_str()]);
        Self(xfs)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let mountpoint = self.0.mountpoint();
        if let Err(error) = attempt("fsfreeze", &["-u".as_ref(), mountpoint.as_os_str()]) {
            eprintln!("{error}");
        }
    }
}

#[test]
fn a_flush_that_hangs_is_seen_while_it_hangs() {
    let lower = Xfs::new();
    let upper = Xfs::over(&lower);
    let file = upper.mountpoint().join("file");
    File::create(&file).unwrap();
    output("sync", &["-f".as_ref(), upper.mountpoint().as_os_str()]);
    let tmux = top(&upper);
    let frozen = Frozen::new(&lower);
    // Its new time goes to the log, whose write has to flush first; the loop device cannot write.
    let mut sync = Command::new("sh")
        .args(["-c", r#"touch "$1" && sync "$1""#, "sh"])
        .arg(&file)
        .spawn()
        .unwrap();
    let alarm = format!("! a flush on {} has been under way for", upper.device());
    tmux.wait("alarm", |screen| screen.contains(&alarm));
    tmux.keys(&["7"]);
    let devices = tmux.wait("age of the flush", |screen| {
        let row = screen.lines().find(|line| line.starts_with(upper.device()));
        row.is_some_and(|row| row.contains(" s !"))
    });
    assert!(devices.contains("oldest"), "{devices}");
    drop(frozen);
    assert!(sync.wait().unwrap().success());
    tmux.wait("end of the alarm", |screen| !screen.contains(&alarm));
    tmux.keys(&["q"]);
    eventually("the terminal is back", || tmux.state() == (false, true));
}

#[test]
fn sigterm_gives_the_terminal_back() {
    let xfs = Xfs::new();
    let tmux = Tmux::new();
    tmux.command("stty -a > before");
    tmux.line(&format!(
        "sh -c 'echo $$ > pid; exec {} top --device {}'; echo status $? > status",
        program().display(),
        xfs.device()
    ));
    tmux.wait("a tick", has_ticks);
    output("kill", &["-TERM", tmux.file("pid").trim()]);
    assert_eq!(tmux.file("status"), "status 0\n");
    assert_eq!(tmux.state(), (false, true));
    tmux.command("stty -a > after");
    assert_eq!(tmux.file("after"), tmux.file("before"));
}
