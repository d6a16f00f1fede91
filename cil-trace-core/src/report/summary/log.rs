//! Facts about the log: forces, pushes, iclogs and what waited for it.

use super::Fact;
use super::flush::middle_and_tail;
use crate::report::schema::{Hist, Report};
use crate::report::units::{bytes, duration, percent, share, short_count};
use std::cmp::Reverse;

/// Shares named in a list before it says no more.
const NAMED: usize = 3;

/// How many, why, and how long the most frequent kind took.
pub(super) fn forces(report: &Report) -> Option<Fact> {
    let total = report
        .forces
        .iter()
        .fold(0_u64, |sum, row| sum.saturating_add(row.count));
    let most = report
        .forces
        .iter()
        .max_by_key(|row| row.count)
        .filter(|row| row.count > 0)?;
    let mut causes: Vec<(&str, u64)> = Vec::new();
    for row in &report.forces {
        match causes.iter_mut().find(|(cause, _)| *cause == row.cause) {
            Some((_, sum)) => *sum = sum.saturating_add(row.count),
            None => causes.push((&row.cause, row.count)),
        }
    }
    let mut text = format!("log forces: {}, {}", short_count(total), mix(causes, total));
    if let Some((p50, p99)) = most.latency.as_ref().and_then(middle_and_tail) {
        let approximate = match most.method.as_deref() {
            Some("function") | None => "",
            Some(_) => ", approximated",
        };
        text += &format!("; {} p50 {p50}, p99 {p99}{approximate}", most.cause);
    }
    Some(Fact::line(text))
}

/// What queued the pushes and how they fared.
pub(super) fn pushes(report: &Report) -> Option<Fact> {
    let pushes = &report.pushes;
    let count = pushes.count.filter(|count| *count > 0)?;
    let triggers = pushes
        .by_trigger
        .iter()
        .map(|(t, n)| (t.as_str(), *n))
        .collect();
    let mut text = format!(
        "CIL pushes: {}, {}",
        short_count(count),
        mix(triggers, count)
    );
    if let Some(empty) = pushes.empty.filter(|empty| *empty > 0) {
        text += &format!("; {} empty", short_count(empty));
    }
    if let Some((_, p99)) = pushes.queue_delay.as_ref().and_then(middle_and_tail) {
        text += &format!("; queued p99 {p99}");
    }
    if let Some((_, p99)) = pushes.run_time.as_ref().and_then(middle_and_tail) {
        text += &format!(", ran p99 {p99}");
    }
    if let Some(concurrent) = pushes.max_concurrent.filter(|most| *most > 1) {
        text += &format!(", up to {concurrent} at once");
    }
    Some(Fact::line(text))
}

/// How full the iclogs were.
pub(super) fn iclogs(report: &Report) -> Option<Fact> {
    let iclogs = &report.iclogs;
    let writes = iclogs.writes.filter(|writes| *writes > 0)?;
    let mut text = format!("iclog writes: {}", short_count(writes));
    if let Some(total) = iclogs.bytes {
        text += &format!(", {}", bytes(total));
    }
    if let Some(median) = iclogs.fill_pct.as_ref().and_then(|fill| fill.p50) {
        text += &format!(", fill median {}", percent(median as f64));
    }
    Some(Fact::line(text))
}

/// A kind of wait, and its times if they are known.
type Wait<'a> = (&'a str, u64, Option<&'a Hist>);

/// Waits that a healthy log does not have, longest first. Waiting for a force is what an fsync
/// does, and one checkpoint waits for the one before as a matter of course.
fn unhealthy(report: &Report) -> Vec<Wait<'_>> {
    let grants = (
        "grant space",
        report.grants.waits.unwrap_or(0),
        report.grants.wait.as_ref(),
    );
    let mut waits: Vec<Wait<'_>> = report
        .waits
        .iter()
        .filter_map(|row| {
            let kind = match row.kind.as_str() {
                "throttle" => "CIL throttle",
                "iclog-space" => "iclog space",
                _ => return None,
            };
            Some((kind, row.count, row.wait.as_ref()))
        })
        .chain([grants])
        .filter(|(_, count, _)| *count > 0)
        .collect();
    waits.sort_by_key(|(_, _, wait)| Reverse(wait.map_or(0, |wait| wait.sum)));
    waits
}

/// The longest wait that a healthy log does not have.
pub(super) fn worst_wait(report: &Report) -> Option<&str> {
    unhealthy(report).first().map(|(kind, _, _)| *kind)
}

/// Who waited for space, and for how long.
pub(super) fn waits(report: &Report) -> Option<Fact> {
    let waits: Vec<_> = unhealthy(report)
        .into_iter()
        .take(NAMED)
        .map(|(kind, count, wait)| {
            let mut text = format!("{kind} {} times", short_count(count));
            if let Some(wait) = wait
                && let Some((_, p99)) = middle_and_tail(wait)
            {
                text += &format!(", {} in all, p99 {p99}", duration(wait.sum));
            }
            text
        })
        .collect();
    (!waits.is_empty()).then(|| Fact::line(format!("waited for: {}", waits.join("; "))))
}

/// `92 % log-force:fsync, 8 % background`.
fn mix(mut parts: Vec<(&str, u64)>, total: u64) -> String {
    parts.sort_by_key(|(_, count)| Reverse(*count));
    let named: Vec<_> = parts
        .iter()
        .filter(|(_, count)| *count > 0)
        .take(NAMED)
        .filter_map(|(name, count)| Some(format!("{} {name}", percent(share(*count, total)?))))
        .collect();
    named.join(", ")
}
