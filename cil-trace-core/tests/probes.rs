//! How every probe resolves on every kernel that was noted down, without any of them.
//!
//! `tests/kernels/README.md` tells how to note a kernel down. After a wanted change:
//! `INSTA_UPDATE=always`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cil_trace_common::offset::OFFSETS;
use cil_trace_core::probes::facts::KernelFacts;
use cil_trace_core::probes::{Kernel as _, PROBES, resolve};
use std::fmt::Write as _;
use std::path::Path;

const KERNELS: [&str; 6] = ["5.10", "6.1", "6.12", "6.18", "newest", "machine"];

fn facts(kernel: &str) -> KernelFacts {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let text = std::fs::read_to_string(directory.join(format!("{kernel}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_probe_goes_where_it_went() {
    for kernel in KERNELS {
        let facts = facts(kernel);
        let mut text = format!("Linux {} {}\n", facts.release, facts.architecture);
        for row in PROBES {
            let resolution = resolve(row, &facts);
            writeln!(text, "{}", row.probe.name()).unwrap();
            for way in &resolution.open {
                let near = way.way.approximation.map_or("by", |_| "near");
                writeln!(text, "  {near} {}", way.describe()).unwrap();
            }
            for reason in resolution.unknown.iter().chain(&resolution.obstacles) {
                writeln!(text, "  not: {reason}").unwrap();
            }
        }
        golden(kernel, &text);
    }
}

/// What the programs read of structures, by its place.
#[test]
fn every_offset_is_what_it_was() {
    for kernel in KERNELS {
        let facts = facts(kernel);
        let mut text = String::new();
        for row in OFFSETS {
            let value = facts.offset(row);
            assert_eq!(facts.has_offset(row.global), value.is_some());
            let value = value.map_or("-".to_owned(), |value| value.to_string());
            writeln!(text, "{value:>6} {}", row.source).unwrap();
        }
        golden(&format!("{kernel}.offsets"), &text);
    }
}

fn golden(name: &str, text: &str) {
    insta::with_settings!({
        prepend_module_to_snapshot => false,
        omit_expression => true,
        snapshot_path => "probes",
    }, {
        insta::assert_snapshot!(name, text);
    });
}
