//! Facts about locks: the one waited for longest, trylocks that were for nothing, and who was stuck.

use super::Fact;
use crate::report::schema::Report;
use crate::report::units::{duration, percent, share, short_count};

/// Locks named.
const NAMED: usize = 2;
/// Less waiting than this in all is no finding.
const LITTLE_NS: u64 = 10_000_000;
/// A single wait that is worth a line.
const LONG_NS: u64 = 100_000_000;
/// A rate of trylocks at which it matters how they fare.
const MANY: u64 = 1_000;

/// The locks that were waited for longest, all waits together.
pub(super) fn contended(report: &Report) -> Option<Fact> {
    report
        .locks
        .iter()
        .filter(|row| row.wait.as_ref().is_some_and(|wait| wait.sum >= LITTLE_NS))
        .take(NAMED)
        .filter_map(|row| {
            let wait = row.wait.as_ref()?;
            let device = row
                .device
                .as_deref()
                .map_or(String::new(), |device| format!(" on {device}"));
            let mut text = format!(
                "{}{device}: {} waits, {}, p99 {}",
                row.lock,
                short_count(wait.count),
                duration(wait.sum),
                duration(wait.p99?),
            );
            if let Some(top) = row.callers.first()
                && let Some(part) = share(top.wait_ns, wait.sum)
            {
                text += &format!(", {} from {}", percent(part), top.function);
            }
            Some(Fact::line(text))
        })
        .collect::<Fact>()
        .found()
}

/// Trylocks after which the lock was taken in the ordinary way.
pub(super) fn trylocks(report: &Report) -> Option<Fact> {
    report
        .ilock
        .iter()
        .filter(|row| row.trylock_tried >= MANY && row.trylock_then_lock >= row.trylock_tried / 10)
        .map(|row| {
            // Of those that failed, if that is known.
            let failed = row.trylock_failed.filter(|failed| *failed > 0);
            let failures = failed.and_then(|failed| share(failed, row.trylock_tried));
            let (failures, of) = match failures {
                Some(part) => (format!("{} failed, ", percent(part)), " of these"),
                None => (String::new(), ""),
            };
            let then = share(row.trylock_then_lock, failed.unwrap_or(row.trylock_tried));
            let caller = row
                .callers
                .first()
                .map_or("unknown", |caller| &caller.function);
            Fact::line(format!(
                "{} {}: {} trylocks, {failures}{}{of} followed by a blocking lock of the same \
                 inode; {caller}",
                row.lock,
                row.mode,
                short_count(row.trylock_tried),
                percent(then.unwrap_or(0.0).min(100.0)),
            ))
        })
        .collect::<Fact>()
        .found()
}

/// The longest wait for a lock, and who stood in the way.
pub(super) fn blocked(report: &Report) -> Option<Fact> {
    let row = report.blockers.iter().find(|row| row.wait_ns >= LONG_NS)?;
    let mut text = format!(
        "{} waited {} for {} {} in {}",
        row.waiter,
        duration(row.wait_ns),
        row.lock,
        row.mode,
        row.waiter_function,
    );
    if let Some(holder) = &row.holder {
        text += &format!("; {holder} held it");
        if let Some(reason) = &row.holder_waits_for {
            text += &format!(" and waited for {reason}");
        }
    }
    Some(Fact::line(text))
}
