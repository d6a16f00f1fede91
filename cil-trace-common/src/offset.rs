//! Struct members, enumerators and tracepoint arguments that the kernel side needs, by name.
//!
//! User space resolves them from BTF and overrides the read-only global of the same name before
//! loading, so that the verifier sees constants and drops what a kernel does not have.

use core::fmt;

/// Value of a global whose member this kernel does not have.
pub const ABSENT: u32 = u32::MAX;

/// How a global is resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Byte offset of the first member that exists; members may be dotted paths.
    Member {
        /// The struct.
        of: &'static str,
        /// Its members, in order of preference.
        any_of: &'static [&'static str],
    },
    /// Value of an enumerator.
    Enumerator {
        /// The enumeration.
        of: &'static str,
        /// Its enumerator.
        name: &'static str,
    },
    /// Index of a tracepoint's first argument that points to a struct of this name.
    Argument {
        /// The tracepoint.
        event: &'static str,
        /// The struct pointed to.
        to: &'static str,
    },
    /// Number of a tracepoint's arguments.
    ArgumentCount {
        /// The tracepoint.
        event: &'static str,
    },
}

impl fmt::Display for Source {
    /// What it looks for, as `struct.member` or the like.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member { of, any_of } => {
                write!(f, "{of}.{}", any_of.first().copied().unwrap_or_default())
            }
            Self::Enumerator { of, name } => write!(f, "{name} of enum {of}"),
            Self::Argument { event, to } => write!(f, "the argument {to} of {event}"),
            Self::ArgumentCount { event } => write!(f, "the arguments of {event}"),
        }
    }
}

/// A global of the eBPF object and where its value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offset {
    /// The global's name.
    pub global: &'static str,
    /// Where its value comes from.
    pub source: Source,
}

/// Calls the macro `$then` with every row: `GLOBAL: source;`.
#[macro_export]
macro_rules! for_each_offset {
    ($then:ident) => {
        $then! {
            MOUNT_SUPER: Member("xfs_mount", ["m_super"]);
            MOUNT_LOG: Member("xfs_mount", ["m_log"]);
            MOUNT_AIL: Member("xfs_mount", ["m_ail"]);
            SUPER_DEV: Member("super_block", ["s_dev"]);
            SUPER_INFO: Member("super_block", ["s_fs_info"]);
            LOG_MOUNT: Member("xlog", ["l_mp"]);
            LOG_CIL: Member("xlog", ["l_cilp"]);
            LOG_AIL: Member("xlog", ["l_ailp"]);
            LOG_ICLOG_LOCK: Member("xlog", ["l_icloglock"]);
            LOG_RESERVE_LOCK: Member("xlog", ["l_reserve_head.lock"]);
            LOG_WRITE_LOCK: Member("xlog", ["l_write_head.lock"]);
            LOG_ICLOG_SIZE: Member("xlog", ["l_iclog_size"]);
            LOG_CURR_CYCLE: Member("xlog", ["l_curr_cycle"]);
            LOG_CURR_BLOCK: Member("xlog", ["l_curr_block"]);
            LOG_TAIL_LSN: Member("xlog", ["l_tail_lsn"]);
            LOG_BLOCKS: Member("xlog", ["l_logBBsize"]);
            ICLOG_LOG: Member("xlog_in_core", ["ic_log"]);
            ICLOG_OFFSET: Member("xlog_in_core", ["ic_offset"]);
            ICLOG_FLAGS: Member("xlog_in_core", ["ic_flags"]);
            ICLOG_STATE: Member("xlog_in_core", ["ic_state"]);
            ICLOG_BIO: Member("xlog_in_core", ["ic_bio"]);
            ICLOG_BVEC: Member("xlog_in_core", ["ic_bvec"]);
            CIL_LOG: Member("xfs_cil", ["xc_log"]);
            CIL_CTX: Member("xfs_cil", ["xc_ctx"]);
            CIL_CTX_LOCK: Member("xfs_cil", ["xc_ctx_lock"]);
            CIL_LOCK: Member("xfs_cil", ["xc_cil_lock"]);
            CIL_PUSH_LOCK: Member("xfs_cil", ["xc_push_lock"]);
            CIL_PUSH_WORK: Member("xfs_cil", ["xc_push_work"]);
            CTX_CIL: Member("xfs_cil_ctx", ["cil"]);
            CTX_SEQUENCE: Member("xfs_cil_ctx", ["sequence"]);
            CTX_PUSH_WORK: Member("xfs_cil_ctx", ["push_work"]);
            TRANS_MOUNT: Member("xfs_trans", ["t_mountp"]);
            XINODE_MOUNT: Member("xfs_inode", ["i_mount"]);
            XINODE_LOCK: Member("xfs_inode", ["i_lock"]);
            XINODE_MMAP_LOCK: Member("xfs_inode", ["i_mmaplock"]);
            XINODE_FLAGS_LOCK: Member("xfs_inode", ["i_flags_lock"]);
            XINODE_VFS: Member("xfs_inode", ["i_vnode"]);
            BUF_SEMA: Member("xfs_buf", ["b_sema"]);
            BUF_TARGET: Member("xfs_buf", ["b_target"]);
            TARGET_MOUNT: Member("xfs_buftarg", ["bt_mount"]);
            PERAG_MOUNT: Member("xfs_perag", ["pag_mount"]);
            PERAG_BUSY_LOCK: Member("xfs_perag", ["pagb_lock"]);
            GROUP_MOUNT: Member("xfs_group", ["xg_mount"]);
            GROUP_BUSY: Member("xfs_group", ["xg_busy_extents"]);
            BUSY_TREE_LOCK: Member("xfs_extent_busy_tree", ["eb_lock"]);
            BUSY_TREE_ROOT: Member("xfs_extent_busy_tree", ["eb_tree.rb_node"]);
            BUSY_NODE: Member("xfs_extent_busy", ["rb_node"]);
            BUSY_GROUP: Member("xfs_extent_busy", ["group"]);
            INODE_SUPER: Member("inode", ["i_sb"]);
            INODE_MAPPING: Member("inode", ["i_mapping"]);
            INODE_RWSEM: Member("inode", ["i_rwsem"]);
            MAPPING_HOST: Member("address_space", ["host"]);
            MAPPING_PAGES_LOCK: Member("address_space", ["i_pages.xa_lock"]);
            MAPPING_INVALIDATE_LOCK: Member("address_space", ["invalidate_lock"]);
            RWSEM_OWNER: Member("rw_semaphore", ["owner"]);
            MUTEX_OWNER: Member("mutex", ["owner"]);
            SEMAPHORE_HOLDER: Member("semaphore", ["last_holder"]);
            ITEM_LOG: Member("xfs_log_item", ["li_log"]);
            ITEM_MOUNT: Member("xfs_log_item", ["li_mountp"]);
            AIL_LOG: Member("xfs_ail", ["ail_log"]);
            AIL_MOUNT: Member("xfs_ail", ["ail_mount"]);
            AIL_LOCK: Member("xfs_ail", ["ail_lock"]);
            AIL_PUSH_AIL: Argument("xfs_ail_push", "xfs_ail");
            WORK_FUNC: Member("work_struct", ["func"]);
            LOOP_ROOTCG_WORK: Member("loop_device", ["rootcg_work"]);
            LOOP_DISK: Member("loop_device", ["lo_disk"]);
            LOOP_WORKER_WORK: Member("loop_worker", ["work"]);
            LOOP_WORKER_DEVICE: Member("loop_worker", ["lo"]);
            BIO_OPF: Member("bio", ["bi_opf"]);
            BIO_BDEV: Member("bio", ["bi_bdev"]);
            BIO_SIZE: Member("bio", ["bi_iter.bi_size"]);
            BIO_DISK: Member("bio", ["bi_disk"]);
            BIO_PRIVATE: Member("bio", ["bi_private"]);
            BIO_IO_VEC: Member("bio", ["bi_io_vec"]);
            BIO_INLINE_VECS: Member("bio", ["bi_inline_vecs"]);
            BDEV_DEV: Member("block_device", ["bd_dev"]);
            BDEV_DISK: Member("block_device", ["bd_disk"]);
            DISK_MAJOR: Member("gendisk", ["major"]);
            DISK_FIRST_MINOR: Member("gendisk", ["first_minor"]);
            REQUEST_BIO: Member("request", ["bio"]);
            REQUEST_FLAGS: Member("request", ["cmd_flags"]);
            REQUEST_QUEUE: Member("request", ["q"]);
            REQUEST_DISK: Member("request", ["rq_disk"]);
            REQUEST_START: Member("request", ["start_time_ns"]);
            QUEUE_DISK: Member("request_queue", ["disk"]);
            TASK_PID: Member("task_struct", ["pid"]);
            TASK_TGID: Member("task_struct", ["tgid"]);
            TASK_COMM: Member("task_struct", ["comm"]);
            TASK_GROUP_LEADER: Member("task_struct", ["group_leader"]);
            TASK_START_TIME: Member("task_struct", ["start_time"]);
            TASK_EXECS: Member("task_struct", ["self_exec_id"]);
            TASK_SIGNAL: Member("task_struct", ["signal"]);
            SIGNAL_LIVE: Member("signal_struct", ["live"]);
            TASK_STATE: Member("task_struct", ["__state", "state"]);
            TASK_STACK: Member("task_struct", ["stack"]);
            HELPER_PT_REGS: Enumerator("bpf_func_id", "BPF_FUNC_task_pt_regs");
            REQ_FUA_BIT: Enumerator("req_flag_bits", "__REQ_FUA");
            REQ_PREFLUSH_BIT: Enumerator("req_flag_bits", "__REQ_PREFLUSH");
            BIO_QUEUE_BIO: Argument("block_bio_queue", "bio");
            BIO_REMAP_BIO: Argument("block_bio_remap", "bio");
            RQ_ISSUE_RQ: Argument("block_rq_issue", "request");
            SCHED_SWITCH_ARGS: ArgumentCount("sched_switch");
        }
    };
}

macro_rules! table {
    ($( $global:ident : $kind:ident $args:tt ; )+) => {
        /// Every row, in the order of the table above.
        pub const OFFSETS: &[Offset] = &[
            $( Offset { global: stringify!($global), source: source!($kind $args) } ),+
        ];
    };
}

macro_rules! source {
    (Member($of:literal, $any_of:expr)) => {
        Source::Member {
            of: $of,
            any_of: &$any_of,
        }
    };
    (Enumerator($of:literal, $name:literal)) => {
        Source::Enumerator {
            of: $of,
            name: $name,
        }
    };
    (Argument($event:literal, $to:literal)) => {
        Source::Argument {
            event: $event,
            to: $to,
        }
    };
    (ArgumentCount($event:literal)) => {
        Source::ArgumentCount { event: $event }
    };
}

for_each_offset!(table);
