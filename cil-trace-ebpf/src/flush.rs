//! Cache flushes as they are asked for: bios with PREFLUSH or FUA, each with its cause.
//!
//! Counted when the bio is queued, because a device-level flush is issued from elsewhere and may
//! serve several bios. Never by sector, never at issue time.

use crate::device::{self, Waiting};
use crate::force::outermost;
use crate::kernel::{
    BDEV_DEV, BDEV_DISK, BIO_BDEV, BIO_DISK, BIO_INLINE_VECS, BIO_IO_VEC, BIO_OPF, BIO_PRIVATE,
    BIO_QUEUE_BIO, BIO_REMAP_BIO, BIO_SIZE, ICLOG_BIO, ICLOG_BVEC, REQ_FUA_BIT, REQ_PREFLUSH_BIT,
    argument, container, dev_of_disk, member, pointer, read,
};
use crate::maps::{BIOS, DEVICES, ICLOGS, LOG_STACKS, armed};
use crate::stat::{add, atomic_add, emit, event, key, lose_update, now, process, record};
use crate::task::{self, Task};
use crate::{fsync, stack};
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use aya_log_ebpf::debug;
use cil_trace_common::cause::Cause;
use cil_trace_common::event::EventKind;
use cil_trace_common::flight::Bio;
use cil_trace_common::function::Group;
use cil_trace_common::key::Key;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::Scope;
use cil_trace_common::stack::{LOST, StackKey, StackKind};

const PROBE: Probe = Probe::FlushRequests;

/// [`Bio::PREFLUSH`], [`Bio::FUA`] or both; `None` if neither.
#[inline(always)]
fn flush_flags(bio: u64) -> Option<u32> {
    let opf: u32 = read(bio, &BIO_OPF)?;
    let bit = |position: u32| opf >> (position & 31) & 1;
    let flags = bit(REQ_PREFLUSH_BIT.load()) | bit(REQ_FUA_BIT.load()) << 1;
    (flags != 0).then_some(flags)
}

#[raw_tracepoint(tracepoint = "block_bio_remap")]
pub fn block_bio_remap(ctx: RawTracePointContext) -> i32 {
    let bio = argument::<0, 1>(&ctx, &BIO_REMAP_BIO);
    if armed().is_some()
        && flush_flags(bio).is_some()
        && let Some(task) = task::current(PROBE)
    {
        task.remapped_bio = bio;
        task.remapped_from = argument::<1, 2>(&ctx, &BIO_REMAP_BIO) as u32;
    }
    0
}

#[raw_tracepoint(tracepoint = "block_bio_queue")]
pub fn block_bio_queue(ctx: RawTracePointContext) -> i32 {
    queued(&ctx, argument::<0, 1>(&ctx, &BIO_QUEUE_BIO));
    0
}

fn queued(ctx: &RawTracePointContext, bio: u64) -> Option<()> {
    let state = armed()?;
    let flags = flush_flags(bio)?;
    let (dev, whole) = sent_to(bio)?;
    let iclog = iclog_cause(bio);
    // SAFETY: user space replaces entries whole.
    let known = unsafe { DEVICES.get(dev) }.copied();
    if known.is_none() && state.filtered != 0 {
        return foreign(whole, flags);
    }
    // What a device beneath gets is passed on, or the work of the filesystem there: no stack says
    // more. And an iclog's cause was decided when it was made to go out.
    let beneath = known.is_some_and(|scope| scope.flags & Scope::XFS == 0);
    let frames = if beneath {
        None
    } else {
        stack::capture(PROBE, ctx)
    };
    let groups = match frames {
        Some(ref frames) if iclog.is_none() => stack::groups_in(frames),
        _ => 0,
    };
    let scope = match known {
        Some(scope) => scope,
        // A filesystem that was mounted a moment ago, or where user space does not see it.
        None if iclog.is_some() || groups & Group::OF_XFS != 0 => found(dev, whole),
        None => return foreign(whole, flags),
    };
    let task = task::current(PROBE)?;
    let bytes: u32 = read(bio, &BIO_SIZE)?;
    let passed_on = task.remapped_bio == bio && task.remapped_from != dev;
    task.remapped_bio = 0;
    let original = original(bio);
    let cause = if let Some(cause) = iclog {
        cause
    } else if let Some((cause, _)) = original {
        cause
    } else if passed_on && task.flush_dev != 0 {
        task.flush_cause
    } else {
        explain(groups, scope.flags, flags, bytes) as u32
    };
    let via = if passed_on {
        task.remapped_from
    } else {
        above(task, &scope, cause)
    };
    // A flush that a device above asked for is counted there.
    let kept = match frames {
        Some(frames) if via == 0 => stack::keep(PROBE, frames),
        None if via == 0 && !beneath => LOST,
        _ => 0,
    };
    let stack = if cause == Cause::Other as u32 && kept != LOST {
        kept
    } else {
        0
    };
    if stack != 0 {
        debug!(
            ctx,
            "flush of {}:{} explained by nothing, stack {}",
            dev >> 20,
            dev & 0xfffff,
            kept
        );
    }
    let row = Key {
        metric: Metric::FlushRequested as u16,
        label: cause as u16,
        dev,
        via,
        stack,
    };
    add(PROBE, &row, 1);
    let needed = needed(flags, scope.flags);
    add(PROBE, &key(Metric::FlushNeeded, dev, 0), needed);
    if kept != 0 {
        let by_stack = by_stack(dev, cause, kept);
        stack::sum(&LOG_STACKS, PROBE, &by_stack, 1, 0, u64::from(bytes));
    }
    if passed_on {
        if flags & Bio::PREFLUSH == 0
            && original.is_some_and(|(_, flags)| flags & Bio::PREFLUSH != 0)
        {
            let row = Key {
                via,
                ..key(Metric::FlushRest, dev, 0)
            };
            add(PROBE, &row, 1);
        }
    } else {
        requested(task, dev, cause);
    }
    if bytes == 0 && groups & (Group::Fsync.bit() | Group::DirFsync.bit()) != 0 && iclog.is_none() {
        fsync::flushes(task);
    }
    if flags & Bio::PREFLUSH != 0 {
        device::waits(
            whole,
            Waiting {
                dev,
                cause,
                via,
                stack,
            },
        );
    }
    let entry = Bio {
        at: now(),
        dev,
        cause,
        via,
        stack,
        bytes,
        flags,
        needed: needed as u32,
        kept,
        who: task.who,
    };
    BIOS.insert(bio, entry, 0)
        .map_err(|error| lose_update(Probe::FlushEnd, error))
        .ok()
}

/// The task itself asks for a flush, and not a stacked device on its way down.
#[inline(always)]
fn requested(task: &mut Task, dev: u32, cause: u32) {
    if let Some(process) = process(PROBE, task) {
        // SAFETY: a map value that outlives the program; the address is taken, nothing is read.
        atomic_add(unsafe { &raw mut (*process).flushes_requested }, 1);
    }
    task.flush_dev = dev;
    task.flush_cause = cause;
    if task.push.start != 0 {
        task.push.flushes += 1;
        if cause == Cause::CilPush as u32 {
            task.push.own_flushes += 1;
        }
    }
}

/// Cause and flags of the bio that this one was cloned from, by a stacked device that may now run in
/// a thread of its own (as `dm_wq_work` does for the data of a flushing write).
///
/// A clone has its original's vectors (`__bio_clone` in block/bio.c). An iclog's lie behind its bio,
/// as do the few of any other one where the structure names them.
#[inline(always)]
fn original(bio: u64) -> Option<(u32, u32)> {
    let vectors = pointer(bio, &BIO_IO_VEC)?;
    let original = match container(vectors, &BIO_INLINE_VECS) {
        Some(original) => original,
        None => member(container(vectors, &ICLOG_BVEC)?, &ICLOG_BIO)?,
    };
    if original == bio {
        return None;
    }
    // SAFETY: only two words are copied; the write that the original is keeps the entry.
    unsafe { BIOS.get(original) }.map(|original| (original.cause, original.flags))
}

/// A filesystem of which user space has not told, and which is in scope like every other.
#[inline(always)]
fn found(dev: u32, whole: u32) -> Scope {
    let disk = Scope {
        flags: Scope::BENEATH,
        above: 0,
    };
    let scope = Scope {
        flags: Scope::XFS | if dev == whole { Scope::BENEATH } else { 0 },
        above: 0,
    };
    for (dev, scope) in [(whole, disk), (dev, scope)] {
        // What user space says of it, now or later, is better.
        let _ = DEVICES.insert(dev, scope, u64::from(BPF_NOEXIST));
    }
    scope
}

#[inline(always)]
fn by_stack(dev: u32, cause: u32, kernel: u32) -> StackKey {
    StackKey {
        kind: StackKind::Flush as u16,
        label: cause as u16,
        dev,
        kernel,
        ..StackKey::default()
    }
}

/// A bio that has nothing to do with what is traced, but perhaps a disk in common: that disk's
/// flushes serve it too.
#[inline(always)]
fn foreign(whole: u32, flags: u32) -> Option<()> {
    // SAFETY: user space replaces entries whole.
    let disk = unsafe { DEVICES.get(whole) }?;
    add(PROBE, &key(Metric::FlushForeign, whole, 0), 1);
    add(
        PROBE,
        &key(Metric::FlushNeeded, whole, 0),
        needed(flags, disk.flags),
    );
    if flags & Bio::PREFLUSH != 0 {
        let cause = Cause::ForeignFs as u32;
        device::waits(
            whole,
            Waiting {
                dev: whole,
                cause,
                via: 0,
                stack: 0,
            },
        );
    }
    None
}

/// `dev_t` of what a bio was sent to, and of its whole disk.
///
/// Before 5.12 a bio had a disk, and by the time it was queued it had been remapped to it from its
/// partition, or without data just sent to it. Partitions share their disk's major number, stacked
/// devices have one of their own.
#[inline(always)]
fn sent_to(bio: u64) -> Option<(u32, u32)> {
    if let Some(bdev) = pointer(bio, &BIO_BDEV) {
        let whole = dev_of_disk(pointer(bdev, &BDEV_DISK)?)?;
        return Some((read(bdev, &BDEV_DEV)?, whole));
    }
    let whole = dev_of_disk(pointer(bio, &BIO_DISK)?)?;
    let Some(task) = task::known() else {
        return Some((whole, whole));
    };
    let named = if task.remapped_bio == bio {
        task.remapped_from
    } else {
        task.empty_to
    };
    task.empty_to = 0;
    let same_disk = named >> 20 == whole >> 20;
    Some((if same_disk { named } else { whole }, whole))
}

/// The current task is about to flush a `struct block_device` and to wait until that is done: the
/// next bio with PREFLUSH is its.
#[inline(always)]
pub fn sent_without_data(bdev: u64) {
    if armed().is_some()
        && let Some(dev) = read(bdev, &BDEV_DEV)
        && let Some(task) = task::current(PROBE)
    {
        task.empty_to = dev;
    }
}

/// The cause of the iclog that a bio writes: its own bio, or the half of it that was split off at
/// the end of the log.
#[inline(always)]
fn iclog_cause(bio: u64) -> Option<u32> {
    // SAFETY: only the cause is copied; the write that this bio is keeps the entry.
    let cause =
        |bio: u64| unsafe { ICLOGS.get(container(bio, &ICLOG_BIO)?) }.map(|iclog| iclog.cause);
    cause(bio).or_else(|| cause(pointer(bio, &BIO_PRIVATE)?))
}

/// Why a bio flushes of whose iclog nothing is known, from the groups in its stack.
#[inline(always)]
fn explain(groups: u64, scope: u32, flags: u32, bytes: u32) -> Cause {
    let has = |group: Group| groups & group.bit() != 0;
    if has(Group::IclogRelease) && bytes == 0 {
        Cause::ExternalLog
    } else if has(Group::IclogRelease) && has(Group::CilPush) {
        Cause::IclogWrite
    } else if has(Group::IclogRelease) {
        // An iclog, on a kernel without tracepoints for them (before 5.14).
        outermost(groups)
    } else if has(Group::Gc) {
        Cause::Gc
    } else if has(Group::Unmount) || has(Group::Freeze) || has(Group::Remount) {
        outermost(groups)
    } else if has(Group::Write) && (has(Group::Fsync) || flags & Bio::FUA != 0) {
        Cause::ODsync
    } else if has(Group::Fsync) || has(Group::DirFsync) {
        Cause::FsyncData
    } else if has(Group::CilPush) {
        Cause::CilPush
    } else if scope & Scope::XFS == 0 {
        Cause::ForeignFs
    } else {
        Cause::Other
    }
}

/// The device above for which a lower device gets a bio: the loop device that this worker serves;
/// or, for what its filesystem's own threads send meanwhile, the loop device that is flushing.
#[inline(always)]
fn above(task: &Task, scope: &Scope, cause: u32) -> u32 {
    if task.via != 0 {
        return task.via;
    }
    if scope.above != 0 && cause == Cause::ForeignFs as u32 && device::is_flushing(scope.above) {
        return scope.above;
    }
    0
}

/// Device flushes that a bio requires: one for PREFLUSH, one more for a FUA that is emulated.
#[inline(always)]
fn needed(flags: u32, scope: u32) -> u64 {
    let preflush = flags & Bio::PREFLUSH;
    let emulated = u32::from(flags & Bio::FUA != 0 && scope & Scope::FUA == 0);
    u64::from(preflush + emulated)
}

#[raw_tracepoint(tracepoint = "block_bio_complete")]
pub fn block_bio_complete(ctx: RawTracePointContext) -> i32 {
    // By its address alone: a stacked device takes the flag off a bio whose flush is done.
    if armed().is_some() {
        completed(ctx.arg(1), 0);
    }
    0
}

/// A bio completes: of a bio-based device with its own event and 0 `bytes`, of one with a request
/// queue with its request.
///
/// A request that needs device flushes completes with its data first and again, with 0 bytes, when
/// all is done (block/blk-flush.c).
#[inline(always)]
pub fn completed(bio: u64, bytes: u32) -> Option<()> {
    let probe = Probe::FlushEnd;
    // SAFETY: the entry is copied before it is removed.
    let entry = *unsafe { BIOS.get(bio) }?;
    if bytes != 0 && entry.needed != 0 {
        return None;
    }
    let _ = BIOS.remove(bio);
    let latency = now() - entry.at;
    let row = Key {
        metric: Metric::FlushLatency as u16,
        label: entry.cause as u16,
        dev: entry.dev,
        via: entry.via,
        stack: entry.stack,
    };
    record(probe, &row, latency);
    if entry.kept != 0 {
        let by_stack = by_stack(entry.dev, entry.cause, entry.kept);
        stack::sum(&LOG_STACKS, probe, &by_stack, 0, latency, 0);
    }
    let mut event = event(
        EventKind::Flush,
        entry.cause,
        entry.dev,
        &entry.who,
        entry.at,
        latency,
    );
    event.via = entry.via;
    event.args[0] = u64::from(entry.bytes);
    event.args[1] = u64::from(entry.flags & Bio::PREFLUSH);
    event.args[2] = u64::from(entry.flags / Bio::FUA);
    emit(probe, event);
    Some(())
}
