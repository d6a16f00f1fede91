//! Locks of the report: story B's spinlock, story C's trylocks, story E's page cache, story G's
//! blocked I/O thread.

use super::{MS, US, hist, owned, skewed};
use cil_trace_core::report::schema::{
    BlockerRow, Hist, IlockCaller, IlockRow, LockCaller, LockRole, LockRow,
};

pub fn ilock() -> Vec<IlockRow> {
    let row = |lock: &str, mode: &str, acquired| IlockRow {
        lock: lock.into(),
        mode: mode.into(),
        device: owned("sda1"),
        acquired,
        trylock_tried: 0,
        trylock_failed: Some(0),
        trylock_then_lock: 0,
        wait: Some(Hist::default()),
        hold: Some(skewed(3 * US)),
        wait_method: owned("function"),
        hold_method: owned("function"),
        sampled_1_in: 8,
        callers: Vec::new(),
    };
    vec![
        IlockRow {
            trylock_tried: 1_204_117,
            trylock_failed: Some(577_976),
            trylock_then_lock: 560_640,
            wait: Some(skewed(20 * US)),
            callers: vec![IlockCaller {
                function: "xfs_file_buffered_read".into(),
                count: 577_976,
                wait_ns: 11_000 * MS,
            }],
            ..row("IOLOCK", "shared", 577_976)
        },
        IlockRow {
            trylock_failed: None,
            wait: Some(hist([3_300 * MS])),
            hold: None,
            wait_method: owned("lower_bound"),
            hold_method: None,
            ..row("ILOCK", "exclusive", 90_210)
        },
    ]
}

pub fn locks() -> Vec<LockRow> {
    let caller = |function: &str, waits, wait_ns| LockCaller {
        function: function.into(),
        waits,
        wait_ns,
    };
    let row = |lock: &str, kind: &str, wait: Hist| LockRow {
        lock: lock.into(),
        kind: kind.into(),
        mode: "exclusive".into(),
        device: owned("sda1"),
        waits: Some(wait.count),
        wait: Some(wait),
        hold: None,
        method: owned("function"),
        hold_method: None,
        callers: Vec::new(),
        roles: Vec::new(),
    };
    let spins = skewed(26 * US);
    let role = |role: &str, waits, wait_ns| LockRole {
        role: role.into(),
        waits,
        wait_ns,
    };
    vec![
        LockRow {
            callers: vec![
                caller("xlog_cil_commit", 940, spins.sum / 100 * 92),
                caller("xlog_cil_push_work", 60, spins.sum / 100 * 8),
            ],
            ..row("l_icloglock", "spin", spins)
        },
        LockRow {
            roles: vec![
                role("writer", 700, 9 * MS),
                role("reclaim", 200, 4 * MS),
                role("writeback end", 100, 2 * MS),
            ],
            method: owned("lower_bound"),
            ..row("i_pages", "spin", skewed(10 * US))
        },
        LockRow {
            mode: "shared".into(),
            waits: Some(0),
            wait: Some(Hist::default()),
            hold: Some(skewed(2 * US)),
            hold_method: owned("upper_bound"),
            ..row("xc_ctx_lock", "rwsem", Hist::default())
        },
        LockRow {
            device: None,
            ..row("other@__rmqueue_pcplist", "spin", hist([9 * US, 40 * US]))
        },
    ]
}

pub fn blockers() -> Vec<BlockerRow> {
    let frames = |frames: &[&str]| Some(frames.iter().map(|&frame| frame.to_owned()).collect());
    vec![
        BlockerRow {
            lock: "ILOCK".into(),
            mode: "exclusive".into(),
            device: owned("sda1"),
            start_ns: 5_003_000 * MS,
            waiter: "scylla (4711)".into(),
            waiter_function: "xfs_vn_update_time".into(),
            waiter_stack: frames(&["rwsem_down_write_slowpath", "down_write", "xfs_ilock"]),
            wait_ns: 3_300 * MS,
            holder: owned("kworker/3:1 (99)"),
            holder_stack: frames(&["__schedule", "schedule", "xlog_wait_on_iclog"]),
            holder_waits_for: owned("an iclog's write in xlog_wait_on_iclog"),
        },
        BlockerRow {
            lock: "l_icloglock".into(),
            mode: "exclusive".into(),
            device: owned("sda1"),
            start_ns: 5_004_000 * MS,
            waiter: "dbench (812)".into(),
            waiter_function: "xlog_cil_commit".into(),
            waiter_stack: None,
            wait_ns: 520 * US,
            holder: None,
            holder_stack: None,
            holder_waits_for: None,
        },
    ]
}
