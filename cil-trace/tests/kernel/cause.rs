//! Why something happened, decided from the whole kernel stack.
//!
//! cil-trace decides by what the task has entered and by iclog flags; this is the other way.

/// The outermost known reason wins, so the order counts: the first row with a function on the
/// stack decides.
const REASONS: &[(&str, &[&str])] = &[
    ("unmount", &["generic_shutdown_super"]),
    ("freeze", &["freeze_super"]),
    ("remount", &["reconfigure_super"]),
    ("log-force:worker", &["xfs_log_worker"]),
    (
        "o-dsync",
        &[
            "xfs_file_buffered_write",
            "iomap_dio_complete",
            "iomap_dio_bio_iter",
        ],
    ),
    ("log-force:fsync", &["xfs_file_fsync", "xfs_dir_fsync"]),
    ("log-force:sync", &["xfs_fs_sync_fs"]),
    ("log-force:sync-transaction", &["__xfs_trans_commit"]),
    ("log-force:ail", &["xfsaild"]),
];

/// Why the log is forced on this stack.
pub fn of_force(stack: &[&str]) -> &'static str {
    REASONS
        .iter()
        .find(|(_, functions)| functions.iter().any(|function| stack.contains(function)))
        .map_or("log-force:other", |(cause, _)| cause)
}

/// What queued a push.
pub fn of_push(stack: &[&str]) -> &'static str {
    if stack.contains(&"xlog_cil_force_seq") {
        of_force(stack)
    } else if stack.contains(&"xlog_cil_flush") {
        "ail"
    } else if stack.contains(&"xlog_cil_commit") {
        "background"
    } else {
        "other"
    }
}

/// Why a bio that writes no iclog asks for a flush.
pub fn of_other_bio(stack: &[&str]) -> &'static str {
    match of_force(stack) {
        "log-force:fsync" => "fsync-data",
        cause @ ("unmount" | "freeze" | "remount" | "o-dsync") => cause,
        _ => "other",
    }
}

/// Why an iclog goes out on a kernel without events for them, on the stack of its bio.
pub fn of_iclog(stack: &[&str]) -> &'static str {
    if stack.contains(&"xlog_cil_push_work") {
        "iclog-write"
    } else {
        of_force(stack)
    }
}

/// Why an iclog went out that no force switched.
pub fn of_flags(flags: &str) -> &'static str {
    if flags.contains("NEED_FUA") {
        "checkpoint-commit"
    } else if flags.contains("NEED_FLUSH") {
        "checkpoint-start"
    } else {
        "iclog-write"
    }
}

/// Whether a loop device does this on behalf of the device above.
pub fn is_loop_device(stack: &[&str]) -> bool {
    // The second until 5.14.
    let works = ["loop_process_work", "loop_queue_work"];
    works.iter().any(|work| stack.contains(work))
}
