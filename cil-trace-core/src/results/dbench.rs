//! dbench's standard output: the `Throughput` line and the table of operations.
//!
//! Names of the former as in lkp-tests `programs/dbench/parse`, which gives mean and harmonic mean
//! over all such lines (dbench prints one). LKP reads clients and procs by position and so gets
//! zero when a note such as `(sync open)` stands before them; here they are found by their words.
//! LKP does not read the table of operations; its metrics are `dbench.<operation>.*`, and of those
//! `Flush` is the fsync.

use super::{Findings, lines, mean, number};

pub(super) fn recognises(text: &str) -> bool {
    lines(text).any(|line| line.starts_with("dbench version ") || throughput(line).is_some())
}

pub(super) fn parse(text: &str, findings: &mut Findings) {
    let mut throughputs = Vec::new();
    let mut latencies = Vec::new();
    let mut in_table = false;
    for line in lines(text) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(value) = throughput(line) {
            throughputs.push(value);
            for pair in words.windows(2) {
                if let [count, what @ ("clients" | "procs")] = pair
                    && let Some(count) = number(count)
                {
                    findings.put(*what, count);
                }
            }
            latencies.extend(
                words
                    .iter()
                    .find_map(|word| number(word.strip_prefix("max_latency=")?)),
            );
        }
        match words[..] {
            ["Operation", "Count", "AvgLat", "MaxLat"] => in_table = true,
            [] => in_table = false,
            [operation, count, average, max] if in_table => {
                let values = [
                    (count, "count"),
                    (average, "avg_latency_ms"),
                    (max, "max_latency_ms"),
                ];
                for (value, what) in values {
                    if let Some(value) = number(value) {
                        findings.put(format!("{operation}.{what}"), value);
                    }
                }
            }
            _ => {}
        }
    }
    // A cut-off table without the line of results says nothing that could be compared.
    if throughputs.is_empty() {
        findings.metrics.clear();
    }
    for (name, values) in [("throughput_MB/s", throughputs), ("max_latency", latencies)] {
        let reciprocals: Vec<f64> = values.iter().map(|value| value.recip()).collect();
        findings.put(name, mean(&values));
        findings.put(format!("{name}_harmonic_mean"), mean(&reciprocals).recip());
    }
}

/// The value of a `Throughput 104.39 MB/sec ...` line.
fn throughput(line: &str) -> Option<f64> {
    let (value, rest) = line.strip_prefix("Throughput ")?.split_once(' ')?;
    number(value).filter(|_| rest.starts_with("MB/sec"))
}
