//! XFS on the device mapper: what a flush becomes on the way down, and that everything below keeps
//! the cause that it had above.

use crate::count::{Flags, count, is_flush};
use crate::tool::{device, flushes, record, rows, sums, window};
use crate::trace::Event;
use crate::witness::Witness;
use crate::xfs::Xfs;
use std::collections::BTreeMap;
use std::ffi::OsStr;

const TARGETS: u64 = 10;

/// New files, whose fsync forces the log; then overwrites, whose fdatasync only flushes; and a sync,
/// so that iclogs also go out for reasons of their own.
const WORKLOAD: &str = concat!(
    "set -e\n",
    include_str!("fsyncs.sh"),
    r#"
fsyncs "$1" 20
overwrites=()
for number in {1..20}; do overwrites+=(-c "pwrite -q 0 4k" -c fdatasync); done
xfs_io "${overwrites[@]}" "$1/file-1"
for number in {1..500}; do : >"$1/empty-$number"; done
sync -f "$1"
"#
);

#[test]
#[ignore = "needs the device mapper, as the virtual machines have it: cargo xtask test --level vm"]
fn below_linear_targets_every_flush_has_the_cause_it_had_above() {
    let xfs = Xfs::on_linear(TARGETS);
    let (upper, lower) = (xfs.device(), xfs.disk());
    let (above, below) = (Witness::above(&xfs), Witness::of(&xfs));
    let mountpoint = xfs.mountpoint();
    let workload = ["bash", "-c", WORKLOAD, "bash"].map(OsStr::new);
    let workload = [&workload[..], &[mountpoint.as_os_str()]].concat();
    let recording = record(&["--device", upper], &workload);
    recording.expect_status(0);
    let report = recording.complete_report();
    let window = window(&report);

    let (above, below) = (above.testimony(), below.testimony());
    let (above, below) = (above.events(), below.events());
    let subject = xfs.subject_above();
    let asked = count(&above, &subject, &window).flushes;
    assert_eq!(
        flushes(&report, upper),
        asked,
        "left: the report; right: ftrace"
    );
    assert!(asked["log-force:fsync"] >= 20, "{asked:#?}");

    // Of those above, the ones with this flag; below, without a cause.
    let asked_with = |flag: fn(&Flags) -> bool| {
        let dropped =
            |event: &&Event<'_>| event.name == "block_bio_queue" && !flag(&Flags::of(event));
        let events: Vec<_> = above
            .iter()
            .filter(|event| !dropped(event))
            .cloned()
            .collect();
        count(&events, &subject, &window).flushes
    };
    let (preflush, fua) = (
        asked_with(|flags| flags.preflush),
        asked_with(|flags| flags.fua),
    );
    let disk = xfs.subject().disk;
    let inside = below.iter().filter(|event| window.contains(&event.t_ns));
    let seen: Vec<_> = inside.filter(|event| is_flush(event, &disk)).collect();
    let seen_preflush = seen
        .iter()
        .filter(|event| Flags::of(event).preflush)
        .count() as u64;

    // A PREFLUSH comes down once per target; since 6.11, once per disk that they lie on.
    let fan_out = seen_preflush / preflush.values().sum::<u64>();
    assert!([1, TARGETS].contains(&fan_out), "{fan_out}");
    let reported = device(&report, upper)["fan_out"].as_f64().unwrap();
    assert!(
        (reported - fan_out as f64).abs() < 1e-9,
        "{reported}, not {fan_out}"
    );

    // Then, from a thread of the device mapper's, the data of what also had FUA.
    let on_behalf = rows(&report, "flushes", lower).filter(|row| row["via"] == upper);
    let passed_on = sums(on_behalf, "requested");
    let of = |counts: &BTreeMap<String, u64>, cause| counts.get(cause).copied().unwrap_or(0);
    let expected: BTreeMap<_, _> = asked
        .keys()
        .map(|cause| {
            (
                cause.clone(),
                fan_out * of(&preflush, cause) + of(&fua, cause),
            )
        })
        .collect();
    assert_eq!(
        passed_on, expected,
        "left: the report; right: ftrace above, times {fan_out}"
    );
    assert_eq!(
        passed_on.values().sum::<u64>(),
        seen.len() as u64,
        "{passed_on:#?}"
    );
    assert_eq!(
        passed_on,
        flushes(&report, lower),
        "some are on behalf of nobody"
    );
}
