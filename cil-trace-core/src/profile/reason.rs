//! Why a thread is off its CPU, from how it left and the functions in which it waits.

use cil_trace_common::stack::Departure;

/// A reason, and beginnings of the functions in which one waits for it.
struct Reason {
    name: &'static str,
    functions: &'static [&'static str],
}

/// The innermost function that stands here decides; so what is general comes from the leaf, and
/// what the log waits for from further out. Names are those of kernels from 5.10 on.
const REASONS: &[Reason] = &[
    Reason {
        name: "lock",
        functions: &[
            "rwsem_down_",
            "__mutex_lock",
            "mutex_lock",
            "__down_common",
            "__down_",
            "__down",
            "down_",
            "rt_mutex_",
            "__rt_mutex_",
            "percpu_rwsem_wait",
            "__percpu_down_read",
            "wait_on_bit_lock",
            "__folio_lock",
            "__lock_page",
            "rwbase_",
        ],
    },
    Reason {
        name: "log force",
        functions: &[
            "xlog_wait_on_iclog",
            "xlog_force_lsn",
            "xlog_cil_force_seq",
            "xlog_cil_force_lsn",
            "xfs_log_force",
        ],
    },
    Reason {
        name: "iclog space",
        functions: &["xlog_state_get_iclog_space"],
    },
    Reason {
        name: "commit order",
        functions: &["xlog_cil_order_write"],
    },
    Reason {
        name: "grant space",
        functions: &["xlog_grant_head_"],
    },
    // Whatever else is slept for in it is a lock.
    Reason {
        name: "CIL throttle",
        functions: &["xlog_cil_push_background", "xlog_cil_commit"],
    },
    Reason {
        name: "I/O",
        functions: &[
            "io_schedule",
            "submit_bio_wait",
            "blk_wait_io",
            "blkdev_issue_flush",
            "folio_wait_",
            "wait_on_page_",
            "filemap_fdatawait",
            "__filemap_fdatawait",
            "xfs_buf_iowait",
            "xfs_bwrite",
            "iomap_dio_",
            "blk_mq_get_tag",
            "rq_qos_wait",
            "wbt_wait",
            "inode_dio_wait",
            "balance_dirty_pages",
        ],
    },
    Reason {
        name: "futex",
        functions: &["futex_", "__futex_", "do_futex"],
    },
    Reason {
        name: "poll",
        functions: &[
            "ep_poll",
            "do_epoll_wait",
            "do_poll",
            "do_select",
            "do_sys_poll",
        ],
    },
    Reason {
        name: "pipe or socket",
        functions: &[
            "pipe_",
            "anon_pipe_",
            "unix_stream_",
            "inet_csk_",
            "tcp_",
            "sk_wait_data",
            "__skb_wait_for_more_packets",
            "skb_wait_for_more_packets",
            "n_tty_read",
        ],
    },
    Reason {
        name: "child process",
        functions: &["do_wait", "kernel_wait4", "kernel_clone"],
    },
    Reason {
        name: "timer",
        functions: &[
            "do_nanosleep",
            "hrtimer_nanosleep",
            "common_nsleep",
            "msleep",
        ],
    },
    Reason {
        name: "waiting for work",
        functions: &[
            "worker_thread",
            "rescuer_thread",
            "kthread",
            "smpboot_thread_fn",
            "rcu_gp_",
            "kswapd",
            "kcompactd",
            "xfsaild",
        ],
    },
];

/// What a thread waits for that has left its CPU in these functions, leaf first.
#[must_use]
pub fn waits_for<'a>(mut frames: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let of = |function: &str| {
        let mut reasons = REASONS.iter();
        reasons.find(|reason| {
            let mut functions = reason.functions.iter();
            functions.any(|beginning| function.starts_with(beginning))
        })
    };
    frames.find_map(of).map(|reason| reason.name)
}

/// The reason, by what [`waits_for`] says; of a thread that could have run, that it was preempted.
#[must_use]
pub fn reason(departure: Departure, waits_for: Option<&'static str>) -> &'static str {
    match waits_for {
        Some(waits_for) if departure != Departure::Preempted => waits_for,
        _ => departure.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_known_function_decides() {
        for (frames, expected) in [
            (
                "__schedule schedule rwsem_down_read_slowpath down_read xlog_cil_commit",
                "lock",
            ),
            (
                "__schedule schedule xlog_cil_commit __xfs_trans_commit",
                "CIL throttle",
            ),
            (
                "__schedule schedule xlog_wait_on_iclog xlog_force_lsn xfs_log_force_seq",
                "log force",
            ),
            (
                "__schedule schedule schedule_timeout io_schedule_timeout wait_for_completion_io_timeout \
                 submit_bio_wait blkdev_issue_flush xfs_file_fsync",
                "I/O",
            ),
            (
                "__schedule schedule worker_thread kthread",
                "waiting for work",
            ),
            ("__schedule schedule mystery", "blocked"),
        ] {
            let frames = frames.split_whitespace();
            assert_eq!(reason(Departure::Blocked, waits_for(frames)), expected);
        }
        let frames = ["exit_to_user_mode_loop", "futex_wait"];
        assert_eq!(
            reason(Departure::Preempted, waits_for(frames.into_iter())),
            "preempted"
        );
    }
}
