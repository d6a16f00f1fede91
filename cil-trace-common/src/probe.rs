//! The probes' names. What each attaches to stands in one table in `cil-trace-core`.

named_enum! {
    /// One quantity that is measured; losses are counted by it.
    pub enum Probe {
        /// Commits, their latency and its parts.
        Commits = 0 => "commits",
        /// Time inside `xlog_cil_insert_items`.
        CommitInsert = 1 => "commit-insert",
        /// Time a commit waits for `xc_ctx_lock`.
        CommitCtxLock = 2 => "commit-ctx-lock",
        /// Time a commit is throttled.
        Throttle = 3 => "throttle",
        /// CIL pushes.
        Pushes = 4 => "pushes",
        /// iclog writes.
        Iclogs = 5 => "iclogs",
        /// Log forces.
        Forces = 6 => "forces",
        /// The end of a log force.
        ForceEnd = 7 => "force-end",
        /// fsyncs.
        Fsyncs = 8 => "fsyncs",
        /// The end of an fsync.
        FsyncEnd = 9 => "fsync-end",
        /// Bios with PREFLUSH or FUA.
        FlushRequests = 10 => "flush-requests",
        /// Their completion.
        FlushEnd = 11 => "flush-end",
        /// Device-level flush requests, and the time of all requests in queue and device.
        FlushIssues = 12 => "flush-issues",
        /// Waits for log reservation space.
        GrantWaits = 13 => "grant-waits",
        /// Waits for an earlier checkpoint's record.
        CommitOrder = 14 => "commit-order",
        /// Waits for an iclog.
        IclogSpace = 15 => "iclog-space",
        /// AIL push results.
        Ail = 16 => "ail",
        /// Which tasks descend from the command.
        Descendants = 17 => "descendants",
        /// Which loop device a worker serves.
        LoopWorkers = 18 => "loop-workers",
        /// Samples of what runs on the CPUs.
        CpuSamples = 19 => "cpu-samples",
        /// Time that threads spend off the CPUs.
        OffCpu = 20 => "offcpu",
        /// Which code processes have mapped, by which their stacks are read.
        UserCode = 21 => "user-code",
        /// Locks of inodes taken by `xfs_ilock`, and how long they are held.
        Ilock = 22 => "ilock",
        /// When `xfs_ilock` has got its locks, and whether `xfs_ilock_nowait` has.
        IlockReturn = 23 => "ilock-return",
        /// Contended waits for spinlocks.
        SpinWaits = 24 => "spin-waits",
        /// Contended waits for rwlocks.
        RwlockWaits = 25 => "rwlock-waits",
        /// Contended waits for rwsems.
        RwsemWaits = 26 => "rwsem-waits",
        /// Contended waits for mutexes.
        MutexWaits = 27 => "mutex-waits",
        /// Contended waits for semaphores.
        SemaphoreWaits = 28 => "semaphore-waits",
        /// Who holds what others wait for, and where they sleep meanwhile.
        Holders = 29 => "holders",
        /// How long a commit or a push holds `xc_ctx_lock`.
        CtxLockHold = 30 => "ctx-lock-hold",
    }
}
