//! What must hold of the formats whatever the report says.

use crate::sample::report;
use cil_trace_common::stack::StackKind;
use cil_trace_core::device::Dev;
use cil_trace_core::flame::{Script, flamegraph};
use cil_trace_core::model::Model;
use cil_trace_core::profile::{Profile, Weight};
use cil_trace_core::report::format::{Format, RenderError, Rendering, html, text};
use cil_trace_core::report::schema::{Loss, Report};
use cil_trace_core::report::sections::{find, section_names};
use cil_trace_core::report::table::Cell;
use cil_trace_core::session::Header;
use cil_trace_core::tick::{Stack, StackRow, StackSums, Tick};
use serde_json::Value;

fn render(report: &Report, sections: &[&str], format: Format) -> String {
    Rendering::new(sections, format)
        .unwrap()
        .render(report)
        .unwrap()
}

#[test]
fn an_unknown_section_is_answered_with_the_names() {
    let error = Rendering::new(&["flush"], Format::Text)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("no section named `flush`; sections are summary, workload, flushes"));
    assert!(error.contains("log_space") && error.ends_with("loss"));
}

#[test]
fn one_table_formats_want_one_section() {
    for format in [Format::Csv, Format::Markdown] {
        for sections in [&[][..], &["pushes", "forces"]] {
            let error = Rendering::new(sections, format).unwrap_err();
            assert!(
                matches!(error, RenderError::NotOneSection { given, .. } if given == sections.len())
            );
            assert!(error.to_string().contains("name one of summary, "));
        }
    }
}

#[test]
fn formats_are_found_by_name() {
    for format in Format::ALL {
        assert_eq!(format.name().parse::<Format>().unwrap(), *format);
    }
    assert!(
        "yaml"
            .parse::<Format>()
            .unwrap_err()
            .to_string()
            .contains("text, json, csv")
    );
}

#[test]
fn sections_are_the_keys_of_the_json() {
    let whole: Value = serde_json::from_str(&render(&report(), &[], Format::Json)).unwrap();
    let alone = [
        "schema",
        "tool",
        "kernel",
        "command",
        "scope",
        "started_at",
        "duration_ns",
        "interrupted",
        "absent_locks",
    ];
    let mut keys: Vec<_> = whole
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.retain(|key| !alone.contains(key));
    keys.push("summary");
    keys.sort_unstable();
    let mut sections: Vec<_> = section_names().collect();
    sections.sort_unstable();
    assert_eq!(keys, sections);
}

#[test]
fn json_of_named_sections_has_them_and_what_they_are_part_of() {
    let sections = ["pushes", "summary", "ticks", "window", "pushes"];
    let sample = Report {
        ticks: None,
        ..report()
    };
    let part: Value = serde_json::from_str(&render(&sample, &sections, Format::Json)).unwrap();
    let keys: Vec<_> = part
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "schema",
            "tool",
            "kernel",
            "command",
            "scope",
            "started_at",
            "duration_ns",
            "interrupted",
            "window",
            "pushes",
            "summary",
            "ticks"
        ]
    );
    let whole: Value = serde_json::from_str(&render(&sample, &[], Format::Json)).unwrap();
    assert_eq!(part["pushes"], whole["pushes"]);
    assert_eq!(part["window"], whole["window"]);
    assert!(part["ticks"].is_null());
    assert!(
        part["summary"][0]
            .as_str()
            .unwrap()
            .starts_with("dbench -t 10 2")
    );
}

#[test]
fn csv_has_units_in_its_header_and_plain_numbers() {
    let text = render(&report(), &["forces"], Format::Csv);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert_eq!(
        header.iter().collect::<Vec<_>>(),
        [
            "device",
            "cause",
            "count",
            "share_pct",
            "latency_p50_ns",
            "latency_p90_ns",
            "latency_p99_ns",
            "latency_max_ns",
            "method"
        ]
    );
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(&rows[1][2], "63010");
    assert!(rows[1][6].parse::<u64>().unwrap() > 1_000_000);
    assert_eq!(&rows[2][6], "", "what was not measured is empty, not zero");
}

#[test]
fn csv_headers_are_unique() {
    for section in section_names() {
        let text = render(&report(), &[section], Format::Csv);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        let unique: std::collections::BTreeSet<_> = header.iter().collect();
        assert_eq!(unique.len(), header.len(), "{section}: {header:?}");
        assert!(reader.records().all(|row| row.is_ok()), "{section}");
    }
}

#[test]
fn the_loss_is_the_last_table_also_when_there_is_none() {
    let sample = Report {
        loss: Loss::default(),
        ..report()
    };
    let text = render(&sample, &[], Format::Text);
    let (_, last) = text.rsplit_once("\n\n").unwrap();
    assert!(last.starts_with("Loss"), "{last}");
    for row in ["all lost 0", "all unpaired 0", "all stacks lost 0"] {
        let words: Vec<_> = last.split_whitespace().collect();
        assert!(words.join(" ").contains(row), "{last}");
    }
}

#[test]
fn losses_and_approximations_stand_under_the_numbers_that_they_touch() {
    let notes = |section| find(section).unwrap().table(&report()).notes.join("\n");
    assert!(notes("flushes").contains("12 events lost here: flush-requests 12 (map-full)"));
    assert!(
        !notes("pushes").contains("lost here"),
        "a full ring buffer costs no counts"
    );
    assert!(notes("events").contains("3 events lost here: pushes 3 (ring-buffer-full)"));
    assert!(notes("commits").contains("commit-insert approximated: inlined in this kernel"));
    assert!(notes("forces").contains("force-end failed: kretprobe xfs_log_force: EBUSY"));
}

#[test]
fn a_dash_is_explained_and_never_a_zero() {
    let table = find("commits").unwrap().table(&report());
    let column = table
        .columns
        .iter()
        .position(|c| c.key() == "ctx_lock_ns")
        .unwrap();
    assert_eq!(table.rows[0][column], Cell::Missing);
    assert!(text::table(&table).contains("\"-\": not measured; `cil-trace report probes`"));
}

#[test]
fn long_tables_are_cut_in_the_overview_only() {
    let mut sample = report();
    let row = sample.processes[0].clone();
    sample.processes.extend(vec![row; 30]);
    let overview = render(&sample, &[], Format::Text);
    assert!(overview.contains("14 more: `cil-trace report processes`"));
    assert!(!render(&sample, &["processes"], Format::Text).contains(" more: "));
}

#[test]
fn a_process_name_cannot_leave_its_cell() {
    let sample = report();
    let name = "<script>alert(1)</script>";
    let page = html::page(&sample, None);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains("<script"));
    let markdown = render(&sample, &["processes"], Format::Markdown);
    assert!(!markdown.contains(name) && markdown.contains("a\\|b"));
    let text = render(&sample, &[], Format::Text);
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn the_page_holds_the_picture_and_needs_nothing_else() {
    let mut model = Model::new(Header::default());
    model.apply(&Tick {
        stacks: vec![Stack {
            id: 1,
            frames: vec!["xlog_cil_push_work".into()],
        }],
        stack_rows: vec![StackRow {
            kind: StackKind::Flush,
            label: "cil-push".into(),
            dev: Dev::new(8, 1),
            who: None,
            kernel: Some(1),
            user: None,
            sums: StackSums {
                count: 3,
                ..StackSums::default()
            },
        }],
        ..Tick::default()
    });
    let flushes = Profile::of(&model, StackKind::Flush, Weight::Count).unwrap();
    let graph = flamegraph(&flushes, Script::Without).unwrap();
    let page = html::page(&report(), Some(&graph.svg));
    assert!(page.contains("xlog_cil_push_work (3 flushes"));
    assert!(!page.contains("<?xml") && !page.contains("<!DOCTYPE svg"));
    assert!(page.contains("prefers-color-scheme: dark"));
    for loading in ["src=", "@import", "url(http", "<link"] {
        assert!(!page.contains(loading), "{loading}");
    }
    // Its script takes the first SVG of the page for its own.
    let first = page.find("<svg").unwrap();
    assert!(page[first..].starts_with("<svg version=\"1.1\""));
    for section in section_names() {
        assert!(
            page.contains(&format!("<section id=\"{section}\">")),
            "{section}"
        );
    }
}
