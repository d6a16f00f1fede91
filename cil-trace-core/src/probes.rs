//! The one table of probes: each quantity, and the ways to measure it in order of preference.
//!
//! The loader walks it; `probes`, `doctor`, the recording and the documents read it. Which way a
//! kernel allows is decided here, purely, from what is known of that kernel.

pub mod facts;
pub mod features;
pub mod history;

mod kernel;
mod layout;
mod locks;
mod outcome;
mod resolve;
mod way;

pub use kernel::{Home, Kernel, Part, source_name, version};
pub use layout::Layout;
pub use locks::absent_locks;
pub use outcome::{Obstacle, open_ways, outcomes};
pub use resolve::{OpenWay, Place, Resolution, Site, resolve, site, ways};
pub use way::{Attach, Program, Way};

use cil_trace_common::probe::Probe;
use layout::{
    BIO_FLAGS, CHECKPOINT_OF_WORK, CIL_OF_MOUNT, DEV_OF_BIO, DEV_OF_INODE, DEV_OF_ITEM, DEV_OF_LOG,
    DEV_OF_MOUNT, DEV_OF_REQUEST, DEV_OF_TRANS, ICLOG, LOOP_OF_WORK,
};

/// A group of probes that `--probes` selects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Set {
    /// Commits, pushes, iclogs, forces, waits.
    Log,
    /// Cache flushes and fsyncs.
    Flush,
    /// Locks of inodes.
    Ilock,
    /// Contended locks.
    Locks,
    /// Samples of what the CPUs run.
    Cpu,
    /// Time off the CPUs.
    Offcpu,
}

impl Set {
    /// Every set.
    pub const ALL: &'static [Self] = &[
        Self::Log,
        Self::Flush,
        Self::Ilock,
        Self::Locks,
        Self::Cpu,
        Self::Offcpu,
    ];

    /// Whether it is in use unless others are asked for. Every switch of every thread costs the
    /// machine two stacks where time off the CPUs is measured.
    #[must_use]
    pub const fn by_default(self) -> bool {
        !matches!(self, Self::Offcpu)
    }

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Flush => "flush",
            Self::Ilock => "ilock",
            Self::Locks => "locks",
            Self::Cpu => "cpu",
            Self::Offcpu => "offcpu",
        }
    }

    /// What it holds, for help texts.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Log => "Commits, pushes, iclog writes, log forces, fsyncs and waits",
            Self::Flush => "Cache flushes and fsyncs",
            Self::Ilock => "Locks of inodes: who takes them, how long they are waited for and held",
            Self::Locks => "Every contended lock: its name, waits, callers and holders",
            Self::Cpu => "Samples of what the CPUs run, with stacks",
            Self::Offcpu => {
                "Time that threads spend off the CPUs, with stacks; costs more than the rest"
            }
        }
    }

    /// The set with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|set| set.name() == name)
    }
}

/// A quantity and the ways to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its name.
    pub probe: Probe,
    /// The sets that need it.
    pub sets: &'static [Set],
    /// What it measures, in a few words.
    pub quantity: &'static str,
    /// What every way must know of structures.
    pub layouts: &'static [Layout],
    /// Ways in order of preference.
    pub ways: &'static [Way],
    /// What is said when none is open; for an approximation without programs of its own, what
    /// stands in for it.
    pub otherwise: Otherwise,
}

impl Row {
    /// Whether one of these sets needs it.
    fn is_in(&self, sets: &[Set]) -> bool {
        self.sets.iter().any(|set| sets.contains(set))
    }
}

/// What becomes of a quantity to which no way is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Otherwise {
    /// It is not measured.
    Skipped(&'static str),
    /// Numbers that are there anyway come close.
    Approximated(&'static str),
}

/// Programs by attach kind and target; each is named after both, or after the kind and what follows
/// `as`.
macro_rules! programs {
    ($( $attach:ident $target:ident $( as $name:ident )? ),+ $(,)?) => {
        &[ $( programs!(@one $attach $target $( $name )?) ),+ ]
    };
    (@one $attach:ident $target:ident) => { programs!(@one $attach $target $target) };
    (@one $attach:ident $target:ident $name:ident) => {
        program(Attach::$attach, programs!(@name $attach $name), stringify!($target))
    };
    (@name RawTracepoint $name:ident) => { stringify!($name) };
    (@name BtfTracepoint $name:ident) => { concat!("btf_", stringify!($name)) };
    (@name Kprobe $name:ident) => { concat!("kprobe_", stringify!($name)) };
    (@name Kretprobe $name:ident) => { concat!("kretprobe_", stringify!($name)) };
    (@name Fentry $name:ident) => { concat!("fentry_", stringify!($name)) };
    (@name Fexit $name:ident) => { concat!("fexit_", stringify!($name)) };
}

const fn program(attach: Attach, name: &'static str, target: &'static str) -> Program {
    Program {
        name,
        attach,
        target,
        arguments: matches!(attach, Attach::Kprobe | Attach::Fentry),
    }
}

const fn measured(programs: &'static [Program]) -> Way {
    Way {
        programs,
        approximation: None,
        only_with: None,
    }
}

const fn near(programs: &'static [Program], approximation: &'static str) -> Way {
    Way {
        programs,
        approximation: Some(approximation),
        only_with: None,
    }
}

use Otherwise::{Approximated, Skipped};
use Set::{Cpu, Flush, Ilock, Locks, Log, Offcpu};

/// Where a bio has a disk (before 5.12), it is queued without its partition; and without data it has
/// not even been remapped from one.
const NO_PARTITION: &str = "BIO_DISK";
/// A tracepoint is missing.
const NO_EVENT: &str = "this kernel has no such tracepoint";
const NO_CONTENTION: &str = "no lock:contention tracepoints (they came with 5.19)";
/// Waits by the tracepoints, where those come first on the slow path.
const CONTENTION: Way = measured(programs![
    RawTracepoint contention_begin,
    RawTracepoint contention_end,
]);
const CTX_LOCK_BY_EVENTS: &str = "a hold begins with the commit or push, or where a contended wait \
    in it ends; it ends with the commit, or where the push asks for iclog space: an upper bound";
const END_BY_SLEEP: &str = "the end is the moment at which the task runs again after the last \
    sleep inside; calls that do not sleep are counted and have no latency";

/// Every probe.
pub const PROBES: &[Row] = &[
    Row {
        probe: Probe::Descendants,
        sets: &[Log, Flush, Ilock, Locks, Cpu, Offcpu],
        quantity: "which processes descend from the command",
        layouts: &[&[&["TASK_PID", "TASK_TGID", "TASK_SIGNAL", "SIGNAL_LIVE"]]],
        ways: &[measured(programs![
            RawTracepoint sched_process_fork,
            RawTracepoint sched_process_exec,
            RawTracepoint sched_process_exit,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::Commits,
        sets: &[Log],
        quantity: "commits: rate, latency and its parts",
        layouts: &[DEV_OF_TRANS],
        ways: &[measured(programs![
            RawTracepoint xfs_trans_commit,
            RawTracepoint xfs_trans_commit_items,
            RawTracepoint xfs_trans_free,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::CommitInsert,
        sets: &[Log],
        quantity: "xlog_cil_insert_items",
        layouts: &[DEV_OF_TRANS, DEV_OF_LOG],
        ways: &[
            measured(programs![Fentry xlog_cil_insert_items, Fexit xlog_cil_insert_items]),
            measured(programs![Kprobe xlog_cil_insert_items, Kretprobe xlog_cil_insert_items]),
            near(
                programs![
                    RawTracepoint xfs_trans_commit,
                    RawTracepoint xfs_trans_commit_items,
                    RawTracepoint xfs_trans_free,
                ],
                "inlined in this kernel, measured as xfs_trans_commit to xfs_trans_commit_items \
                 less the wait for xc_ctx_lock",
            ),
        ],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::CommitCtxLock,
        sets: &[Log],
        quantity: "wait of a commit for xc_ctx_lock",
        layouts: &[DEV_OF_TRANS, CIL_OF_MOUNT, &[&["CIL_CTX_LOCK"]]],
        ways: &[
            measured(programs![Fentry rwsem_down_read_slowpath, Fexit rwsem_down_read_slowpath]),
            CONTENTION,
        ],
        otherwise: Skipped(NO_CONTENTION),
    },
    Row {
        probe: Probe::Throttle,
        sets: &[Log],
        quantity: "commits throttled above the CIL's hard limit",
        layouts: &[DEV_OF_TRANS],
        ways: &[measured(programs![RawTracepoint xfs_log_cil_wait])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::Pushes,
        sets: &[Log],
        quantity: "CIL pushes: trigger, queue delay, run time, contents",
        layouts: &[CHECKPOINT_OF_WORK, DEV_OF_LOG],
        ways: &[measured(programs![
            RawTracepoint workqueue_queue_work,
            RawTracepoint workqueue_execute_start,
            RawTracepoint workqueue_execute_end,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::Iclogs,
        sets: &[Log, Flush],
        quantity: "iclog writes: cause, fill, latency; log space",
        layouts: &[ICLOG, DEV_OF_LOG],
        ways: &[
            measured(programs![
                RawTracepoint xlog_iclog_switch,
                RawTracepoint xlog_iclog_wait_on,
                RawTracepoint xlog_iclog_get_space,
                RawTracepoint xlog_iclog_release,
                RawTracepoint xlog_iclog_syncing,
                RawTracepoint xlog_iclog_sync_done,
            ]),
            measured(programs![
                Kprobe xlog_state_switch_iclogs,
                Kprobe xlog_wait_on_iclog,
                Kprobe xlog_state_get_iclog_space as iclog_get_space,
                Kretprobe xlog_state_get_iclog_space as iclog_get_space,
                Kprobe xlog_state_release_iclog,
                Kprobe xfs_log_release_iclog,
                Kprobe xlog_sync,
                Kprobe xlog_write_iclog,
                Kprobe xlog_state_done_syncing,
            ]),
        ],
        otherwise: Skipped("no xlog_iclog tracepoints (they came with 5.14)"),
    },
    Row {
        probe: Probe::Forces,
        sets: &[Log, Flush],
        quantity: "log forces: cause",
        layouts: &[DEV_OF_MOUNT],
        ways: &[measured(programs![RawTracepoint xfs_log_force])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::ForceEnd,
        sets: &[Log, Flush],
        quantity: "end of a log force",
        layouts: &[DEV_OF_MOUNT],
        ways: &[
            measured(programs![Fexit xfs_log_force, Fexit xfs_log_force_seq]),
            measured(programs![Kretprobe xfs_log_force, Kretprobe xfs_log_force_seq]),
            near(programs![BtfTracepoint sched_switch], END_BY_SLEEP),
        ],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::Fsyncs,
        sets: &[Log, Flush],
        quantity: "fsyncs: kind, and what they led to",
        layouts: &[DEV_OF_INODE],
        ways: &[measured(programs![
            RawTracepoint xfs_file_fsync,
            RawTracepoint xfs_dir_fsync,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::FsyncEnd,
        sets: &[Log, Flush],
        quantity: "end of an fsync",
        layouts: &[DEV_OF_INODE],
        ways: &[
            measured(programs![Fexit xfs_file_fsync, Fexit xfs_dir_fsync]),
            // Both end with what the filesystem does. A return probe on that would hide its callers.
            measured(programs![Fexit vfs_fsync_range, Fexit vfs_fsync]),
            measured(programs![Kretprobe xfs_file_fsync, Kretprobe xfs_dir_fsync]),
            near(programs![BtfTracepoint sched_switch], END_BY_SLEEP),
        ],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::FlushRequests,
        sets: &[Flush],
        quantity: "bios with PREFLUSH or FUA: cause, device, device above",
        layouts: &[
            BIO_FLAGS,
            DEV_OF_BIO,
            &[&["BIO_QUEUE_BIO", "BIO_REMAP_BIO"]],
        ],
        ways: &[
            measured(programs![
                RawTracepoint block_bio_queue,
                RawTracepoint block_bio_remap,
                Fentry blkdev_issue_flush,
            ])
            .only_with(NO_PARTITION),
            measured(programs![
                RawTracepoint block_bio_queue,
                RawTracepoint block_bio_remap,
                Kprobe blkdev_issue_flush,
            ])
            .only_with(NO_PARTITION),
            near(
                programs![
                    RawTracepoint block_bio_queue,
                    RawTracepoint block_bio_remap,
                ],
                "a flush without data is taken for the whole disk's, also if it is a partition's",
            )
            .only_with(NO_PARTITION),
            measured(programs![
                RawTracepoint block_bio_queue,
                RawTracepoint block_bio_remap,
            ]),
        ],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::FlushEnd,
        sets: &[Flush],
        quantity: "latency of these bios",
        layouts: &[BIO_FLAGS],
        ways: &[measured(programs![
            RawTracepoint block_bio_complete,
            RawTracepoint block_rq_complete,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::FlushIssues,
        sets: &[Flush],
        quantity: "device-level flushes; time of requests in queue and device",
        layouts: &[DEV_OF_REQUEST, &[&["REQUEST_FLAGS", "RQ_ISSUE_RQ"]]],
        ways: &[measured(programs![
            RawTracepoint block_rq_issue,
            RawTracepoint block_rq_complete,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::GrantWaits,
        sets: &[Log],
        quantity: "waits for log reservation space",
        layouts: &[DEV_OF_LOG],
        ways: &[measured(programs![
            RawTracepoint xfs_log_grant_sleep,
            RawTracepoint xfs_log_grant_wake,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::CommitOrder,
        sets: &[Log],
        quantity: "waits for an earlier checkpoint's record",
        layouts: &[DEV_OF_LOG, &[&["CIL_LOG"]]],
        ways: &[
            measured(programs![
                BtfTracepoint sched_switch,
                Fentry xlog_cil_order_write,
                Fexit xlog_cil_order_write,
            ]),
            measured(programs![
                BtfTracepoint sched_switch,
                Kprobe xlog_cil_order_write,
                Kretprobe xlog_cil_order_write,
            ]),
        ],
        otherwise: Skipped("no tracepoint, and this kernel's functions cannot be probed"),
    },
    Row {
        probe: Probe::IclogSpace,
        sets: &[Log],
        quantity: "waits for an iclog",
        layouts: &[DEV_OF_LOG],
        ways: &[
            measured(programs![
                BtfTracepoint sched_switch,
                Fentry xlog_state_get_iclog_space,
                Fexit xlog_state_get_iclog_space,
            ]),
            measured(programs![
                BtfTracepoint sched_switch,
                Kprobe xlog_state_get_iclog_space,
                Kretprobe xlog_state_get_iclog_space,
            ]),
        ],
        otherwise: Approximated("counted by the filesystem's statistics (xs_log_noiclogs)"),
    },
    Row {
        probe: Probe::Ail,
        sets: &[Log],
        quantity: "what the AIL's pushes met",
        layouts: &[DEV_OF_ITEM],
        ways: &[measured(programs![
            RawTracepoint xfs_ail_push,
            RawTracepoint xfs_ail_pinned,
            RawTracepoint xfs_ail_locked,
            RawTracepoint xfs_ail_flushing,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::LoopWorkers,
        sets: &[Flush],
        quantity: "which loop device a worker serves",
        layouts: &[LOOP_OF_WORK],
        ways: &[measured(programs![
            RawTracepoint workqueue_execute_start,
            RawTracepoint workqueue_execute_end,
        ])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::Ilock,
        sets: &[Ilock],
        quantity: "locks of inodes: calls, callers, holds",
        layouts: &[DEV_OF_INODE],
        ways: &[
            // A million a second: without helpers, where the verifier allows it.
            measured(programs![
                BtfTracepoint xfs_ilock,
                BtfTracepoint xfs_ilock_nowait,
                BtfTracepoint xfs_iunlock,
                BtfTracepoint xfs_ilock_demote,
            ]),
            measured(programs![
                RawTracepoint xfs_ilock,
                RawTracepoint xfs_ilock_nowait,
                RawTracepoint xfs_iunlock,
                RawTracepoint xfs_ilock_demote,
            ]),
        ],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::IlockReturn,
        sets: &[Ilock],
        quantity: "when xfs_ilock has got its locks; failed trylocks",
        layouts: &[DEV_OF_INODE],
        ways: &[
            measured(programs![Fexit xfs_ilock, Fexit xfs_ilock_nowait]),
            measured(programs![Kretprobe xfs_ilock, Kretprobe xfs_ilock_nowait]),
        ],
        otherwise: Approximated(
            "a hold begins with the call, or where a contended wait in it ends; failed trylocks are \
             not counted",
        ),
    },
    Row {
        probe: Probe::SpinWaits,
        sets: &[Locks],
        quantity: "contended waits for spinlocks",
        layouts: &[],
        ways: &[
            measured(programs![
                Fentry native_queued_spin_lock_slowpath,
                Fexit native_queued_spin_lock_slowpath,
                Fentry __pv_queued_spin_lock_slowpath,
                Fexit __pv_queued_spin_lock_slowpath,
            ]),
            near(
                CONTENTION.programs,
                "the short waits of the one next in line (the lock's pending bit) are not seen",
            ),
        ],
        otherwise: Skipped(NO_CONTENTION),
    },
    Row {
        probe: Probe::RwlockWaits,
        sets: &[Locks],
        quantity: "contended waits for rwlocks",
        layouts: &[],
        ways: &[
            measured(programs![
                Fentry queued_read_lock_slowpath,
                Fexit queued_read_lock_slowpath,
                Fentry queued_write_lock_slowpath,
                Fexit queued_write_lock_slowpath,
            ]),
            near(CONTENTION.programs, "readers in interrupts are not seen"),
        ],
        otherwise: Skipped(NO_CONTENTION),
    },
    Row {
        probe: Probe::RwsemWaits,
        sets: &[Ilock, Locks],
        quantity: "contended waits for rwsems, which locks of inodes are",
        layouts: &[],
        ways: &[
            measured(programs![
                Fentry rwsem_down_read_slowpath,
                Fexit rwsem_down_read_slowpath,
                Fentry rwsem_down_write_slowpath,
                Fexit rwsem_down_write_slowpath,
            ]),
            near(
                CONTENTION.programs,
                "a writer's optimistic spinning is not seen: a lower bound",
            ),
        ],
        otherwise: Skipped(NO_CONTENTION),
    },
    Row {
        probe: Probe::MutexWaits,
        sets: &[Locks],
        quantity: "contended waits for mutexes",
        layouts: &[],
        ways: &[
            CONTENTION,
            measured(programs![Fentry __mutex_lock_slowpath, Fexit __mutex_lock_slowpath]),
        ],
        otherwise: Skipped(NO_CONTENTION),
    },
    Row {
        probe: Probe::SemaphoreWaits,
        sets: &[Locks],
        quantity: "contended waits for semaphores, which locks of buffers are",
        layouts: &[],
        ways: &[CONTENTION, measured(programs![Fentry __down, Fexit __down])],
        otherwise: Skipped(NO_CONTENTION),
    },
    Row {
        probe: Probe::CtxLockHold,
        sets: &[Log],
        quantity: "holds of xc_ctx_lock by commits and pushes",
        layouts: &[DEV_OF_TRANS, CIL_OF_MOUNT, &[&["CIL_CTX_LOCK"]]],
        ways: &[
            measured(programs![
                Fentry xlog_cil_commit,
                Fexit xlog_cil_commit,
                Fexit xlog_cil_ctx_switch,
            ]),
            measured(programs![
                Kprobe xlog_cil_commit,
                Kretprobe xlog_cil_commit,
                Kretprobe xlog_cil_ctx_switch,
            ]),
            near(
                programs![
                    Fentry xlog_cil_commit,
                    Fexit xlog_cil_commit,
                    RawTracepoint xlog_iclog_get_space,
                ],
                "a push's hold ends where it asks for iclog space, so it is an upper bound",
            ),
            near(
                programs![
                    Kprobe xlog_cil_commit,
                    Kretprobe xlog_cil_commit,
                    RawTracepoint xlog_iclog_get_space,
                ],
                "a push's hold ends where it asks for iclog space, so it is an upper bound",
            ),
            near(
                programs![
                    RawTracepoint xfs_trans_commit,
                    RawTracepoint xfs_trans_commit_items,
                    RawTracepoint xfs_trans_free,
                    RawTracepoint xlog_iclog_get_space,
                ],
                CTX_LOCK_BY_EVENTS,
            ),
            near(
                programs![
                    RawTracepoint xfs_trans_commit,
                    RawTracepoint xfs_trans_commit_items,
                    RawTracepoint xfs_trans_free,
                    Kprobe xlog_state_get_iclog_space,
                    Kretprobe xlog_state_get_iclog_space,
                ],
                CTX_LOCK_BY_EVENTS,
            ),
        ],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::Holders,
        sets: &[Locks],
        quantity: "where the holder of a lock sleeps while others wait for it",
        layouts: &[&[&["TASK_PID", "TASK_TGID", "TASK_COMM", "RWSEM_OWNER"]]],
        ways: &[measured(programs![BtfTracepoint sched_waking])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::CpuSamples,
        sets: &[Cpu],
        quantity: "samples of what the CPUs run",
        layouts: &[],
        ways: &[measured(&[program(
            Attach::PerfEvent,
            "cpu_clock",
            "cpu-clock",
        )])],
        otherwise: Skipped("the clock of perf_event_open(2) is refused"),
    },
    Row {
        probe: Probe::OffCpu,
        sets: &[Offcpu],
        quantity: "time that threads spend off the CPUs",
        layouts: &[&[&["TASK_PID", "TASK_STATE"]]],
        ways: &[measured(&[program(
            Attach::BtfTracepoint,
            "btf_offcpu",
            "sched_switch",
        )])],
        otherwise: Skipped(NO_EVENT),
    },
    Row {
        probe: Probe::UserCode,
        sets: &[Cpu, Offcpu],
        quantity: "which code processes map: names of programs' functions",
        layouts: &[],
        ways: &[measured(&[program(
            Attach::PerfRecords,
            "",
            "of mappings, forks and execs",
        )])],
        otherwise: Skipped("frames of programs have no names"),
    },
];
