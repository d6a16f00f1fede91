//! Sections on locks: those of inodes, those that are contended, and who stood in the way.

use crate::report::schema::Report;
use crate::report::table::{Builder, Cell, MAX, P50, P99, TOTAL, Table, Unit};
use crate::report::units::{percent, share};

pub(super) fn ilock(report: &Report) -> Table {
    let rows = &report.ilock;
    let sampled = rows.iter().map(|row| row.sampled_1_in).max().unwrap_or(1);
    let table = Builder::new("ilock", "Locks of inodes", rows)
        .key("lock", |row| &row.lock)
        .key("mode", |row| &row.mode)
        .key("device", |row| row.device.as_deref().unwrap_or_default())
        .count("acquired", |row| row.acquired)
        .count("trylocks", |row| row.trylock_tried)
        .count("failed", |row| row.trylock_failed)
        .count("then_lock", |row| row.trylock_then_lock)
        .hist("wait", Unit::Ns, &[TOTAL, P50, P99, MAX], |row| row.wait.as_ref())
        .hist("hold", Unit::Ns, &[P50, P99, MAX], |row| row.hold.as_ref())
        .text("wait_method", |row| row.wait_method.as_deref())
        .text("hold_method", |row| row.hold_method.as_deref())
        .column("top_caller", Unit::Text, |row| {
            Cell::text(row.callers.first().map(|caller| caller.function.as_str()))
        })
        .note("acquired: blocking calls of xfs_ilock; then lock: soon after a trylock of the same lock");
    if sampled > 1 {
        let note = format!(
            "holds, callers and then lock are of 1 in {sampled} inodes, times {sampled}; what is \
             acquired, tried and waited for is exact"
        );
        return table.note(note).build();
    }
    table.build()
}

/// `rwsem shared`; of a lock with one mode only, `spin`.
fn kind(kind: &str, mode: &str) -> String {
    if kind == "rwsem" || kind == "rwlock" {
        format!("{kind} {mode}")
    } else {
        kind.to_owned()
    }
}

pub(super) fn locks(report: &Report) -> Table {
    let rows = &report.locks;
    let table = Builder::new("locks", "Contended locks", rows)
        .key("lock", |row| &row.lock)
        .column("kind", Unit::Text, |row| {
            Cell::Text(kind(&row.kind, &row.mode))
        })
        .text("device", |row| row.device.as_deref())
        .count("waits", |row| row.waits)
        .quantiles("wait", Unit::Ns, &[TOTAL, P50, P99, MAX], |row| {
            row.wait.as_ref()
        })
        .column("from", Unit::Text, |row| {
            let total = row.wait.as_ref().map_or(0, |wait| wait.sum);
            let top = row.callers.first().and_then(|top| {
                let part = percent(share(top.wait_ns, total)?);
                Some(format!("{part} {}", top.function))
            });
            // The name of one without says it already.
            Cell::text(top.as_deref().filter(|_| !row.lock.starts_with("other@")))
        })
        .text("method", |row| row.method.as_deref())
        .only(|row| !row.roles.is_empty())
        .column("roles", Unit::Text, |row| {
            let total = row.roles.iter().map(|role| role.wait_ns).sum();
            let roles = row.roles.iter().filter_map(|role| {
                let part = percent(share(role.wait_ns, total)?);
                Some(format!("{part} {}", role.role))
            });
            Cell::text(Some(roles.collect::<Vec<_>>().join(", ").as_str()))
        })
        .only(|row| row.hold.is_some())
        .quantiles("hold", Unit::Ns, &[P50, P99, MAX], |row| row.hold.as_ref())
        .text("hold_method", |row| row.hold_method.as_deref())
        .note("other@: a lock that is not known by name, by the function that waits for it");
    if report.absent_locks.is_empty() {
        return table.build();
    }
    let absent = report.absent_locks.join(", ");
    table.note(format!("this kernel has no {absent}")).build()
}

pub(super) fn blockers(report: &Report) -> Table {
    let rows = &report.blockers;
    Builder::new("blockers", "The longest waits for locks", rows)
        .key("lock", |row| &row.lock)
        .text("mode", |row| Some(row.mode.as_str()))
        .text("device", |row| row.device.as_deref())
        .number("wait", Unit::Ns, |row| row.wait_ns)
        .text("waiter", |row| Some(row.waiter.as_str()))
        .text("in", |row| Some(row.waiter_function.as_str()))
        .text("holder", |row| row.holder.as_deref())
        .text("holder_waits_for", |row| row.holder_waits_for.as_deref())
        .note("holder: of locks that sleep; spinlocks and rwlocks do not say who holds them")
        .build()
}
