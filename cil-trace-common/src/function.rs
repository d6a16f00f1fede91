//! Kernel functions by which a return address or a stack is understood.
//!
//! User space looks the symbols up (clones such as `.isra.0` included) and hands sorted address
//! ranges to the kernel side, which turns an address into a bit of [`Group`] by binary search.

/// Most ranges that the kernel side searches; a power of two.
pub const MAX_RANGES: usize = 256;

/// Code from `start` up to, not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(C)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// First address past the code.
    pub end: u64,
    /// One bit: `1 << Group`.
    pub group: u64,
}

impl Range {
    /// Behind all code, and empty.
    pub const NONE: Self = Self {
        start: u64::MAX,
        end: u64::MAX,
        group: 0,
    };
}

macro_rules! groups {
    ($( $(#[$meta:meta])* $variant:ident = $value:literal => $text:literal, [ $($symbol:literal),+ $(,)? ]; )+) => {
        $crate::named_enum! {
            /// Functions that mean the same when they stand in a stack.
            pub enum Group { $( $(#[$meta])* $variant = $value => $text ),+ }
        }
        impl Group {
            /// The symbols, as kallsyms has them on any kernel from 5.10 on.
            #[must_use]
            pub const fn symbols(self) -> &'static [&'static str] {
                match self { $( Self::$variant => &[ $($symbol),+ ] ),+ }
            }
            /// The group's bit in a mask.
            #[must_use]
            #[inline(always)]
            pub const fn bit(self) -> u64 {
                1 << self as u64
            }
        }
    };
}

groups! {
    /// A log force; an event with such a caller repeats one already seen.
    LogForce = 0 => "log-force",
        ["xfs_log_force", "xfs_log_force_seq", "xfs_log_force_lsn"];
    /// fsync of a file.
    Fsync = 1 => "fsync", ["xfs_file_fsync"];
    /// fsync of a directory.
    DirFsync = 2 => "dir-fsync", ["xfs_dir_fsync"];
    /// sync(2) and syncfs(2), and the first step of unmount, freeze and remount.
    SyncFs = 3 => "sync-fs", ["xfs_fs_sync_fs"];
    /// A transaction's commit.
    TransCommit = 4 => "trans-commit",
        ["__xfs_trans_commit", "xfs_trans_commit", "xfs_trans_roll"];
    /// The periodic log worker.
    LogWorker = 5 => "log-worker", ["xfs_log_worker"];
    /// The AIL's thread.
    Ail = 6 => "ail", ["xfsaild", "xfsaild_push"];
    /// Freezing.
    Freeze = 7 => "freeze", ["freeze_super", "xfs_fs_freeze"];
    /// Remounting.
    Remount = 8 => "remount", ["reconfigure_super", "xfs_fs_reconfigure"];
    /// Unmounting, and closing the devices.
    Unmount = 9 => "unmount", [
        "generic_shutdown_super", "xfs_fs_put_super", "xfs_unmountfs", "xfs_log_unmount",
        "xfs_kill_sb", "xfs_free_buftarg", "xfs_shutdown_devices", "cleanup_mnt",
    ];
    /// A write(2): an fsync below it serves `O_SYNC` or `O_DSYNC`.
    Write = 10 => "write", [
        "xfs_file_write_iter", "xfs_file_buffered_write", "xfs_file_dio_write",
        "xfs_file_dio_write_aligned", "xfs_file_dio_write_unaligned", "xfs_file_dax_write",
        "xfs_file_dio_write_atomic", "xfs_file_dio_write_zoned", "xfs_file_buffered_write_zoned",
        "xfs_file_buffered_aio_write", "xfs_file_dio_aio_write",
        "iomap_dio_complete", "iomap_dio_complete_work", "iomap_dio_rw", "__iomap_dio_rw",
    ];
    /// System calls that fsync with `datasync` set.
    Fdatasync = 11 => "fdatasync", [
        "__x64_sys_fdatasync", "__ia32_sys_fdatasync", "__arm64_sys_fdatasync",
        "__x64_sys_msync", "__ia32_sys_msync", "__arm64_sys_msync",
    ];
    /// The push of the CIL.
    CilPush = 12 => "cil-push", ["xlog_cil_push_work"];
    /// Submission of an iclog.
    IclogRelease = 13 => "iclog-release",
        ["xlog_state_release_iclog", "xlog_sync", "xlog_write_iclog"];
    /// Garbage collection of zoned devices.
    Gc = 14 => "gc", ["xfs_zone_gcd", "xfs_zone_gc_handle_work", "xfs_zone_gc_finish_reset"];
    /// Reservation of iclog space by a writer of the log.
    IclogSpace = 15 => "iclog-space", ["xlog_state_get_iclog_space", "xlog_write"];
    /// What a return probe puts in place of a return address: it hides the caller.
    ReturnProbe = 16 => "return-probe",
        ["arch_rethook_trampoline", "__kretprobe_trampoline", "kretprobe_trampoline"];
    /// fsync(2); below it a directory's fsync, which forces the log by a tail call, does not show.
    FsyncCall = 17 => "fsync-call", ["__x64_sys_fsync", "__ia32_sys_fsync", "__arm64_sys_fsync"];
    /// Changes of a file that end with a log force when it was opened with `O_SYNC` or `O_DSYNC`.
    SyncedChange = 18 => "synced-change", [
        "xfs_log_force_inode", "xfs_file_fallocate", "__xfs_file_fallocate", "xfs_file_remap_range",
    ];
    /// What a lock is taken by: who waits is whoever calls these.
    Locking = 19 => "locking", [
        "native_queued_spin_lock_slowpath", "__pv_queued_spin_lock_slowpath", "_raw_spin_lock",
        "_raw_spin_lock_bh", "_raw_spin_lock_irq", "_raw_spin_lock_irqsave", "_raw_spin_trylock",
        "queued_read_lock_slowpath", "queued_write_lock_slowpath", "_raw_read_lock",
        "_raw_read_lock_bh", "_raw_read_lock_irq", "_raw_read_lock_irqsave", "_raw_write_lock",
        "_raw_write_lock_bh", "_raw_write_lock_irq", "_raw_write_lock_irqsave",
        "rwsem_down_read_slowpath", "rwsem_down_write_slowpath", "down_read", "down_read_killable",
        "down_read_interruptible", "down_write", "down_write_killable", "__percpu_down_read",
        "percpu_down_write", "percpu_rwsem_wait", "mutex_lock",
        "mutex_lock_interruptible", "mutex_lock_killable", "mutex_lock_io", "__mutex_lock",
        "__mutex_lock_slowpath", "__mutex_lock_killable_slowpath",
        "__mutex_lock_interruptible_slowpath", "ww_mutex_lock", "__ww_mutex_lock",
        "rt_mutex_lock", "rt_mutex_slowlock", "__rt_mutex_slowlock", "down", "__down",
        "___down_common", "__down_common", "down_interruptible", "down_killable", "down_timeout",
        "__down_interruptible", "__down_killable", "__down_timeout",
    ];
    /// BPF's own maps and buffers: their locks are those of the tracer.
    Bpf = 20 => "bpf", [
        "htab_map_update_elem", "htab_map_delete_elem", "__htab_percpu_map_update_elem",
        "htab_percpu_map_update_elem", "bpf_percpu_hash_update", "alloc_htab_elem",
        "free_htab_elem", "__pcpu_freelist_pop", "__pcpu_freelist_push", "pcpu_freelist_pop",
        "pcpu_freelist_push", "__bpf_ringbuf_reserve", "bpf_ringbuf_reserve",
        "bpf_ringbuf_output", "htab_lru_map_update_elem", "bpf_lru_pop_free", "bpf_lru_push_free",
        "raw_res_spin_lock", "resilient_queued_spin_lock_slowpath",
    ];
}

impl Group {
    /// Groups whose functions are XFS's own.
    pub const OF_XFS: u64 = Self::Fsync.bit()
        | Self::DirFsync.bit()
        | Self::SyncFs.bit()
        | Self::TransCommit.bit()
        | Self::LogWorker.bit()
        | Self::CilPush.bit()
        | Self::IclogRelease.bit()
        | Self::Gc.bit();
}
