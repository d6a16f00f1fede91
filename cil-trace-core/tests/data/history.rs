//! Any stretch of a session is what its ticks say.

use crate::round_trip::ticks;
use crate::sample;
use cil_trace_common::metric::Metric;
use cil_trace_common::stack::StackKind;
use cil_trace_core::history::{History, Keep, Rate, Span};
use cil_trace_core::model::Model;
use cil_trace_core::recording::{Recording, Writer};
use cil_trace_core::report::schema::Report;
use cil_trace_core::tick::Tick;
use proptest::prelude::*;

const EVERYTHING: Keep = Keep {
    ns: u64::MAX,
    ticks: usize::MAX,
};

/// As a clock makes them: one after another, a second each.
fn in_order(ticks: Vec<Tick>) -> Vec<Tick> {
    (0..)
        .zip(ticks)
        .map(|(index, tick)| Tick {
            index,
            start_ns: index * 1_000_000_000,
            end_ns: (index + 1) * 1_000_000_000,
            ..tick
        })
        .collect()
}

fn history(ticks: &[Tick], keep: Keep) -> History {
    let mut history = History::new(sample::header(), keep);
    for tick in ticks {
        history.push(tick.clone());
    }
    history
}

fn whole(ticks: &[Tick]) -> Model {
    let mut model = Model::new(sample::header()).without_ticks();
    for tick in ticks {
        model.apply(tick);
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_of_a_session_is_the_same_however_little_is_kept(
        ticks in ticks().prop_map(in_order), most in 1_usize..4,
    ) {
        let history = history(&ticks, Keep { ns: u64::MAX, ticks: most });
        let Some((first, last)) = history.bounds() else { return Ok(()) };
        for index in first..=last {
            let end = usize::try_from(index).unwrap() + 1;
            let model = history.model(Span::All, index);
            prop_assert_eq!(&*model, &whole(&ticks[..end]));
            prop_assert_eq!(history.losses(index), whole(&ticks[..end]).loss_sums());
        }
    }

    #[test]
    fn a_stretch_counts_what_its_ticks_count(ticks in ticks().prop_map(in_order)) {
        let history = history(&ticks, EVERYTHING);
        let Some((_, last)) = history.bounds() else { return Ok(()) };
        for length in 1..=ticks.len() {
            let span = Span::Last(length as u64 * 1_000_000_000);
            let part = history.model(span, last);
            let expected = whole(&ticks[ticks.len() - length..]);
            for &metric in Metric::ALL {
                prop_assert!(part.counters(metric).eq(expected.counters(metric)));
                prop_assert!(part.histograms(metric).eq(expected.histograms(metric)));
            }
        }
        prop_assert_eq!(
            history.model(Span::Tick, last), history.model(Span::Last(1), last)
        );
    }

    #[test]
    fn a_cut_is_a_recording_of_its_stretch(ticks in ticks().prop_map(in_order), most in 1_usize..4) {
        let history = history(&ticks, Keep { ns: u64::MAX, ticks: most });
        let Some((_, last)) = history.bounds() else { return Ok(()) };
        let cut = history.cut(last).unwrap();
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("cut.data");
        let mut writer = Writer::create(&path, &cut.header).unwrap();
        for tick in &cut.ticks {
            writer.tick(tick).unwrap();
        }
        writer.finish(&cut.footer).unwrap();
        let model = Recording::open(&path).unwrap().model().unwrap();
        let mut saved = Report::of(&model, false);
        let mut shown = Report::of(&history.model(Span::Last(u64::MAX), last), false);
        // One has an end, the other goes on.
        (saved.interrupted, shown.interrupted) = (false, false);
        prop_assert_eq!(saved, shown);
    }
}

#[test]
fn processes_of_a_stretch_are_what_they_did_in_it() {
    let history = history(&sample::ticks(), EVERYTHING);
    let second = history.model(Span::Tick, 1);
    let dbench = second.process(100).unwrap();
    assert_eq!((dbench.forces, dbench.log_wait_ns), (1, 200_000));
    assert_eq!(second.process(7), None, "it did nothing in the second tick");
    let all = history.model(Span::All, 1);
    assert_eq!(all.process(100).unwrap().forces, 61);
}

#[test]
fn a_stretch_knows_the_stacks_of_earlier_ticks() {
    let mut ticks = sample::ticks();
    // The first tick's stack once more, of which the second says nothing.
    let row = ticks[0].stack_rows[0].clone();
    ticks[1].stack_rows = vec![row];
    ticks[1].stacks = vec![];
    let history = history(&ticks, Keep { ns: 1, ticks: 1 });
    let model = history.model(Span::Tick, 1);
    let entry = model.stacks().of(StackKind::Flush).next().unwrap();
    let mut names = entry.kernel.iter().map(|&name| model.stacks().text(name));
    assert!(names.any(|name| name == "xfs_mystery"), "{entry:?}");
    let cut = history.cut(1).unwrap();
    assert!(
        cut.ticks[0].stacks[0]
            .frames
            .contains(&"xfs_mystery".to_owned())
    );
}

#[test]
fn rates_are_by_filesystem_and_totals_go_on_when_ticks_are_forgotten() {
    let history = history(&sample::ticks(), Keep { ns: 1, ticks: 1 });
    assert_eq!(history.bounds(), Some((1, 1)));
    let rate = |name: &str| {
        let rate = Rate::ALL.into_iter().find(|rate| rate.name == name);
        rate.unwrap()
    };
    let loop0 = history.filesystems().find(|(_, name)| *name == "loop0");
    let loop0 = loop0.map(|(dev, _)| dev);
    assert!(loop0.is_some());
    let commits = rate("commits");
    assert_eq!(commits.per_s(&history, None, Span::Tick, 1), Some(110.0));
    assert_eq!(commits.per_s(&history, loop0, Span::Tick, 1), Some(100.0));
    assert_eq!(commits.total(&history, None, 1), Some(1_010));
    assert_eq!(commits.total(&history, loop0, 1), Some(1_000));
    assert_eq!(commits.per_s(&history, None, Span::All, 1), Some(505.0));
    let issued = rate("flushes issued");
    assert_eq!(issued.total(&history, loop0, 1), Some(205));
    assert_eq!(commits.each(&history, None, 1).collect::<Vec<_>>(), [110.0]);
    assert_eq!(
        commits.per_s(&history, None, Span::Tick, 0),
        None,
        "forgotten"
    );
}
