//! Locks: what `xfs_ilock` takes, what is waited for, and who stood in the way.

mod words;

use super::view::devs;
use crate::device::Dev;
use crate::histogram::Histogram;
use crate::model::Model;
use crate::report::schema::{
    BlockerRow, Hist, IlockCaller, IlockRow, LockCaller, LockRole, LockRow,
};
use crate::series::Series;
use crate::session::Outcome;
use crate::tick::{Blocked, NextLock, Thread};
use cil_trace_common::lock::{Kind, Lock};
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Callers that a row names.
const CALLERS: usize = 20;
/// Rows of blockers.
const BLOCKERS: usize = 50;

/// How the waits of a kind of lock were seen; `None` if they were not.
fn method(model: &Model, kind: Kind) -> Option<&'static str> {
    let probe = match kind {
        Kind::Spin => Probe::SpinWaits,
        Kind::Rwlock => Probe::RwlockWaits,
        Kind::Rwsem => Probe::RwsemWaits,
        Kind::Mutex => Probe::MutexWaits,
        Kind::Semaphore => Probe::SemaphoreWaits,
    };
    let mut rows = model.header().probes.iter();
    let row = rows.find(|row| row.probe == probe.name())?;
    match row.outcome {
        Outcome::Attached if row.how.starts_with("fentry") => Some("function"),
        Outcome::Attached => Some("tracepoint"),
        Outcome::Approximated => Some("lower_bound"),
        Outcome::Skipped | Outcome::Failed => None,
    }
}

/// How the beginnings of holds were seen.
fn hold_method(model: &Model, lock: Lock) -> Option<&'static str> {
    let (counts, begins) = if (lock as u32) < Lock::OF_ILOCK {
        (Probe::Ilock, Probe::IlockReturn)
    } else {
        (Probe::CtxLockHold, Probe::CtxLockHold)
    };
    if !model.measured(counts) {
        return None;
    }
    match model.outcome(begins)? {
        Outcome::Attached => Some("function"),
        _ => Some("upper_bound"),
    }
}

/// A device's name; `None` for no device.
fn device(model: &Model, dev: Dev) -> Option<String> {
    (dev != Dev::NONE).then(|| model.name(dev))
}

fn of(metric: Metric, lock: Lock, dev: Dev) -> Series {
    Series {
        label: lock as u16,
        ..Series::of(metric, dev)
    }
}

/// One row per device, lock and mode that was asked for or waited for.
pub(super) fn ilock(model: &Model) -> Vec<IlockRow> {
    if !model.measured(Probe::Ilock) {
        return Vec::new();
    }
    let metrics = [
        Metric::IlockAcquired,
        Metric::IlockTried,
        Metric::LockWait,
        Metric::LockHold,
    ];
    let waits = Waits::of(model);
    let locks = Lock::ALL.iter().take(Lock::OF_ILOCK as usize);
    let mut rows = Vec::new();
    for dev in devs(model, &metrics) {
        rows.extend(
            locks
                .clone()
                .filter_map(|&lock| ilock_row(model, &waits, lock, dev)),
        );
    }
    rows
}

/// `None` if nothing happened.
fn ilock_row(model: &Model, waits: &Waits<'_>, lock: Lock, dev: Dev) -> Option<IlockRow> {
    let count = |metric| model.sum(metric, |series| *series == of(metric, lock, dev));
    let hist = |metric| model.histogram(metric, |series| *series == of(metric, lock, dev));
    let (acquired, tried) = (count(Metric::IlockAcquired), count(Metric::IlockTried));
    let (wait, hold) = (hist(Metric::LockWait), hist(Metric::LockHold));
    if acquired + tried + wait.count + hold.count == 0 {
        return None;
    }
    let wait_method = method(model, Kind::Rwsem);
    let hold_method = hold_method(model, lock);
    let returns = model.outcome(Probe::IlockReturn) == Some(Outcome::Attached);
    Some(IlockRow {
        lock: lock.lock().to_owned(),
        mode: lock.mode().name().to_owned(),
        device: device(model, dev),
        acquired,
        trylock_tried: tried,
        trylock_failed: returns.then(|| count(Metric::IlockTryFailed)),
        trylock_then_lock: count(Metric::IlockAfterTry),
        wait: wait_method.map(|_| Hist::from(&wait)),
        hold: hold_method.map(|_| Hist::from(&hold)),
        wait_method: wait_method.map(str::to_owned),
        hold_method: hold_method.map(str::to_owned),
        sampled_1_in: model.locks().sampled_1_in(),
        callers: ilock_callers(model, waits, lock, dev),
    })
}

/// By calls of `xfs_ilock` and by waits, of which the VFS has some without such a call.
fn ilock_callers(model: &Model, waits: &Waits<'_>, lock: Lock, dev: Dev) -> Vec<IlockCaller> {
    let mut rows: BTreeMap<&str, IlockCaller> = BTreeMap::new();
    let row = |function: &str| IlockCaller {
        function: function.to_owned(),
        ..IlockCaller::default()
    };
    for (function, count) in model.locks().callers(lock, dev) {
        rows.entry(function).or_insert_with(|| row(function)).count += count;
    }
    for (&function, &(_, wait_ns)) in waits.callers.get(&(lock, dev)).into_iter().flatten() {
        rows.entry(function)
            .or_insert_with(|| row(function))
            .wait_ns += wait_ns;
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| Reverse((row.wait_ns, row.count)));
    rows.truncate(CALLERS);
    rows
}

/// How many waits and how long, nanoseconds, by name, of each lock.
type ByName<'m> = BTreeMap<(Lock, Dev), BTreeMap<&'m str, (u64, u64)>>;

/// Contended waits by who waited, from their stacks.
#[derive(Default)]
struct Waits<'m> {
    callers: ByName<'m>,
    roles: ByName<'static>,
}

impl<'m> Waits<'m> {
    fn of(model: &'m Model) -> Self {
        let mut waits = Self::default();
        let table = model.stacks();
        for entry in table.of(StackKind::Lock) {
            let Some(lock) = Lock::from_name(table.text(entry.label)) else {
                continue;
            };
            let frames: Vec<_> = entry.kernel.iter().map(|&name| table.text(name)).collect();
            let add = |(count, ns): &mut (u64, u64)| {
                *count = count.saturating_add(entry.sums.count);
                *ns = ns.saturating_add(entry.sums.time_ns);
            };
            let key = (lock, entry.dev);
            let callers = waits.callers.entry(key).or_default();
            add(callers.entry(words::caller(&frames)).or_default());
            if lock == Lock::Pages {
                let roles = waits.roles.entry(key).or_default();
                add(roles.entry(words::role(&frames)).or_default());
            }
        }
        waits
    }
}

/// What a row of `locks` sums up.
#[derive(Default)]
struct Sums {
    wait: Histogram,
    hold: Histogram,
}

/// One row per lock, mode and device that was waited for, the longest waited for first.
pub(super) fn locks(model: &Model) -> Vec<LockRow> {
    let mut rows: BTreeMap<(String, Lock, Dev), Sums> = BTreeMap::new();
    for (series, wait) in model.histograms(Metric::LockWait) {
        if let Some(lock) = series.lock()
            && method(model, lock.kind()).is_some()
        {
            let key = (name(model, lock, series.stack), lock, series.dev);
            rows.entry(key).or_default().wait.merge(wait);
        }
    }
    for (series, hold) in model.histograms(Metric::LockHold) {
        // Those of inodes that nobody waited for stand under `ilock` alone.
        if let Some(lock) = series.lock()
            && hold_method(model, lock).is_some()
        {
            let key = (lock.lock().to_owned(), lock, series.dev);
            if lock as u32 >= Lock::OF_ILOCK || rows.contains_key(&key) {
                rows.entry(key).or_default().hold.merge(hold);
            }
        }
    }
    let waits = Waits::of(model);
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, sums)| Reverse((sums.wait.sum, sums.hold.sum)));
    rows.into_iter()
        .map(|((name, lock, dev), sums)| lock_row(model, &waits, name, lock, dev, &sums))
        .collect()
}

/// A lock's name; one without is named by the function that waits.
fn name(model: &Model, lock: Lock, function: Option<u32>) -> String {
    if lock.is_named() {
        return lock.lock().to_owned();
    }
    let frames = function.and_then(|id| model.stacks().frames(id));
    let function = frames.as_ref().and_then(|frames| frames.first()).copied();
    format!("other@{}", function.unwrap_or("unknown"))
}

fn lock_row(
    model: &Model,
    waits: &Waits<'_>,
    name: String,
    lock: Lock,
    dev: Dev,
    sums: &Sums,
) -> LockRow {
    let method = method(model, lock.kind());
    let has_holds = (lock as u32) < Lock::WITH_HOLDS;
    let hold_method = hold_method(model, lock).filter(|_| has_holds);
    let callers = waits.callers.get(&(lock, dev)).into_iter().flatten();
    let own = |function: &str| lock.is_named() || name == format!("other@{function}");
    let mut callers: Vec<_> = callers
        .filter(|(function, _)| own(function))
        .map(|(&function, &(waits, wait_ns))| LockCaller {
            function: function.to_owned(),
            waits,
            wait_ns,
        })
        .collect();
    callers.sort_by_key(|row| Reverse((row.wait_ns, row.waits)));
    callers.truncate(CALLERS);
    let roles = waits.roles.get(&(lock, dev)).into_iter().flatten();
    let mut roles: Vec<_> = roles
        .map(|(&role, &(waits, wait_ns))| LockRole {
            role: role.to_owned(),
            waits,
            wait_ns,
        })
        .collect();
    roles.sort_by_key(|row| Reverse(row.wait_ns));
    LockRow {
        lock: name,
        kind: lock.kind().name().to_owned(),
        mode: lock.mode().name().to_owned(),
        device: device(model, dev),
        waits: method.map(|_| sums.wait.count),
        wait: method.map(|_| Hist::from(&sums.wait)),
        hold: hold_method.map(|_| Hist::from(&sums.hold)),
        method: method.map(str::to_owned),
        hold_method: hold_method.map(str::to_owned),
        callers,
        roles,
    }
}

/// The longest waits, longest first.
pub(super) fn blockers(model: &Model) -> Vec<BlockerRow> {
    let rows = model.locks().blocked().into_iter();
    rows.filter(|row| method(model, row.lock.kind()).is_some())
        .take(BLOCKERS)
        .map(|row| blocker(model, row))
        .collect()
}

fn blocker(model: &Model, row: &Blocked) -> BlockerRow {
    let stack = |id: Option<u32>| id.and_then(|id| model.stacks().frames(id));
    let (waiter_stack, holder_stack) = (stack(row.waiter_stack), stack(row.holder_stack));
    let waits_for = waits_for(model, row, holder_stack.as_deref());
    let owned = |frames: Option<Vec<&str>>| {
        frames.map(|frames| frames.into_iter().map(str::to_owned).collect())
    };
    let function = words::caller(waiter_stack.as_deref().unwrap_or_default()).to_owned();
    BlockerRow {
        lock: if row.lock.is_named() {
            row.lock.lock().to_owned()
        } else {
            format!("other@{function}")
        },
        mode: row.lock.mode().name().to_owned(),
        device: device(model, row.dev),
        start_ns: row.start_ns,
        waiter: who(&row.waiter),
        waiter_function: function,
        waiter_stack: owned(waiter_stack),
        wait_ns: row.wait_ns,
        holder: row
            .holder
            .as_ref()
            .map(|holder| match row.holder_is_reader {
                true => format!("{} and perhaps other readers", who(holder)),
                false => who(holder),
            }),
        holder_stack: owned(holder_stack),
        holder_waits_for: waits_for,
    }
}

fn who(thread: &Thread) -> String {
    format!("{} ({})", thread.comm, thread.tid)
}

/// What a holder waited for: another lock with whoever held that, or where it slept.
fn waits_for(model: &Model, row: &Blocked, holder_stack: Option<&[&str]>) -> Option<String> {
    row.holder.as_ref()?;
    let slept = holder_stack.map(words::reason);
    match (&row.next, slept) {
        // The longer of the two explains more.
        (Some(next), slept) if slept.is_none() || next.wait_ns >= row.holder_slept_ns / 2 => {
            Some(link(model, next))
        }
        (_, Some(slept)) => Some(slept),
        // Woken by nobody meanwhile: it ran.
        _ => model
            .measured(Probe::Holders)
            .then(|| "nothing, it ran".to_owned()),
    }
}

fn link(model: &Model, next: &NextLock) -> String {
    let name = if next.lock.is_named() {
        format!("{} {}", next.lock.lock(), next.lock.mode().name())
    } else {
        format!("other@{}", next.function)
    };
    let of = device(model, next.dev).map_or_else(String::new, |device| format!(" of {device}"));
    let holder = next
        .holder
        .as_ref()
        .map_or_else(String::new, |holder| format!(", held by {}", who(holder)));
    format!("{name}{of}{holder}")
}
