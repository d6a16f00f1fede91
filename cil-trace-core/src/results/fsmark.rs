//! fs_mark's standard output or its log file: one line of numbers per iteration.
//!
//! Names and the mean over iterations as in lkp-tests `programs/fsmark/parse`. With `-v` fs_mark
//! appends the latencies of system calls to these lines; LKP has no names for them.

use super::{Findings, lines, mean, number};

pub(super) fn recognises(text: &str) -> bool {
    lines(text).any(|line| is_header(line) || line.starts_with("#  fs_mark "))
}

pub(super) fn parse(text: &str, findings: &mut Findings) {
    let mut files_per_sec = Vec::new();
    let mut app_overhead = Vec::new();
    let mut in_table = false;
    for line in lines(text) {
        if is_header(line) {
            in_table = true;
        } else if in_table {
            // FSUse%, Count, Size, Files/sec, App Overhead
            let columns: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
            match columns.as_deref() {
                Some([_, _, _, rate, overhead, ..]) => {
                    files_per_sec.push(*rate);
                    app_overhead.push(*overhead);
                }
                _ => in_table = false,
            }
        }
    }
    findings.put("files_per_sec", mean(&files_per_sec));
    findings.put("app_overhead", mean(&app_overhead));
}

fn is_header(line: &str) -> bool {
    line.starts_with("FSUse%")
}
