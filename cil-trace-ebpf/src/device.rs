//! Whole disks: which are in scope, the flushes they really got, and their requests' times.

use crate::flush;
use crate::kernel::{
    QUEUE_DISK, REQ_FUA_BIT, REQUEST_BIO, REQUEST_DISK, REQUEST_FLAGS, REQUEST_QUEUE,
    REQUEST_START, RQ_ISSUE_RQ, argument, dev_of_disk, pointer, read,
};
use crate::maps::{DEVICES, DISKS, REQUESTS, armed};
use crate::stat::{EEXIST, add, atomic_add, count, key, lose_update, now, record};
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::key::Key;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::Scope;

const PROBE: Probe = Probe::FlushIssues;

/// `enum req_op` (include/linux/blk_types.h); the numbers are the same from 5.10 on.
const REQ_OP_MASK: u32 = 0xff;
const REQ_OP_WRITE: u32 = 1;
const REQ_OP_FLUSH: u32 = 2;
const REQ_OP_WRITE_ZEROES: u32 = 9;

/// A whole disk.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Disk {
    /// When a write of more than 0 bytes completed last, or 0.
    pub written: u64,
    /// When a device-level flush started last, or 0.
    pub flushed: u64,
    /// Device-level flushes under way.
    pub flushing: u64,
    /// The bio whose PREFLUSH waits for a device-level flush; its `dev` is 0 for none.
    pub waiting: Waiting,
}

/// A bio whose PREFLUSH waits for a device-level flush.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Waiting {
    /// Where it was sent.
    pub dev: u32,
    /// Why.
    pub cause: u32,
    /// The device above, or 0.
    pub via: u32,
    /// Id of its stack if nothing explains it, or 0.
    pub stack: u32,
}

/// A request under way.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Request {
    /// When it was issued.
    pub at: u64,
    /// 1 for a flush.
    pub flush: u64,
}

/// `dev`, if it is a filesystem's that is in scope.
#[inline(always)]
pub fn filesystem_in_scope(dev: u32) -> Option<u32> {
    let state = armed()?;
    if state.filtered == 0 {
        return Some(dev);
    }
    // SAFETY: user space replaces entries whole.
    let scope = unsafe { DEVICES.get(dev) }?;
    (scope.flags & Scope::XFS != 0).then_some(dev)
}

/// The entry of a whole disk, made if need be. CPUs change it side by side.
#[inline(always)]
fn disk(dev: u32) -> Option<*mut Disk> {
    if DISKS.get_ptr(dev).is_none() {
        let new = Disk {
            written: 0,
            flushed: 0,
            flushing: 0,
            waiting: Waiting {
                dev: 0,
                cause: 0,
                via: 0,
                stack: 0,
            },
        };
        if let Err(error) = DISKS.insert(dev, new, u64::from(BPF_NOEXIST))
            && error != EEXIST
        {
            lose_update(PROBE, error);
        }
    }
    DISKS.get_ptr_mut(dev)
}

/// `dev_t` of a request's disk, if that is in scope. The disk moved from the request to its queue
/// in 5.17.
#[inline(always)]
fn disk_of(request: u64) -> Option<u32> {
    let disk = match pointer(request, &REQUEST_DISK) {
        Some(disk) => disk,
        None => pointer(pointer(request, &REQUEST_QUEUE)?, &QUEUE_DISK)?,
    };
    let dev = dev_of_disk(disk)?;
    DEVICES.get_ptr(dev).map(|_| dev)
}

#[raw_tracepoint(tracepoint = "block_rq_issue")]
pub fn block_rq_issue(ctx: RawTracePointContext) -> i32 {
    issued(argument::<0, 1>(&ctx, &RQ_ISSUE_RQ));
    0
}

fn issued(request: u64) -> Option<()> {
    armed()?;
    let dev = disk_of(request)?;
    let flags: u32 = read(request, &REQUEST_FLAGS)?;
    let flush = flags & REQ_OP_MASK == REQ_OP_FLUSH;
    let now = now();
    let created: u64 = read(request, &REQUEST_START)?;
    // Without I/O statistics the kernel does not stamp requests.
    if created != 0 && created <= now {
        record(PROBE, &key(Metric::QueueTime, dev, 0), now - created);
    }
    let entry = Request {
        at: now,
        flush: u64::from(flush),
    };
    if let Err(error) = REQUESTS.insert(request, entry, 0) {
        lose_update(PROBE, error);
    }
    if flush {
        flush_issued(dev, now)?;
    }
    Some(())
}

/// A flush is empty if no write has completed since the one before *started*. Of the first one
/// seen this is not known.
#[inline(always)]
fn flush_issued(dev: u32, now: u64) -> Option<()> {
    count(PROBE, Metric::FlushIssued, dev, 0);
    let disk = disk(dev)?;
    // SAFETY: a map value that outlives the program. Of two CPUs that write a word at once, either
    // value is right; flushes of one disk start one after another (blk_kick_flush).
    let (empty, waiting) = unsafe {
        let empty = (*disk).flushed != 0 && (*disk).written < (*disk).flushed;
        let waiting = (*disk).waiting;
        (*disk).flushed = now;
        (*disk).waiting.dev = 0;
        atomic_add(&raw mut (*disk).flushing, 1);
        (empty, waiting)
    };
    if empty {
        count(PROBE, Metric::FlushIssuedEmpty, dev, 0);
        if waiting.dev != 0 {
            let row = Key {
                metric: Metric::FlushEmpty as u16,
                label: waiting.cause as u16,
                dev: waiting.dev,
                via: waiting.via,
                stack: waiting.stack,
            };
            add(PROBE, &row, 1);
        }
    }
    Some(())
}

/// A bio's PREFLUSH waits for the next device-level flush of this disk.
#[inline(always)]
pub fn waits(whole: u32, bio: Waiting) {
    if let Some(disk) = disk(whole) {
        // SAFETY: a map value that outlives the program; of two bios at once, either may stand for
        // the flush that serves both.
        unsafe { (*disk).waiting = bio };
    }
}

/// Whether a device-level flush of this disk is under way.
#[inline(always)]
pub fn is_flushing(dev: u32) -> bool {
    // SAFETY: a map value that outlives the program.
    disk(dev).is_some_and(|disk| unsafe { (*disk).flushing != 0 })
}

#[raw_tracepoint(tracepoint = "block_rq_complete")]
pub fn block_rq_complete(ctx: RawTracePointContext) -> i32 {
    completed(ctx.arg(0), ctx.arg(2));
    0
}

fn completed(request: u64, bytes: u32) -> Option<()> {
    armed()?;
    let dev = disk_of(request)?;
    let flags: u32 = read(request, &REQUEST_FLAGS)?;
    let op = flags & REQ_OP_MASK;
    let durable = flags & (1 << REQ_FUA_BIT.load()) != 0;
    if bytes > 0 && !durable && (op == REQ_OP_WRITE || op == REQ_OP_WRITE_ZEROES) {
        // SAFETY: a map value that outlives the program.
        unsafe { (*disk(dev)?).written = now() };
    }
    if bytes == 0 || durable {
        flush::completed(read(request, &REQUEST_BIO)?, bytes);
    }
    // A request behind which a FUA was emulated completes a second time, with 0 bytes.
    // SAFETY: the entry is copied before it is removed.
    let Request { at, flush } = *unsafe { REQUESTS.get(request) }?;
    let _ = REQUESTS.remove(request);
    record(PROBE, &key(Metric::DeviceTime, dev, 0), now() - at);
    if flush != 0 {
        // SAFETY: as above; the address is taken, nothing is read.
        atomic_add(unsafe { &raw mut (*disk(dev)?).flushing }, u64::MAX);
    }
    Some(())
}
