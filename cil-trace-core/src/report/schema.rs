//! The JSON of `report --format json`, field for field.
//!
//! Fields may be added, never renamed. Times are integers in `_ns`, sizes `_bytes`, rates `_per_s`.
//! What could not be measured is `null` or absent, with a row in [`Report::probes`] that says why;
//! it is never zero.

use serde::Serialize;
use std::collections::BTreeMap;

/// The whole report.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// Version of this layout.
    pub schema: u32,
    /// `cil-trace` and its version.
    pub tool: String,
    /// `uname -r` of the traced machine.
    pub kernel: String,
    /// The workload's command line.
    pub command: Vec<String>,
    /// What was asked for: devices, process, probe sets.
    pub scope: crate::session::Scope,
    /// RFC 3339.
    pub started_at: String,
    /// Length of the window.
    pub duration_ns: u64,
    /// The recording has no end: cil-trace was killed or aborted.
    pub interrupted: bool,
    /// The window.
    pub window: Window,
    /// The command and how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// One row per device.
    pub devices: Vec<DeviceRow>,
    /// One row per device, cause and device above.
    pub flushes: Vec<FlushRow>,
    /// One row per device and kind.
    pub fsyncs: Vec<FsyncRow>,
    /// One row per device and cause.
    pub forces: Vec<ForceRow>,
    /// CIL pushes.
    pub pushes: Pushes,
    /// iclog writes.
    pub iclogs: Iclogs,
    /// Commits.
    pub commits: Commits,
    /// Waits for log reservation space.
    pub grants: Grants,
    /// Waits that are not locks.
    pub waits: Vec<WaitRow>,
    /// How full the log was.
    pub log_space: Vec<LogSpaceRow>,
    /// What the AIL's pushes met.
    pub ail: Vec<AilRow>,
    /// What `xfs_ilock` takes: one row per lock, mode and device.
    pub ilock: Vec<IlockRow>,
    /// Contended locks: one row per lock, mode and device.
    pub locks: Vec<LockRow>,
    /// The longest waits for locks.
    pub blockers: Vec<BlockerRow>,
    /// Locks that the traced kernel does not have, of those that others do.
    pub absent_locks: Vec<String>,
    /// Who forced the log and who waited.
    pub processes: Vec<ProcessRow>,
    /// One row per tick; only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks: Option<Vec<TickRow>>,
    /// What tracing cost; absent if the recording has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<crate::session::Overhead>,
    /// How large the sample of single objects is.
    pub events: Events,
    /// What is missing from the numbers.
    pub loss: Loss,
    /// How each number was got.
    pub probes: Vec<crate::session::ProbeOutcome>,
}

/// CLOCK_MONOTONIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Window {
    /// Every probe was attached by then.
    pub start_ns: u64,
    /// Nothing was detached before then.
    pub end_ns: u64,
}

/// The command and how it ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Workload {
    /// Its exit status, unless a signal ended it.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Wall-clock time.
    pub wall_ns: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in kernel mode.
    pub sys_ns: u64,
    /// Results under LKP's names.
    pub metrics: BTreeMap<String, f64>,
}

/// A histogram with its quantiles, in the unit of the field it stands in.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Hist {
    /// Values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The smallest; `null` when empty.
    pub min: Option<u64>,
    /// The largest; `null` when empty.
    pub max: Option<u64>,
    /// Median; quantiles are interpolated inside a bucket of at most 12.5 % width.
    pub p50: Option<u64>,
    /// 90 % of the values are below.
    pub p90: Option<u64>,
    /// 99 % of the values are below.
    pub p99: Option<u64>,
    /// 99.9 % of the values are below.
    pub p999: Option<u64>,
    /// `[lo, hi, count]`, edges `[lo, hi)`, only buckets with values.
    pub buckets: Vec<(u64, u64, u64)>,
}

/// A device.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct DeviceRow {
    /// Bare name.
    pub device: String,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// The whole disk, if this is a partition.
    pub partition_of: Option<String>,
    /// Filesystem type.
    pub filesystem: Option<String>,
    /// Where it is mounted.
    pub mountpoint: Option<String>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether it honours FUA itself.
    pub fua: Option<bool>,
    /// The devices beneath.
    pub stacked_on: Vec<String>,
    /// Bios with PREFLUSH or FUA sent to it; `null` if not measured.
    pub flushes_requested: Option<u64>,
    /// Device flushes that they require.
    pub flushes_needed: Option<u64>,
    /// Device-level flush requests; of a whole disk only.
    pub flushes_issued: Option<u64>,
    /// `needed - issued`; of a whole disk with a request queue only. The needs of its partitions
    /// are the disk's.
    pub flushes_merged: Option<i64>,
    /// Device-level flush requests with no write completed since the one before.
    pub flushes_empty: Option<u64>,
    /// Bios with PREFLUSH or FUA that it had not completed when the window ended.
    pub flushes_in_flight: Option<u64>,
    /// How long the oldest of them had been under way; `null` also if there was none.
    pub oldest_in_flight_ns: Option<u64>,
    /// Flushes requested of the devices beneath on its behalf, for each requested of it.
    pub fan_out: Option<f64>,
    /// Queueing of a bio with PREFLUSH or FUA to its completion.
    pub flush_latency: Option<Hist>,
    /// Requests: creation to issue.
    pub queue_time: Option<Hist>,
    /// Requests: issue to completion.
    pub device_time: Option<Hist>,
    /// Size of the XFS log.
    pub log_size_bytes: Option<u64>,
    /// Size of an iclog.
    pub iclog_size_bytes: Option<u64>,
}

/// Flushes of one device by cause.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FlushRow {
    /// Bare name.
    pub device: String,
    /// The cause.
    pub cause: String,
    /// The device above, for bios of a lower device.
    pub via: Option<String>,
    /// Bios with PREFLUSH or FUA.
    pub requested: u64,
    /// Those whose device flush had nothing to flush; `null` if not measured.
    pub empty: Option<u64>,
    /// Those of a push that wrote no iclog, made good by a later flush.
    pub pointless: Option<u64>,
    /// Queueing to completion.
    pub latency: Option<Hist>,
}

/// fsyncs of one filesystem by kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FsyncRow {
    /// Bare name.
    pub device: String,
    /// `fsync`, `fdatasync`, `dir` or `o-sync`.
    pub kind: String,
    /// Calls.
    pub count: u64,
    /// Call to end.
    pub latency: Option<Hist>,
    /// Calls inside which the log was forced; `null` if forces were not measured.
    pub forced_log: Option<u64>,
    /// Calls that only flushed the device's cache; `null` if flushes were not measured.
    pub flushed_only: Option<u64>,
    /// Calls that did neither; `null` if either was not measured.
    pub neither: Option<u64>,
}

/// Log forces of one filesystem by cause.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ForceRow {
    /// Bare name.
    pub device: String,
    /// The cause.
    pub cause: String,
    /// Forces.
    pub count: u64,
    /// Call to end; `null` if not measured.
    pub latency: Option<Hist>,
    /// `function`; or `lower_bound`, as an approximated end comes before the true one.
    pub method: Option<String>,
}

/// CIL pushes.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Pushes {
    /// All pushes, empty ones included; `null` if not measured.
    pub count: Option<u64>,
    /// Pushes that found nothing to do.
    pub empty: Option<u64>,
    /// By what queued them.
    pub by_trigger: BTreeMap<String, u64>,
    /// Bytes written to iclogs.
    pub bytes: Option<Hist>,
    /// Transactions in the checkpoint.
    pub transactions: Option<Hist>,
    /// Queued to started.
    pub queue_delay: Option<Hist>,
    /// Started to ended.
    pub run_time: Option<Hist>,
    /// Pushes that were not empty and submitted no iclog.
    pub wrote_no_iclog: Option<u64>,
    /// Pushes inside which a flush was requested.
    pub with_flush: Option<u64>,
    /// iclogs submitted inside pushes.
    pub iclogs: Option<u64>,
    /// Flushes requested inside pushes.
    pub flushes: Option<u64>,
    /// Most pushes of one filesystem under way at once.
    pub max_concurrent: Option<u64>,
    /// The same per device.
    pub by_device: Vec<PushesOfDevice>,
}

/// CIL pushes of one filesystem.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PushesOfDevice {
    /// Bare name.
    pub device: String,
    /// The numbers; `by_device` is empty here.
    #[serde(flatten)]
    pub pushes: Pushes,
}

/// iclog writes.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Iclogs {
    /// Writes; `null` if not measured.
    pub writes: Option<u64>,
    /// Bytes in them.
    pub bytes: Option<u64>,
    /// Used share of the iclog when it was written, percent.
    pub fill_pct: Option<Hist>,
    /// Submission to completion.
    pub latency: Option<Hist>,
    /// By cause.
    pub by_cause: Vec<IclogCause>,
    /// By device.
    pub by_device: Vec<IclogsOfDevice>,
}

/// iclog writes of one cause.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct IclogCause {
    /// The cause.
    pub cause: String,
    /// Writes.
    pub writes: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Used share of the iclog, percent.
    pub fill_pct: Option<Hist>,
}

/// iclog writes of one filesystem.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct IclogsOfDevice {
    /// Bare name.
    pub device: String,
    /// The numbers; `by_device` is empty here.
    #[serde(flatten)]
    pub iclogs: Iclogs,
}

/// Commits.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Commits {
    /// `xfs_trans_commit_items` events; `null` if not measured.
    pub count: Option<u64>,
    /// Per second of the window.
    pub per_s: Option<f64>,
    /// `xfs_trans_commit` to `xfs_trans_free`.
    pub latency: Option<Hist>,
    /// Where that time went; the parts sum to it.
    pub split: Option<CommitSplit>,
    /// By device.
    pub by_device: Vec<CommitsOfDevice>,
}

/// Where the commits' time went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CommitSplit {
    /// Waiting for `xc_ctx_lock`; `null` if not measured (it is then in `insert_ns`).
    pub ctx_lock_ns: Option<u64>,
    /// Formatting and insertion into the CIL.
    pub insert_ns: u64,
    /// Throttled above the CIL's hard limit; `null` if not measured (it is then in `other_ns`).
    pub throttle_ns: Option<u64>,
    /// The rest.
    pub other_ns: u64,
}

/// Commits of one filesystem.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct CommitsOfDevice {
    /// Bare name.
    pub device: String,
    /// The numbers; `by_device` is empty here.
    #[serde(flatten)]
    pub commits: Commits,
}

/// Waits for log reservation space.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Grants {
    /// Sleeps; `null` if not measured.
    pub waits: Option<u64>,
    /// How long.
    pub wait: Option<Hist>,
    /// By device.
    pub by_device: Vec<GrantsOfDevice>,
}

/// Waits for log reservation space of one filesystem.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct GrantsOfDevice {
    /// Bare name.
    pub device: String,
    /// The numbers; `by_device` is empty here.
    #[serde(flatten)]
    pub grants: Grants,
}

/// A wait that is not a lock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WaitRow {
    /// `throttle`, `commit-order`, `iclog-space` or `force`.
    pub kind: String,
    /// Bare name.
    pub device: String,
    /// Waits.
    pub count: u64,
    /// How long; `null` if only the count is known.
    pub wait: Option<Hist>,
}

/// How full a log was.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LogSpaceRow {
    /// Bare name.
    pub device: String,
    /// Share between tail and head at each iclog write, percent.
    pub used_pct: Hist,
    /// The least that was free.
    pub min_free_bytes: Option<u64>,
}

/// What the AIL's pushes met on one filesystem.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct AilRow {
    /// Bare name.
    pub device: String,
    /// Items pushed.
    pub push: u64,
    /// Items pinned.
    pub pinned: u64,
    /// Items locked.
    pub locked: u64,
    /// Items already being flushed.
    pub flushing: u64,
}

/// One lock of inodes in one mode, on one filesystem.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct IlockRow {
    /// `ILOCK`, `IOLOCK` or `MMAPLOCK`.
    pub lock: String,
    /// `shared` or `exclusive`.
    pub mode: String,
    /// Bare name.
    pub device: Option<String>,
    /// Blocking calls of `xfs_ilock`, exact.
    pub acquired: u64,
    /// Calls of `xfs_ilock_nowait`, exact.
    pub trylock_tried: u64,
    /// Those that failed; `null` where function returns cannot be probed.
    pub trylock_failed: Option<u64>,
    /// Blocking calls within a millisecond after a trylock of the same lock by the same thread, with
    /// no unlock in between. Of the inodes sampled, times [`IlockRow::sampled_1_in`].
    pub trylock_then_lock: u64,
    /// Contended waits, also of the VFS, which takes `i_rwsem` without `xfs_ilock`.
    pub wait: Option<Hist>,
    /// Taken to given back. Of the inodes sampled, counts times [`IlockRow::sampled_1_in`].
    pub hold: Option<Hist>,
    /// `function`; or `lower_bound`, as a writer's optimistic spinning is not seen.
    pub wait_method: Option<String>,
    /// `function`; or `upper_bound`, as the hold begins with the call or a contended wait's end.
    pub hold_method: Option<String>,
    /// Holds, callers' counts and `trylock_then_lock` are of 1 in so many inodes, scaled.
    pub sampled_1_in: u32,
    /// Who called and who waited, the longest wait first.
    pub callers: Vec<IlockCaller>,
}

/// Calls of `xfs_ilock` and waits in one function.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct IlockCaller {
    /// The function.
    pub function: String,
    /// Its blocking calls of `xfs_ilock`; of the inodes sampled, scaled.
    pub count: u64,
    /// Its contended waits.
    pub wait_ns: u64,
}

/// A contended lock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LockRow {
    /// Its name; of one without, `other@` and the function that waits.
    pub lock: String,
    /// `spin`, `rwlock`, `rwsem`, `mutex` or `semaphore`.
    pub kind: String,
    /// `shared` or `exclusive`.
    pub mode: String,
    /// The filesystem's device; `null` for a lock of none.
    pub device: Option<String>,
    /// Contended waits; `null` if not measured.
    pub waits: Option<u64>,
    /// How long.
    pub wait: Option<Hist>,
    /// How long it was held; `null` for locks of which that is not measured.
    pub hold: Option<Hist>,
    /// How the waits were seen: `function`, `tracepoint` or `lower_bound`.
    pub method: Option<String>,
    /// How the holds were seen: `function` or `upper_bound`.
    pub hold_method: Option<String>,
    /// Who waited, longest first.
    pub callers: Vec<LockCaller>,
    /// Of a page cache's lock: in which role.
    pub roles: Vec<LockRole>,
}

/// Waits for a lock in one function.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LockCaller {
    /// The function.
    pub function: String,
    /// Waits.
    pub waits: u64,
    /// How long together.
    pub wait_ns: u64,
}

/// Waits for a lock in one role.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LockRole {
    /// `writer`, `reclaim`, `writeback end` or `other`.
    pub role: String,
    /// Waits.
    pub waits: u64,
    /// How long together.
    pub wait_ns: u64,
}

/// One of the longest waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct BlockerRow {
    /// The lock, as in [`LockRow`].
    pub lock: String,
    /// `shared` or `exclusive`.
    pub mode: String,
    /// The filesystem's device; `null` for a lock of none.
    pub device: Option<String>,
    /// When the wait began, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Who waited: command name and thread id.
    pub waiter: String,
    /// The function that waited.
    pub waiter_function: String,
    /// Where, leaf first; `null` if the stack was lost.
    pub waiter_stack: Option<Vec<String>>,
    /// How long.
    pub wait_ns: u64,
    /// Who held the lock when the wait began; `null` if the lock does not say so.
    pub holder: Option<String>,
    /// Where the holder slept longest meanwhile, leaf first; `null` if it did not or was not seen.
    pub holder_stack: Option<Vec<String>>,
    /// What the holder waited for itself; `null` if that is not known.
    pub holder_waits_for: Option<String>,
}

/// What a process did; a `pid` from 4,194,304 on is none, but what many did that have ended
/// (`comm` says how many).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ProcessRow {
    /// Process id.
    pub pid: u32,
    /// Command name.
    pub comm: String,
    /// The command or its descendant.
    pub workload: bool,
    /// Log forces.
    pub forces: u64,
    /// Bios with PREFLUSH or FUA; `null` if not measured.
    pub flushes_requested: Option<u64>,
    /// Waited for contended locks; `null` if not measured.
    pub lock_wait_ns: Option<u64>,
    /// Waited for the log: forces, grants, throttling, iclog space, commit order.
    pub log_wait_ns: u64,
}

/// Increments of one tick.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TickRow {
    /// End of the tick, CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// Commits.
    pub commits: Option<u64>,
    /// Pushes.
    pub pushes: Option<u64>,
    /// Log forces.
    pub forces: Option<u64>,
    /// Bios with PREFLUSH or FUA.
    pub flushes_requested: Option<u64>,
    /// Device-level flush requests.
    pub flushes_issued: Option<u64>,
    /// Waited for contended locks; `null` if not measured.
    pub lock_wait_ns: Option<u64>,
}

/// The sample of single objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Events {
    /// Objects that the kernel side handed over.
    pub seen: u64,
    /// Objects kept in the recording.
    pub kept: u64,
}

/// What is missing from the numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Loss {
    /// By probe and cause; only those that are not zero.
    pub by_probe: Vec<LossRow>,
    /// Lost updates and events; unpaired ends and lost stacks stand apart.
    pub total: u64,
    /// Ends without a beginning.
    pub unpaired: u64,
    /// Stacks that the kernel could not give.
    pub stacks_lost: u64,
}

/// One kind of loss.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LossRow {
    /// Whose numbers are short.
    pub probe: String,
    /// Why.
    pub cause: String,
    /// How many.
    pub count: u64,
}
