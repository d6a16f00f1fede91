//! Whatever the numbers and names are: nothing panics, and no line is too long.

use crate::sample::report;
use cil_trace_core::report::format::{Format, Rendering, html, text};
use cil_trace_core::report::schema::Report;
use cil_trace_core::report::sections::section_names;
use cil_trace_core::report::summary;
use cil_trace_core::report::table::{Builder, Cell, Unit};
use cil_trace_core::session::Overhead;
use proptest::prelude::*;

/// Every number of the sample is replaced by the next of `numbers`, every name by the next of
/// `names`; shapes stay.
fn scramble(numbers: &[u64], names: &[String]) -> Report {
    let mut numbers = numbers.iter().copied().cycle();
    let mut names = names.iter().cloned().cycle();
    let mut number = || numbers.next().unwrap_or(0);
    let mut report = report();
    report.duration_ns = number();
    report.window.start_ns = number();
    for row in &mut report.flushes {
        row.requested = number();
        row.empty = Some(number());
        row.pointless = Some(number());
        row.cause = names.next().unwrap_or_default();
    }
    for row in &mut report.fsyncs {
        row.count = number();
        row.forced_log = Some(number());
    }
    for row in &mut report.forces {
        row.count = number();
    }
    for row in &mut report.processes {
        row.comm = names.next().unwrap_or_default();
        row.forces = number();
        row.log_wait_ns = number();
    }
    for row in &mut report.devices {
        row.device = names.next().unwrap_or_default();
        row.mountpoint = names.next();
        row.flushes_issued = Some(number());
        row.flushes_merged = Some(number() as i64);
        row.fan_out = Some(f64::from_bits(number()));
        row.iclog_size_bytes = Some(number());
        for hist in [&mut row.queue_time, &mut row.device_time]
            .into_iter()
            .flatten()
        {
            hist.sum = number();
            hist.count = number();
            hist.p99 = Some(number());
            hist.buckets = vec![(number(), number(), number()), (0, 1, number())];
        }
    }
    report.pushes.count = Some(number());
    for count in report.pushes.by_trigger.values_mut() {
        *count = number();
    }
    report.iclogs.writes = Some(number());
    report.iclogs.bytes = Some(number());
    report.commits.per_s = Some(f64::from_bits(number()));
    report.events.seen = number();
    report.loss.total = number();
    for row in &mut report.loss.by_probe {
        row.count = number();
    }
    report.command = vec![names.next().unwrap_or_default()];
    report.kernel = names.next().unwrap_or_default();
    report.overhead = Some(Overhead {
        bpf_run_ns: number(),
        bpf_runs: number(),
        share_of_cpu_pct: f64::from_bits(number()),
        ..report.overhead.unwrap_or_default()
    });
    if let Some(workload) = &mut report.workload {
        let name = names.next().unwrap_or_default();
        workload.metrics.insert(name, f64::from_bits(number()));
    }
    report
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..3_u64,
        Just(u64::MAX),
        (0..64_u32).prop_map(|bit| 1 << bit)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn anything_is_rendered_within_its_width(
        numbers in proptest::collection::vec(number(), 1..80),
        names in proptest::collection::vec("[ -~]{0,70}|\\PC{0,12}|[\\x00-\\x7f]{0,8}", 1..12),
    ) {
        let report = scramble(&numbers, &names);
        for section in section_names() {
            for format in Format::ALL {
                let text = Rendering::new(&[section], *format).unwrap().render(&report).unwrap();
                prop_assert!(text.ends_with('\n') || section == "ticks");
                if *format == Format::Text {
                    // Of other characters some take two columns and some none.
                    for line in text.lines().filter(|line| line.is_ascii()) {
                        prop_assert!(line.chars().count() <= usize::from(text::WIDTH), "{}", line);
                    }
                }
            }
        }
        let none: [&str; 0] = [];
        for format in [Format::Text, Format::Json] {
            Rendering::new(&none, format).unwrap().render(&report).unwrap();
        }
        let screen = summary::text(&report, None);
        prop_assert!(screen.lines().count() <= summary::LINES, "{}", screen);
        prop_assert!(screen.lines().all(|line| line.chars().count() <= summary::WIDTH), "{}", screen);
        let page = html::page(&report, None);
        prop_assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn a_name_in_a_cell_adds_no_element_to_the_page(name in "[<>&\"'/a-z=]{0,20}") {
        let page = |name: &str| {
            let mut report = report();
            report.processes[0].comm = name.to_owned();
            html::page(&report, None)
        };
        let tags = |page: &str| page.matches('<').count();
        prop_assert_eq!(tags(&page(&name)), tags(&page("dbench")));
    }

    #[test]
    fn wide_tables_keep_every_cell(widths in proptest::collection::vec(1_usize..40, 1..15)) {
        let rows = [()];
        let mut builder = Builder::new("t", "t", &rows).key("key", |()| "k");
        for (index, width) in widths.iter().enumerate() {
            let cell = format!("{index}{}", "x".repeat(*width));
            builder = builder.column(&format!("c{index}"), Unit::Text, move |()| Cell::Text(cell.clone()));
        }
        let text = text::table(&builder.build());
        for (index, width) in widths.iter().enumerate() {
            let cell = format!(" {index}{}", "x".repeat(*width));
            prop_assert!(text.contains(&cell), "{} in {}", cell, text);
        }
    }
}
