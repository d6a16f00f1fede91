//! What is noted down of a kernel: enough for a probe that is yet to be written, and no more.

use cil_trace_common::offset::{OFFSETS, Source};
use std::collections::BTreeSet;

/// Tracepoints whose names begin so.
const EVENTS: &[&str] = &[
    "block_",
    "contention_",
    "sched_",
    "workqueue_",
    "xfs_",
    "xlog_",
];

/// XFS's tracepoints that have nothing to do with log, locks or writing back.
const NOT_EVENTS: &[&str] = &[
    "xfs_agfl",
    "xfs_alloc",
    "xfs_attr",
    "xfs_bmap",
    "xfs_btree",
    "xfs_bunmap",
    "xfs_cui",
    "xfs_da_",
    "xfs_dir2",
    "xfs_dqadjust",
    "xfs_dqalloc",
    "xfs_exchmaps",
    "xfs_exchrange",
    "xfs_fsmap",
    "xfs_getfsmap",
    "xfs_growfs",
    "xfs_healthmon",
    "xfs_ialloc",
    "xfs_iext",
    "xfs_irec",
    "xfs_iunlink",
    "xfs_iwalk",
    "xfs_metadir",
    "xfs_mru",
    "xfs_pagecache",
    "xfs_pwork",
    "xfs_refcount",
    "xfs_reflink",
    "xfs_rmap",
    "xfs_rtalloc",
    "xfs_rtbitmap",
    "xfs_rtrefcount",
    "xfs_rtrmap",
    "xfs_rtsummary",
    "xfs_swap",
    "xfs_swapext",
    "xfs_verify",
    "xfs_xattr",
];

/// Functions whose names begin so.
const FUNCTIONS: &[&str] = &[
    "__blkdev_issue",
    "__down",
    "__mutex_lock",
    "__pv_queued_",
    "__rwsem",
    "__submit_bio",
    "__up",
    "__x64_sys_fdatasync",
    "__x64_sys_fsync",
    "__x64_sys_msync",
    "__x64_sys_sync",
    "__xfs_trans_commit",
    "_raw_read_lock",
    "_raw_spin_lock",
    "_raw_write_lock",
    "_xfs_buf",
    "_xfs_log",
    "blk_flush",
    "blk_insert_flush",
    "blkdev_issue_flush",
    "down",
    "flush_end_io",
    "io_schedule",
    "iomap_dio",
    "loop_",
    "lo_rw",
    "mq_flush",
    "mutex_",
    "native_queued_",
    "process_one_work",
    "queue_work",
    "queued_",
    "rwsem_",
    "schedule_timeout",
    "submit_bio",
    "up_",
    "vfs_fsync",
    "xfs_ail",
    "xfs_buf_",
    "xfs_bwrite",
    "xfs_dir_fsync",
    "xfs_extent_busy",
    "xfs_file_",
    "xfs_flush",
    "xfs_free_buftarg",
    "xfs_fs_",
    "xfs_ilock",
    "xfs_inode_item",
    "xfs_iunlock",
    "xfs_lock_",
    "xfs_log_",
    "xfs_qm_dqflush",
    "xfs_sync_",
    "xfs_trans_ail",
    "xfs_trans_alloc",
    "xfs_trans_cancel",
    "xfs_trans_commit",
    "xfs_trans_free",
    "xfs_trans_reserve",
    "xfs_trans_roll",
    "xfs_unmountfs",
    "xfs_zone_gc",
    "xfsaild",
    "xlog_",
];

/// Parts of names of functions that the compiler or the tracing of events made, or that recover a
/// log.
const NOT_FUNCTIONS: &[&str] = &[
    "_recover",
    "recover_",
    ".cold",
    "__already_done",
    "xlog_verify",
];

/// Structures besides those of which the programs read members.
const STRUCTS: &[&str] = &[
    "address_space",
    "atomic_t",
    "bio",
    "block_device",
    "bvec_iter",
    "file",
    "gendisk",
    "hd_struct",
    "inode",
    "kiocb",
    "loop_device",
    "loop_worker",
    "mutex",
    "percpu_rw_semaphore",
    "pool_workqueue",
    "qrwlock",
    "qspinlock",
    "raw_spinlock",
    "rb_root",
    "request",
    "request_queue",
    "rw_semaphore",
    "rwlock_t",
    "semaphore",
    "signal_struct",
    "spinlock",
    "super_block",
    "task_struct",
    "work_struct",
    "workqueue_struct",
    "xarray",
    "xfs_ail",
    "xfs_buf",
    "xfs_buf_log_item",
    "xfs_buftarg",
    "xfs_cil",
    "xfs_cil_ctx",
    "xfs_extent_busy",
    "xfs_extent_busy_tree",
    "xfs_group",
    "xfs_inode",
    "xfs_inode_log_item",
    "xfs_log_item",
    "xfs_mount",
    "xfs_perag",
    "xfs_trans",
    "xlog",
    "xlog_grant_head",
    "xlog_in_core",
    "xlog_ticket",
];

/// The structures whose members are noted down. A path of members leads only through these.
#[must_use]
pub fn relevant_structs() -> BTreeSet<&'static str> {
    let read = OFFSETS.iter().filter_map(|row| match row.source {
        Source::Member { of, .. } => Some(of),
        _ => None,
    });
    read.chain(STRUCTS.iter().copied()).collect()
}

/// The enumerations that are noted down.
#[must_use]
pub fn relevant_enums() -> BTreeSet<&'static str> {
    let read = OFFSETS.iter().filter_map(|row| match row.source {
        Source::Enumerator { of, .. } => Some(of),
        _ => None,
    });
    read.collect()
}

/// Whether a tracepoint is noted down.
#[must_use]
pub fn is_relevant_event(name: &str) -> bool {
    begins(name, EVENTS) && !begins(name, NOT_EVENTS)
}

/// Whether a function's symbol is noted down.
#[must_use]
pub fn is_relevant_function(symbol: &str) -> bool {
    begins(symbol, FUNCTIONS) && !NOT_FUNCTIONS.iter().any(|part| symbol.contains(part))
}

fn begins(name: &str, with: &[&str]) -> bool {
    with.iter().any(|start| name.starts_with(start))
}
