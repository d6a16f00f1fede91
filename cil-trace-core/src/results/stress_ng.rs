//! stress-ng's tables of `--metrics` and `--metrics-brief`, in its output, a log file or a YAML file.
//!
//! Names as in lkp-tests `programs/stress-ng/parse`: `<stressor>.ops`, `.ops_per_sec` (per second of
//! real time) and, for a line of miscellaneous metrics, its description. LKP also prints
//! `<stressor>.pass` and `.fail`; here a stressor that did nothing is a problem and has no metrics.

use super::{Findings, lines, number};

/// Columns after the stressor that every version prints: bogo ops, three times, two rates. Newer
/// ones append CPU use and resident set.
const NUMBERS: usize = 6;

/// What an aggregated miscellaneous metric ends with; 0.15 misspells the geometric mean.
const AGGREGATES: &[&str] = &[
    " (average",
    " (geometric mean",
    " (geometic mean",
    " (harmonic mean",
    " (total",
    " (maximum",
    " (minimum",
];

pub(super) fn recognises(text: &str) -> bool {
    lines(text)
        .any(|line| line.starts_with("stress-ng: ") || is_header(line) || is_yaml_header(line))
}

pub(super) fn parse(text: &str, findings: &mut Findings) {
    if lines(text).any(is_yaml_header) {
        parse_yaml(text, findings);
        return;
    }
    let mut in_table = false;
    for line in lines(text).map(message) {
        if is_header(line) {
            in_table = true;
        } else if line.contains("run time:") || line.contains("run completed in") {
            in_table = false;
        } else if in_table {
            row(line, findings);
        }
    }
}

/// A line without `stress-ng: metrc: [1234] `, which `--log-brief` leaves out and to which
/// `--timestamp` adds.
fn message(line: &str) -> &str {
    line.strip_prefix("stress-ng: ")
        .and_then(|line| line.split_once("] "))
        .map_or(line, |(_, message)| message)
}

fn is_header(line: &str) -> bool {
    line.contains("bogo ops real time")
}

fn row(line: &str, findings: &mut Findings) {
    let mut words = line.split_whitespace();
    let Some(stressor) = words
        .next()
        .filter(|word| word.starts_with(char::is_alphabetic))
    else {
        return;
    };
    let numbers: Vec<f64> = words.map_while(number).take(NUMBERS).collect();
    if let [ops, _, _, _, rate, _] = numbers[..] {
        put_stressor(stressor, ops, rate, findings);
    } else if let [value, ..] = numbers[..]
        && value != 0.0
        && let Some(end) = AGGREGATES
            .iter()
            .filter_map(|aggregate| line.find(aggregate))
            .min()
    {
        let description: Vec<&str> = line[..end].split_whitespace().skip(2).collect();
        findings.put(
            format!("{stressor}.{}", normalised(&description.join(" "))),
            value,
        );
    }
}

fn put_stressor(stressor: &str, ops: f64, rate: f64, findings: &mut Findings) {
    if ops == 0.0 {
        let problem =
            format!("{stressor} did no bogo operation; run it longer, or see what it says");
        findings.problems.push(problem);
    } else {
        findings.put(format!("{stressor}.ops"), ops);
        findings.put(format!("{stressor}.ops_per_sec"), rate);
    }
}

/// LKP's form of a description: blanks and punctuation become single underscores.
fn normalised(description: &str) -> String {
    let parts = description.split(|c: char| c.is_whitespace() || ",\"_[]():".contains(c));
    parts
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}

fn is_yaml_header(line: &str) -> bool {
    line.trim_start().starts_with("stress-ng-version:")
}

/// The `metrics` list of `--yaml FILE`. Only bogo ops: the other keys there are not the
/// descriptions that LKP makes its names of.
fn parse_yaml(text: &str, findings: &mut Findings) {
    let mut stressor = "";
    let mut ops = None;
    for line in lines(text) {
        let Some((key, value)) = line.trim().split_once(": ") else {
            continue;
        };
        let value = value.trim().trim_matches(['\'', '"']);
        match key {
            "- stressor" => (stressor, ops) = (value, None),
            "bogo-ops" => ops = number(value),
            "bogo-ops-per-second-real-time" => {
                if let (Some(ops), Some(rate)) = (ops, number(value)) {
                    put_stressor(stressor, ops, rate, findings);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_as_lkp_normalises_them() {
        assert_eq!(
            normalised("memory rate (MB per sec)"),
            "memory_rate_MB_per_sec"
        );
        assert_eq!(
            normalised("nanosecs per call (excluding test"),
            "nanosecs_per_call_excluding_test"
        );
        assert_eq!(normalised("write128 MB/sec"), "write128_MB/sec");
        assert_eq!(normalised("% sendto calls"), "%_sendto_calls");
    }
}
