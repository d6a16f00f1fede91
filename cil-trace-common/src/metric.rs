//! Every quantity that the kernel side counts: one row each, read by all who decode, store or
//! report.

/// How a metric is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A sum.
    Counter,
    /// A [`Hist`](crate::hist::Hist).
    Histogram,
}

/// What [`Key::label`](crate::key::Key::label) holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label {
    /// Nothing.
    None,
    /// A [`Cause`](crate::cause::Cause).
    Cause,
    /// A [`FsyncKind`](crate::cause::FsyncKind).
    Fsync,
    /// A [`Lock`](crate::lock::Lock).
    Lock,
}

macro_rules! metrics {
    ($( $(#[$meta:meta])* $variant:ident = $value:literal => $text:literal, $shape:ident, $unit:literal, $label:ident; )+) => {
        $crate::named_enum! {
            /// A quantity. `dev` of its key is the filesystem's device unless said otherwise.
            pub enum Metric { $( $(#[$meta])* $variant = $value => $text ),+ }
        }
        impl Metric {
            /// Counter or histogram.
            #[must_use]
            pub const fn shape(self) -> Shape {
                match self { $( Self::$variant => Shape::$shape ),+ }
            }
            /// Unit of the counter or of the histogram's values.
            #[must_use]
            pub const fn unit(self) -> &'static str {
                match self { $( Self::$variant => $unit ),+ }
            }
            /// What the key's label holds.
            #[must_use]
            pub const fn label(self) -> Label {
                match self { $( Self::$variant => Label::$label ),+ }
            }
        }
    };
}

metrics! {
    /// `xfs_trans_commit_items` events.
    Commits = 0 => "commits", Counter, "1", None;
    /// `xfs_trans_commit` to `xfs_trans_free`.
    CommitLatency = 1 => "commit_latency", Histogram, "ns", None;
    /// Part of the commits' latency: waiting for `xc_ctx_lock`.
    CommitCtxLock = 2 => "commit_ctx_lock", Counter, "ns", None;
    /// Part of the commits' latency: formatting and insertion into the CIL.
    CommitInsert = 3 => "commit_insert", Counter, "ns", None;
    /// Part of the commits' latency: throttled above the CIL's hard limit.
    CommitThrottle = 4 => "commit_throttle", Counter, "ns", None;
    /// `xlog_cil_insert_items`, where a kernel has it as a function of its own.
    InsertItems = 5 => "insert_items", Histogram, "ns", None;

    /// CIL pushes by trigger.
    Pushes = 10 => "pushes", Counter, "1", Cause;
    /// Pushes that found nothing to do.
    PushesEmpty = 11 => "pushes_empty", Counter, "1", None;
    /// Pushes that were not empty and submitted no iclog.
    PushesWroteNoIclog = 12 => "pushes_wrote_no_iclog", Counter, "1", None;
    /// Pushes inside which a bio with PREFLUSH or FUA was submitted.
    PushesWithFlush = 13 => "pushes_with_flush", Counter, "1", None;
    /// Queued to started.
    PushQueueDelay = 14 => "push_queue_delay", Histogram, "ns", None;
    /// Started to ended.
    PushRunTime = 15 => "push_run_time", Histogram, "ns", None;
    /// Bytes that a push wrote to iclogs (pushes that were not empty).
    PushBytes = 16 => "push_bytes", Histogram, "bytes", None;
    /// Transactions in a checkpoint (pushes that were not empty).
    PushTransactions = 17 => "push_transactions", Histogram, "1", None;
    /// Pushes of that filesystem under way when one starts, itself included.
    PushConcurrency = 18 => "push_concurrency", Histogram, "1", None;
    /// iclogs submitted inside pushes.
    PushIclogs = 19 => "push_iclogs", Counter, "1", None;
    /// Bios with PREFLUSH or FUA submitted inside pushes.
    PushFlushes = 20 => "push_flushes", Counter, "1", None;

    /// iclog writes by cause.
    IclogWrites = 30 => "iclog_writes", Counter, "1", Cause;
    /// Bytes in them (`ic_offset`).
    IclogBytes = 31 => "iclog_bytes", Counter, "bytes", Cause;
    /// `ic_offset` as a share of the iclog size.
    IclogFill = 32 => "iclog_fill", Histogram, "percent", Cause;
    /// Submission to completion.
    IclogLatency = 33 => "iclog_latency", Histogram, "ns", None;

    /// Log forces by cause.
    Forces = 40 => "forces", Counter, "1", Cause;
    /// Call to end.
    ForceLatency = 41 => "force_latency", Histogram, "ns", Cause;

    /// fsyncs by kind.
    Fsyncs = 50 => "fsyncs", Counter, "1", Fsync;
    /// Call to end.
    FsyncLatency = 51 => "fsync_latency", Histogram, "ns", Fsync;
    /// fsyncs inside which the log was forced.
    FsyncForced = 52 => "fsync_forced_log", Counter, "1", Fsync;
    /// fsyncs inside which an empty flush was requested.
    FsyncFlushed = 53 => "fsync_flushed", Counter, "1", Fsync;
    /// fsyncs inside which both happened.
    FsyncForcedAndFlushed = 54 => "fsync_forced_and_flushed", Counter, "1", Fsync;

    /// Bios with PREFLUSH or FUA by the device they were sent to, cause, and device above.
    FlushRequested = 60 => "flush_requested", Counter, "1", Cause;
    /// Device flushes that these bios require.
    FlushNeeded = 61 => "flush_needed", Counter, "1", None;
    /// Queueing of the bio to its completion.
    FlushLatency = 62 => "flush_latency", Histogram, "ns", Cause;
    /// Bios whose device flush found no write completed since the one before.
    FlushEmpty = 63 => "flush_empty", Counter, "1", Cause;
    /// Flushes of a push that wrote no iclog, made good by a later flush.
    FlushPointless = 64 => "flush_pointless", Counter, "1", Cause;
    /// Device-level flush requests; `dev` is the whole disk.
    FlushIssued = 65 => "flush_issued", Counter, "1", None;
    /// Device-level flush requests that were empty; `dev` is the whole disk.
    FlushIssuedEmpty = 66 => "flush_issued_empty", Counter, "1", None;
    /// Bios with PREFLUSH or FUA to a partition that is out of scope, of a disk that is in it; `dev`
    /// is the whole disk.
    FlushForeign = 69 => "flush_foreign", Counter, "1", None;
    /// Writes with FUA that a device above passed on after it had passed on their PREFLUSH by itself.
    FlushRest = 70 => "flush_rest", Counter, "1", None;
    /// Requests: creation to issue; `dev` is the whole disk.
    QueueTime = 67 => "queue_time", Histogram, "ns", None;
    /// Requests: issue to completion; `dev` is the whole disk.
    DeviceTime = 68 => "device_time", Histogram, "ns", None;

    /// Waits for log reservation space.
    GrantWait = 80 => "grant_wait", Histogram, "ns", None;
    /// Waits above the CIL's hard limit (`xc_push_wait`).
    ThrottleWait = 81 => "throttle_wait", Histogram, "ns", None;
    /// Waits for an earlier checkpoint's record (`xlog_cil_order_write`).
    CommitOrderWait = 82 => "commit_order_wait", Histogram, "ns", None;
    /// Waits for an iclog (`xlog_state_get_iclog_space`).
    IclogSpaceWait = 83 => "iclog_space_wait", Histogram, "ns", None;

    /// Share of the log between tail and head, seen at each iclog write.
    LogUsed = 90 => "log_used", Histogram, "percent", None;
    /// Bytes of the log that are free, seen at each iclog write.
    LogFree = 91 => "log_free", Histogram, "bytes", None;

    /// AIL items pushed.
    AilPush = 100 => "ail_push", Counter, "1", None;
    /// AIL items found pinned.
    AilPinned = 101 => "ail_pinned", Counter, "1", None;
    /// AIL items found locked.
    AilLocked = 102 => "ail_locked", Counter, "1", None;
    /// AIL items already being flushed.
    AilFlushing = 103 => "ail_flushing", Counter, "1", None;

    /// Calls of `xfs_ilock` by the locks that they take.
    IlockAcquired = 120 => "ilock_acquired", Counter, "1", Lock;
    /// Calls of `xfs_ilock_nowait`.
    IlockTried = 121 => "ilock_tried", Counter, "1", Lock;
    /// Calls of `xfs_ilock_nowait` that did not get the locks.
    IlockTryFailed = 122 => "ilock_try_failed", Counter, "1", Lock;
    /// Calls of `xfs_ilock` soon after a trylock of the same inode by the same thread, with no
    /// unlock in between. Of the inodes that are sampled.
    IlockAfterTry = 123 => "ilock_try_then_lock", Counter, "1", Lock;
    /// Contended waits for a lock.
    LockWait = 124 => "lock_wait", Histogram, "ns", Lock;
    /// How long a lock was held. Locks of inodes: of the inodes that are sampled.
    LockHold = 125 => "lock_hold", Histogram, "ns", Lock;
}
