#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::device::{Dev, Device};
use crate::model::Model;
use crate::profile::KINDS;
use crate::series::Series;
use crate::session::{Footer, Header, Outcome, ProbeOutcome, Workload};
use crate::tick::{Stack, StackRow, StackSums, Tick, Who};
use cil_trace_common::cause::Cause;
use cil_trace_common::metric::Metric;
use cil_trace_common::stack::StackKind;
use proptest::prelude::*;

const SDA: Dev = Dev::new(8, 0);

fn header() -> Header {
    Header {
        devices: vec![Device {
            dev: SDA,
            name: "sda".into(),
            ..Device::default()
        }],
        ..Header::default()
    }
}

/// A recording of flushes of sda for fsync: for each stack, leaf first, how many.
fn flushes(stacks: &[(&[&str], u64)]) -> Model {
    let mut model = Model::new(header());
    let row = |id: u32, count: u64| StackRow {
        kind: StackKind::Flush,
        label: Cause::LogForceFsync.name().into(),
        dev: SDA,
        who: None,
        kernel: Some(id),
        user: None,
        sums: StackSums {
            count,
            ..StackSums::default()
        },
    };
    let numbered = || (1..).zip(stacks);
    model.apply(&Tick {
        stacks: numbered()
            .map(|(id, (frames, _))| Stack {
                id,
                frames: frames.iter().map(|&frame| frame.to_owned()).collect(),
            })
            .collect(),
        stack_rows: numbered().map(|(id, &(_, count))| row(id, count)).collect(),
        ..Tick::default()
    });
    model
}

/// A counter says that so many flushes were requested.
fn requested(model: &mut Model, count: u64) {
    let series = Series {
        label: Cause::LogForceFsync as u16,
        ..Series::of(Metric::FlushRequested, SDA)
    };
    model.apply(&Tick {
        counters: vec![(series, count)],
        ..Tick::default()
    });
}

fn draw(model: &Model, kind: StackKind, weight: Weight) -> Flamegraph {
    let profile = Profile::of(model, kind, weight).unwrap();
    flamegraph(&profile, Script::With).unwrap()
}

fn draw_flushes(model: &Model) -> Flamegraph {
    draw(model, StackKind::Flush, Weight::Count)
}

#[test]
fn a_name_cannot_become_another_frame_stack_or_weight() {
    let graph = draw_flushes(&flushes(&[(&["a;b 7", "x\n12", "operator new(int)"], 5)]));
    for frame in ["a:b_7", "x_12", "operator new(int)"] {
        let title = format!("<title>{frame} (5 flushes, 100.00%)");
        assert!(graph.svg.contains(&title), "{frame}");
    }
}

#[test]
fn markup_in_a_name_is_escaped() {
    let name = "<script>alert(1)</script>";
    let mut model = flushes(&[(&[name], 1)]);
    let frame = |comm: &str| StackRow {
        kind: StackKind::Offcpu,
        label: String::new(),
        dev: Dev::NONE,
        who: Some(Who {
            pid: 7,
            comm: comm.into(),
            workload: true,
        }),
        kernel: None,
        user: Some(1),
        sums: StackSums {
            count: 1,
            ..StackSums::default()
        },
    };
    model.apply(&Tick {
        stack_rows: vec![frame(name), frame("a;b\nc d")],
        ..Tick::default()
    });
    let offcpu = draw(&model, StackKind::Offcpu, Weight::Count);
    assert!(offcpu.svg.contains("<title>a:b c d (1 waits"));
    for graph in [draw_flushes(&model), offcpu] {
        assert!(graph.svg.contains("&lt;script&gt;alert(1)"));
        assert!(!graph.svg.contains(name));
    }
}

#[test]
fn title_and_subtitle_say_what_is_shown_and_what_is_not() {
    let mut model = flushes(&[(&["xlog_sync"], 1)]);
    requested(&mut model, 8);
    let named = draw_flushes(&model).svg;
    assert!(
        named.contains("width: flushes (bios with PREFLUSH or FUA); 7 lost, 88 % unnamed. red")
    );
    assert!(named.contains("red XFS log, orange XFS, blue block"));
    assert!(named.contains("total_samples=\"8\""));
    assert!(named.contains("<title>[stack lost] (7 flushes, 87.50%)"));

    let frames = ["0xffffffff81000000", "xlog_sync", "[unknown]", "vfs_fsync"];
    let nameless = draw_flushes(&flushes(&[(&frames, 1)]));
    assert!((nameless.unresolved_pct - 50.0).abs() < 1e-9);
    assert!(nameless.svg.contains("WARNING: 50 % of frames"));
    let named = draw_flushes(&flushes(&[(&["xlog_sync"], 1)])).svg;
    assert!(!named.contains("WARNING") && named.contains("; 0 lost"));
}

#[test]
fn the_subtitle_fits() {
    // 1,200 pixels, of which a character of this size takes about seven.
    const FITS: usize = 166;
    let model = Model::new(Header::default());
    for words in KINDS {
        for weight in Weight::ALL {
            if let Ok(mut profile) = Profile::of(&model, words.kind, weight) {
                profile.hz = (words.kind == StackKind::Cpu).then_some(997);
                profile.missing = 9_999_999;
                let unit = Unit::of(words.unit, weight, 1);
                let text = subtitle(&profile, &unit, 99.0);
                assert!(text.len() <= FITS, "{}: {text}", text.len());
            }
        }
    }
}

#[test]
fn kernel_and_user_code_have_their_colours() {
    let mut model = flushes(&[(&["xlog_sync"], 1)]);
    let row = StackRow {
        kind: StackKind::Cpu,
        label: String::new(),
        dev: Dev::NONE,
        who: Some(Who {
            pid: 7,
            comm: "kworker/3:1".into(),
            workload: false,
        }),
        kernel: Some(1),
        user: Some(2),
        sums: StackSums {
            count: 1,
            time_ns: 20_000_000_000,
            ..StackSums::default()
        },
    };
    model.apply(&Tick {
        stacks: vec![Stack {
            id: 2,
            frames: vec!["xlog_sync".into(), "main".into()],
        }],
        stack_rows: vec![row],
        ..Tick::default()
    });
    let svg = draw(&model, StackKind::Cpu, Weight::Time).svg;
    assert!(svg.contains("rgb(232,106,88)") && svg.contains("rgb(240,222,134)"));
    // Below the stack, the thread; above the program, the kernel.
    let rows = ["kworker", "main", "xlog_sync", "xlog_sync"];
    for row in rows {
        let title = format!("<title>{row} (20,000 ms, 100.00%)");
        let times = rows.iter().filter(|&&other| other == row).count();
        assert_eq!(svg.matches(&title).count(), times, "{row}");
    }
}

#[test]
fn the_same_numbers_give_the_same_picture() {
    let (a, b): ((&[&str], _), (&[&str], _)) = ((&["a", "b"], 3), (&["c", "b"], 4));
    assert_eq!(
        draw_flushes(&flushes(&[a, b])),
        draw_flushes(&flushes(&[b, a]))
    );
}

#[test]
fn a_frame_that_another_name_begins_with_is_drawn_once() {
    let graph = draw_flushes(&flushes(&[
        (&["x", "f"], 1),
        (&["x", "f(int, int)"], 1),
        (&["y", "f"], 1),
        (&["f"], 1),
    ]));
    assert_eq!(graph.svg.matches("<title>f (3 flushes").count(), 1);
}

#[test]
fn what_is_too_narrow_stays_in_the_sum() {
    let graph = draw_flushes(&flushes(&[(&["a", "r"], 1_000_000), (&["b", "r"], 3)]));
    assert!(graph.svg.contains("total_samples=\"1000003\""));
    assert!(graph.svg.contains("<title>r (1,000,003 flushes"));
    assert!(!graph.svg.contains("<title>b ("));
}

#[test]
fn no_stacks_give_a_picture_that_says_why() {
    let none = draw_flushes(&flushes(&[]));
    assert!(none.svg.contains("Nothing to draw") && none.empty.is_some());
    let mut header = header();
    header.probes = vec![ProbeOutcome {
        probe: "flush-requests".into(),
        outcome: Outcome::Skipped,
        how: String::new(),
        reason: "not in --probes <b>".into(),
    }];
    let unmeasured = draw_flushes(&Model::new(header));
    assert!(
        unmeasured
            .svg
            .contains("flush-requests was skipped: not in --probes &lt;b>")
    );
}

#[test]
fn weights_that_a_kind_does_not_have_are_refused() {
    let model = flushes(&[(&["a"], 1)]);
    let error = Profile::of(&model, StackKind::Cpu, Weight::Bytes).unwrap_err();
    assert!(error.to_string().contains("count or time"), "{error}");
}

#[test]
fn absurd_weights_and_depths_do_no_harm() {
    let deep = vec!["f"; 100_000];
    let model = flushes(&[
        (&["a"], u64::MAX),
        (&["b"], u64::MAX),
        (&["a"], 1),
        (&deep, u64::MAX),
    ]);
    let profile = Profile::of(&model, StackKind::Flush, Weight::Count).unwrap();
    assert!(flamegraph(&profile, Script::Without).is_ok());
}

proptest! {
    #[test]
    fn any_names_draw_as_many_stacks_as_there_are(
        stacks in proptest::collection::vec(
            (proptest::collection::vec("\\PC{0,12}|[; \n\t0-9#.]{0,6}", 0..4), 1_u64..1_000_000),
            1..6,
        )
    ) {
        let borrowed: Vec<_> = stacks
            .iter()
            .map(|(frames, count)| {
                (frames.iter().map(String::as_str).collect::<Vec<_>>(), *count)
            })
            .collect();
        let stacks: Vec<_> = borrowed
            .iter()
            .map(|(frames, count)| (frames.as_slice(), *count))
            .collect();
        let total: u64 = stacks.iter().map(|(_, count)| count).sum();
        let graph = draw_flushes(&flushes(&stacks));
        // inferno drops lines that it cannot parse, and writes what it has drawn.
        let drawn = format!("total_samples=\"{total}\"");
        prop_assert!(graph.svg.contains(&drawn));
    }
}

/// Runs of sda's flushes: a window of so many seconds, a throughput, and for each stack how many.
fn run(seconds: u64, throughput: Option<f64>, stacks: &[(&[&str], u64)]) -> Model {
    let mut model = flushes(stacks);
    model.finish(Footer {
        window_end_ns: seconds * 1_000_000_000,
        workload: Some(Workload {
            metrics: throughput
                .map(|value| ("dbench.throughput_MB/s".to_owned(), value))
                .into_iter()
                .collect(),
            ..Workload::default()
        }),
        ..Footer::default()
    });
    model
}

fn compare(shown: &[Model], base: &[Model], per: Option<Per>) -> String {
    let of = |models| -> Vec<Profile<'_>> {
        let models: &[Model] = models;
        let runs = models.iter();
        runs.map(|model| Profile::of(model, StackKind::Flush, Weight::Count).unwrap())
            .collect()
    };
    let (shown, base) = (of(shown), of(base));
    let per = per.unwrap_or_else(|| {
        let all: Vec<_> = shown.iter().chain(&base).collect();
        Per::common(&all)
    });
    difference(&shown, &base, &per, Script::Without)
        .unwrap()
        .svg
}

#[test]
fn sides_of_different_length_are_compared_by_the_second() {
    let shown = [run(10, None, &[(&["f"], 300), (&["same"], 100)])];
    let base = [run(20, None, &[(&["f"], 300), (&["same"], 200)])];
    let svg = compare(&shown, &base, None);
    // 30 a second against 15, and 10 against 10; widths are those of the side that is shown.
    assert!(
        svg.contains("<title>f (+100 %) (300 flushes, 75.00%)"),
        "{svg}"
    );
    assert!(svg.contains("<title>same (+0 %) (100 flushes"), "{svg}");
    // What stands on a frame counts for it.
    assert!(svg.contains("<title>sda (+60 %) (400 flushes"), "{svg}");
    assert!(svg.contains("base (1 run) scaled per second"));
    assert!(svg.contains("noise unknown"));
}

#[test]
fn sides_with_a_metric_in_common_are_compared_by_work_done() {
    let shown = [run(10, Some(40.0), &[(&["f"], 400)])];
    let base = [run(10, Some(10.0), &[(&["f"], 100)])];
    let svg = compare(&shown, &base, None);
    assert!(svg.contains("<title>f (+0 %) (400 flushes"), "{svg}");
    assert!(svg.contains("scaled per dbench.throughput_MB/s"));
    let by_time = compare(&shown, &base, Some(Per::Second));
    assert!(by_time.contains("<title>f (+300 %) (400 flushes"));
    let profile = Profile::of(&shown[0], StackKind::Flush, Weight::Count).unwrap();
    let other = Profile::of(&base[0], StackKind::Flush, Weight::Count).unwrap();
    let unknown = Per::Work("fio.read_iops".into());
    let error = difference(&[profile], &[other], &unknown, Script::Without).unwrap_err();
    assert!(error.to_string().contains("--per second"), "{error}");
}

#[test]
fn what_has_vanished_is_seen_and_what_is_new_is_said_to_be() {
    let shown = [run(
        1,
        None,
        &[(&["new", "root"], 60), (&["stays", "root"], 40)],
    )];
    let base = [run(
        1,
        None,
        &[(&["old", "root"], 50), (&["stays", "root"], 40)],
    )];
    let svg = compare(&shown, &base, None);
    assert!(
        svg.contains("<title>new (new) (60 flushes, 40.00%)"),
        "{svg}"
    );
    assert!(svg.contains("<title>[gone: only in the base] (50 flushes, 33.33%)"));
    assert!(svg.contains("<title>old (gone) (50 flushes"));
    assert!(!svg.contains("<title>stays (gone)"));
}

#[test]
fn a_difference_within_the_noise_of_runs_is_grey() {
    const GREY: &str = "rgb(200,200,200)";
    let runs = |counts: [u64; 4], more: u64| {
        counts.map(|count| {
            run(
                1,
                None,
                &[(&["noisy"], count), (&["moved"], more + count % 7)],
            )
        })
    };
    let svg = compare(
        &runs([90, 110, 100, 95], 500),
        &runs([100, 92, 108, 105], 300),
        None,
    );
    let colour = |frame: &str| {
        let (_, after) = svg.split_once(&format!("<title>{frame} (")).unwrap();
        let (_, after) = after.split_once("fill=\"").unwrap();
        after.split('"').next().unwrap().to_owned()
    };
    assert_eq!(colour("noisy"), GREY);
    assert!(svg.contains(" %, noise)"), "{svg}");
    assert_ne!(colour("moved"), GREY);
    // Of one run a side, nothing is known of noise.
    let svg = compare(
        &runs([90, 90, 90, 90], 1)[..1],
        &runs([100; 4], 1)[..1],
        None,
    );
    assert!(!svg.contains("noise)"), "{svg}");
}

#[test]
fn equal_sides_do_not_differ() {
    let side = || [run(3, None, &[(&["f"], 7)]), run(3, None, &[(&["f"], 7)])];
    let svg = compare(&side(), &side(), None);
    assert!(
        svg.contains("<title>f (+0 %, noise) (7 flushes, 100.00%)"),
        "{svg}"
    );
}
