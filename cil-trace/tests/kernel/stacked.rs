//! XFS on a file of another XFS: the lower disk's flushes are told apart by the device above.

use crate::cause;
use crate::count::is_flush;
use crate::tool::{device, record, rows, uint, window};
use crate::witness::Witness;
use crate::xfs::Xfs;
use std::ffi::OsStr;

const FSYNCS: &str = concat!(include_str!("fsyncs.sh"), r#"fsyncs "$1" 50"#);

#[test]
fn flushes_of_the_lower_disk_name_the_device_above() {
    let lower = Xfs::new();
    let upper = Xfs::over(&lower);
    let (below, above) = (Witness::of(&lower), Witness::of(&upper));
    let mountpoint = upper.mountpoint();
    let workload = ["bash", "-c", FSYNCS, "bash"].map(OsStr::new);
    let workload = [&workload[..], &[mountpoint.as_os_str()]].concat();
    let recording = record(&["--device", upper.device()], &workload);
    recording.expect_status(0);
    let report = recording.complete_report();

    let window = window(&report);
    let flushes = |witness: &Witness, disk: &str, counts: fn(&[&str]) -> bool| {
        let testimony = witness.testimony();
        let events = testimony.events();
        let inside = events.iter().filter(|event| window.contains(&event.t_ns));
        inside
            .filter(|event| is_flush(event, disk) && counts(&event.stack))
            .count() as u64
    };
    let asked_above = flushes(&above, &upper.subject().disk, |_| true);
    let passed_down = flushes(&below, &lower.subject().disk, cause::is_loop_device);
    assert!(
        asked_above >= 50 && passed_down >= 50,
        "{asked_above} above, {passed_down} below"
    );

    let upper_row = device(&report, upper.device());
    assert_eq!(uint(&upper_row["flushes_requested"]), asked_above);
    assert_eq!(upper_row["stacked_on"], serde_json::json!([lower.device()]));
    let via = rows(&report, "flushes", lower.device()).filter(|row| row["via"] == upper.device());
    assert_eq!(
        via.map(|row| uint(&row["requested"])).sum::<u64>(),
        passed_down
    );
    let fan_out = upper_row["fan_out"].as_f64().unwrap();
    assert!(
        (fan_out - passed_down as f64 / asked_above as f64).abs() < 0.01,
        "{fan_out}"
    );
}
