//! Why the log was forced, an iclog written, a cache flushed or a push queued.

named_enum! {
    /// The closed list of causes, shared by flushes, iclog writes, forces and push triggers.
    ///
    /// When several apply, the outermost known reason wins: unmount, freeze, remount, worker,
    /// o-dsync, then fsync, sync, sync-transaction and ail.
    pub enum Cause {
        /// Nothing known explains it; for flushes the stack names the function.
        Other = 0 => "other",
        /// `xfs_log_force_seq` from `xfs_file_fsync`, for fsync(2) or fdatasync(2).
        LogForceFsync = 1 => "log-force:fsync",
        /// `xfs_log_force` from `xfs_fs_sync_fs`: sync(2) or syncfs(2).
        LogForceSync = 2 => "log-force:sync",
        /// A synchronous transaction: `xfs_log_force_seq` from `__xfs_trans_commit`.
        LogForceSyncTransaction = 3 => "log-force:sync-transaction",
        /// The periodic `xfs_log_worker`.
        LogForceWorker = 4 => "log-force:worker",
        /// `xfsaild` forcing the log to unpin items.
        LogForceAil = 5 => "log-force:ail",
        /// A log force from anywhere else, such as a pinned buffer or inode.
        LogForceOther = 6 => "log-force:other",
        /// An iclog that went out because it was full. On 5.10 each one carries a flush.
        IclogWrite = 7 => "iclog-write",
        /// The first iclog of a checkpoint (`XLOG_ICL_NEED_FLUSH` alone).
        CheckpointStart = 8 => "checkpoint-start",
        /// The iclog with a commit record (`XLOG_ICL_NEED_FUA`), written by the push.
        CheckpointCommit = 9 => "checkpoint-commit",
        /// An empty flush issued by `xlog_cil_push_work` itself (5.14 to 5.17).
        CilPush = 10 => "cil-push",
        /// The empty flush of `xfs_file_fsync`, when the log was clean or is on another device.
        FsyncData = 11 => "fsync-data",
        /// The flush of the data device before a write to an external log.
        ExternalLog = 12 => "external-log",
        /// A write with `O_SYNC` or `O_DSYNC`.
        ODsync = 13 => "o-dsync",
        /// Garbage collection of zoned realtime devices.
        Gc = 14 => "gc",
        /// A filesystem freeze.
        Freeze = 15 => "freeze",
        /// A remount.
        Remount = 16 => "remount",
        /// An unmount.
        Unmount = 17 => "unmount",
        /// Not XFS: the filesystem on that device, `fs:<type>` in reports.
        ForeignFs = 18 => "fs",
        /// Push trigger only: a commit found the CIL above its space limit.
        Background = 19 => "background",
        /// Push trigger only: `xfsaild` asked for pinned items (`xlog_cil_flush`).
        Ail = 20 => "ail",
    }
}

named_enum! {
    /// How an fsync came about.
    pub enum FsyncKind {
        /// fsync(2), or a caller that does not say.
        Fsync = 0 => "fsync",
        /// fdatasync(2), or msync(2), which asks for the same.
        Fdatasync = 1 => "fdatasync",
        /// fsync of a directory (`xfs_dir_fsync`).
        Dir = 2 => "dir",
        /// A write with `O_SYNC` or `O_DSYNC`.
        OSync = 3 => "o-sync",
    }
}
