//! What probes must know of this kernel's structures, as lists of offsets' names.

/// What must be known of this kernel's structures: one of these lists of offsets, whole.
///
/// The names are those of [`cil_trace_common::offset::OFFSETS`]. Without them a program loads, and
/// counts nothing.
pub type Layout = &'static [&'static [&'static str]];

/// From `struct xfs_mount` to its `dev_t`.
pub(super) const DEV_OF_MOUNT: Layout = &[&["MOUNT_SUPER", "SUPER_DEV"]];
/// From `struct xlog` to its `dev_t`.
pub(super) const DEV_OF_LOG: Layout = &[&["LOG_MOUNT", "MOUNT_SUPER", "SUPER_DEV"]];
/// From `struct xfs_inode` to its `dev_t`.
pub(super) const DEV_OF_INODE: Layout = &[&["XINODE_MOUNT", "MOUNT_SUPER", "SUPER_DEV"]];
/// From `struct xfs_trans` to its `dev_t`.
pub(super) const DEV_OF_TRANS: Layout = &[&["TRANS_MOUNT", "MOUNT_SUPER", "SUPER_DEV"]];
/// From what an AIL event is about to its `dev_t`: by the AIL, or by the log item and its log (since
/// 6.1) or its mount.
pub(super) const DEV_OF_ITEM: Layout = &[
    &[
        "AIL_PUSH_AIL",
        "AIL_LOG",
        "LOG_MOUNT",
        "MOUNT_SUPER",
        "SUPER_DEV",
    ],
    &["ITEM_LOG", "LOG_MOUNT", "MOUNT_SUPER", "SUPER_DEV"],
    &["ITEM_MOUNT", "MOUNT_SUPER", "SUPER_DEV"],
];
/// From a mount to its `struct xfs_cil`.
pub(super) const CIL_OF_MOUNT: Layout = &[&["MOUNT_LOG", "LOG_CIL"]];
/// From a push's work item to its checkpoint: one per context since 5.15, one per CIL before.
pub(super) const CHECKPOINT_OF_WORK: Layout = &[
    &[
        "WORK_FUNC",
        "CTX_PUSH_WORK",
        "CTX_CIL",
        "CTX_SEQUENCE",
        "CIL_LOG",
    ],
    &[
        "WORK_FUNC",
        "CIL_PUSH_WORK",
        "CIL_CTX",
        "CTX_SEQUENCE",
        "CIL_LOG",
    ],
];
/// What there is to know of an iclog; it has flags since 5.14.
pub(super) const ICLOG: Layout = &[&[
    "ICLOG_LOG",
    "ICLOG_OFFSET",
    "ICLOG_STATE",
    "ICLOG_BIO",
    "LOG_ICLOG_SIZE",
]];
pub(super) const BIO_FLAGS: Layout = &[&["BIO_OPF", "BIO_SIZE", "REQ_PREFLUSH_BIT", "REQ_FUA_BIT"]];
/// From a bio to its `dev_t` and its disk's: by a block device since 5.12, by its disk before.
pub(super) const DEV_OF_BIO: Layout = &[
    &[
        "BIO_BDEV",
        "BDEV_DEV",
        "BDEV_DISK",
        "DISK_MAJOR",
        "DISK_FIRST_MINOR",
    ],
    &["BIO_DISK", "DISK_MAJOR", "DISK_FIRST_MINOR"],
];
/// From a request to its disk's `dev_t`: by its queue since 5.17, directly before.
pub(super) const DEV_OF_REQUEST: Layout = &[
    &[
        "REQUEST_QUEUE",
        "QUEUE_DISK",
        "DISK_MAJOR",
        "DISK_FIRST_MINOR",
    ],
    &["REQUEST_DISK", "DISK_MAJOR", "DISK_FIRST_MINOR"],
];
/// From a loop worker's work item to its device: the two kinds that there are since 5.14.
pub(super) const LOOP_OF_WORK: Layout = &[&[
    "WORK_FUNC",
    "LOOP_ROOTCG_WORK",
    "LOOP_WORKER_WORK",
    "LOOP_WORKER_DEVICE",
    "LOOP_DISK",
    "DISK_MAJOR",
    "DISK_FIRST_MINOR",
]];
