//! What a stack says about a lock: who waits, in which role, and what a holder waits for itself.
//!
//! The tables below are all there is to change for another answer.

use crate::probes::source_name;
use cil_trace_common::function::Group;

/// Functions of XFS that take a lock for their caller.
const WRAPPERS: [&str; 12] = [
    "xfs_ilock",
    "xfs_ilock_nowait",
    "xfs_buf_lock",
    "xfs_buf_find",
    "xfs_buf_find_lock",
    "xfs_buf_lookup",
    "xfs_buf_get_map",
    "xfs_buf_read_map",
    "_xfs_buf_read",
    "xfs_trans_get_buf_map",
    "xfs_trans_read_buf_map",
    "xfs_imap_to_bp",
];

/// Roles of those who wait for a page cache's lock: the first with a function in the stack.
const ROLES: &[(&str, &[&str])] = &[
    (
        "writeback end",
        &[
            "folio_end_writeback",
            "__folio_end_writeback",
            "end_page_writeback",
            "test_clear_page_writeback",
            "iomap_finish_ioend",
            "iomap_finish_ioend_buffered",
            "ext4_end_bio",
            "ext4_finish_bio",
        ],
    ),
    (
        "reclaim",
        &[
            "shrink_folio_list",
            "shrink_page_list",
            "shrink_inactive_list",
            "evict_folios",
            "__remove_mapping",
            "remove_mapping",
            "kswapd",
            "workingset_refault",
            "shadow_lru_isolate",
        ],
    ),
    (
        "writer",
        &[
            "__filemap_add_folio",
            "filemap_add_folio",
            "__add_to_page_cache_locked",
            "add_to_page_cache_lru",
            "__filemap_get_folio",
            "pagecache_get_page",
            "filemap_dirty_folio",
            "__folio_mark_dirty",
            "__set_page_dirty",
            "__set_page_dirty_nobuffers",
        ],
    ),
];

/// Every other role.
pub const OTHER_ROLE: &str = "other";

/// What a thread that sleeps waits for: the first with a function in its stack. What is more
/// special comes first, as it stands further in.
const REASONS: &[(&str, &[&str])] = &[
    ("an iclog's write", &["xlog_wait_on_iclog", "xlog_wait"]),
    ("a CIL push", &["xlog_cil_force_seq", "xlog_cil_force_lsn"]),
    (
        "log space",
        &["xlog_grant_head_wait", "xlog_grant_head_check"],
    ),
    ("an iclog", &["xlog_state_get_iclog_space"]),
    ("an earlier checkpoint", &["xlog_cil_order_write"]),
    (
        "the CIL's limit",
        &["xlog_cil_push_background", "xlog_cil_commit"],
    ),
    (
        "the log",
        &["xfs_log_force", "xfs_log_force_seq", "xfs_log_force_lsn"],
    ),
    (
        "metadata I/O",
        &["xfs_buf_iowait", "xfs_buf_read_map", "_xfs_buf_read"],
    ),
    ("a cache flush", &["blkdev_issue_flush"]),
    (
        "direct I/O",
        &["iomap_dio_rw", "__iomap_dio_rw", "iomap_dio_complete"],
    ),
    (
        "writeback",
        &[
            "folio_wait_writeback",
            "wait_on_page_writeback",
            "file_write_and_wait_range",
            "filemap_fdatawait_range",
            "__filemap_fdatawait_range",
        ],
    ),
    (
        "too many dirty pages",
        &[
            "balance_dirty_pages",
            "balance_dirty_pages_ratelimited_flags",
        ],
    ),
    ("busy extents", &["xfs_extent_busy_flush"]),
    (
        "a page",
        &[
            "__folio_lock",
            "folio_wait_bit_common",
            "wait_on_page_bit_common",
        ],
    ),
    (
        "memory",
        &[
            "try_to_free_pages",
            "__alloc_pages_slowpath",
            "throttle_direct_reclaim",
        ],
    ),
    (
        "I/O",
        &[
            "submit_bio_wait",
            "io_schedule",
            "io_schedule_timeout",
            "blk_mq_get_tag",
        ],
    ),
];

/// Functions by which anything sleeps.
const SCHEDULER: &[&str] = &[
    "__schedule",
    "schedule",
    "schedule_timeout",
    "schedule_preempt_disabled",
    "__wait_for_common",
    "wait_for_completion",
    "wait_for_completion_io",
    "bit_wait",
    "__wait_on_bit",
    "out_of_line_wait_on_bit",
];

/// A function's name without its module and the compiler's suffix.
fn function(frame: &str) -> &str {
    source_name(frame.split(' ').next().unwrap_or(frame))
}

fn holds<'a>(frames: &[&str], table: &[(&'a str, &[&str])]) -> Option<&'a str> {
    let has = |functions: &[&str]| {
        frames
            .iter()
            .any(|frame| functions.contains(&function(frame)))
    };
    table
        .iter()
        .find(|(_, functions)| has(functions))
        .map(|(word, _)| *word)
}

/// The function that waits: the innermost that is neither a lock's own nor takes it for another.
pub fn caller<'a>(frames: &[&'a str]) -> &'a str {
    let locking = Group::Locking.symbols();
    // A probe of the function that waits stands between it and its caller, without a name.
    let unnamed = |name: &str| name.starts_with("0x") || name.starts_with("bpf_trampoline_");
    let plumbing = |name: &&str| locking.contains(name) || WRAPPERS.contains(name) || unnamed(name);
    frames
        .iter()
        .map(|frame| function(frame))
        .find(|name| !plumbing(name))
        .unwrap_or("unknown")
}

/// The role in which a page cache's lock is waited for.
pub fn role(frames: &[&str]) -> &'static str {
    holds(frames, ROLES).unwrap_or(OTHER_ROLE)
}

/// What a sleeping thread waits for, with the function that says so or where it sleeps.
pub fn reason(frames: &[&str]) -> String {
    let asleep = frames
        .iter()
        .map(|frame| function(frame))
        .find(|name| !SCHEDULER.contains(name))
        .unwrap_or("unknown");
    match holds(frames, REASONS) {
        Some(reason) => format!("{reason} in {asleep}"),
        None => asleep.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_is_who_wanted_the_lock() {
        let stack = [
            "rwsem_down_write_slowpath",
            "down_write",
            "xfs_ilock [xfs]",
            "xfs_vn_update_time.isra.0 [xfs]",
            "file_update_time",
        ];
        assert_eq!(caller(&stack), "xfs_vn_update_time");
        let spin = [
            "native_queued_spin_lock_slowpath",
            "_raw_spin_lock",
            "xlog_cil_commit [xfs]",
            "__xfs_trans_commit [xfs]",
        ];
        assert_eq!(caller(&spin), "xlog_cil_commit");
        assert_eq!(caller(&[]), "unknown");
    }

    #[test]
    fn waiters_of_a_page_cache_have_roles() {
        let role = |path: &[&str]| {
            let lock = ["native_queued_spin_lock_slowpath", "_raw_spin_lock_irqsave"];
            super::role(&[&lock, path].concat())
        };
        assert_eq!(
            role(&["__filemap_add_folio", "filemap_add_folio"]),
            "writer"
        );
        assert_eq!(
            role(&["__remove_mapping", "shrink_folio_list", "kswapd"]),
            "reclaim"
        );
        let end = [
            "__folio_end_writeback",
            "folio_end_writeback",
            "iomap_finish_ioend",
        ];
        assert_eq!(role(&end), "writeback end");
        assert_eq!(role(&["truncate_inode_pages_range"]), OTHER_ROLE);
    }

    #[test]
    fn a_sleep_has_a_reason() {
        let dio = [
            "__schedule",
            "schedule",
            "io_schedule",
            "__iomap_dio_rw",
            "iomap_dio_rw",
        ];
        assert_eq!(reason(&dio), "direct I/O in io_schedule");
        let force = [
            "__schedule",
            "schedule",
            "xlog_wait_on_iclog [xfs]",
            "xfs_log_force_seq [xfs]",
        ];
        assert_eq!(reason(&force), "an iclog's write in xlog_wait_on_iclog");
        let unknown = ["__schedule", "schedule", "pipe_read"];
        assert_eq!(reason(&unknown), "pipe_read");
    }
}
