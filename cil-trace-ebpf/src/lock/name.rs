//! What an address is the lock of.
//!
//! An address alone says nothing, so each structure that could hold the lock there is tried in turn:
//! from where its beginning would be, pointers must lead to a mount and back again. That needs no
//! list of what exists, which would have to be kept where locks are waited for.

use crate::kernel::{
    AIL_LOCK, AIL_LOG, AIL_MOUNT, BUF_SEMA, BUF_TARGET, BUSY_GROUP, BUSY_NODE, BUSY_TREE_LOCK,
    BUSY_TREE_ROOT, CIL_CTX_LOCK, CIL_LOCK, CIL_LOG, CIL_PUSH_LOCK, GROUP_BUSY, GROUP_MOUNT,
    INODE_MAPPING, INODE_RWSEM, INODE_SUPER, LOG_AIL, LOG_CIL, LOG_ICLOG_LOCK, LOG_MOUNT,
    LOG_RESERVE_LOCK, LOG_WRITE_LOCK, MAPPING_HOST, MAPPING_INVALIDATE_LOCK, MAPPING_PAGES_LOCK,
    MOUNT_AIL, MOUNT_LOG, MOUNT_SUPER, PERAG_BUSY_LOCK, PERAG_MOUNT, SUPER_DEV, SUPER_INFO,
    TARGET_MOUNT, XINODE_FLAGS_LOCK, XINODE_LOCK, XINODE_MMAP_LOCK, XINODE_MOUNT, XINODE_VFS,
    container, member, read,
};
use aya_ebpf::Global;
use cil_trace_common::lock::Lock;

/// A lock that has been recognised.
#[derive(Clone, Copy)]
pub struct Named {
    /// Which.
    pub lock: Lock,
    /// The filesystem.
    pub dev: u32,
    /// `struct xfs_inode` of a lock that `xfs_ilock` takes, else 0.
    pub inode: u64,
}

const fn of_filesystem(lock: Lock, dev: u32) -> Named {
    Named {
        lock,
        dev,
        inode: 0,
    }
}

/// Recognises a lock; `unknown` says what is known of it otherwise.
#[inline(always)]
pub fn name(address: u64, unknown: Lock) -> Option<Named> {
    match unknown {
        Lock::OtherSpin => spinlock(address),
        Lock::OtherShared => rwsem(address).map(shared),
        Lock::OtherExclusive => rwsem(address),
        Lock::OtherSemaphore => semaphore(address),
        _ => None,
    }
}

const fn shared(exclusive: Named) -> Named {
    let lock = match exclusive.lock {
        Lock::IolockExclusive => Lock::IolockShared,
        Lock::IlockExclusive => Lock::IlockShared,
        Lock::MmaplockExclusive => Lock::MmaplockShared,
        _ => Lock::CtxLockShared,
    };
    Named { lock, ..exclusive }
}

#[inline(always)]
fn spinlock(address: u64) -> Option<Named> {
    for (offset, lock) in [
        (&LOG_ICLOG_LOCK, Lock::IclogLock),
        (&LOG_RESERVE_LOCK, Lock::ReserveHead),
        (&LOG_WRITE_LOCK, Lock::WriteHead),
    ] {
        if let Some(dev) = container(address, offset).and_then(log) {
            return Some(of_filesystem(lock, dev));
        }
    }
    for (offset, lock) in [(&CIL_LOCK, Lock::CilLock), (&CIL_PUSH_LOCK, Lock::PushLock)] {
        if let Some(dev) = container(address, offset).and_then(cil) {
            return Some(of_filesystem(lock, dev));
        }
    }
    if let Some(dev) = container(address, &AIL_LOCK).and_then(ail) {
        return Some(of_filesystem(Lock::Ail, dev));
    }
    if let Some(dev) = container(address, &MAPPING_PAGES_LOCK).and_then(pages) {
        return Some(of_filesystem(Lock::Pages, dev));
    }
    if let Some(dev) = container(address, &XINODE_FLAGS_LOCK).and_then(inode) {
        return Some(of_filesystem(Lock::InodeFlags, dev));
    }
    let busy = container(address, &BUSY_TREE_LOCK)
        .and_then(busy_tree)
        .or_else(|| {
            let perag = container(address, &PERAG_BUSY_LOCK)?;
            mount(pointer(perag, &PERAG_MOUNT)?)
        })?;
    Some(of_filesystem(Lock::BusyExtents, busy))
}

/// In exclusive mode.
#[inline(always)]
fn rwsem(address: u64) -> Option<Named> {
    if let Some(dev) = container(address, &CIL_CTX_LOCK).and_then(cil) {
        return Some(of_filesystem(Lock::CtxLockExclusive, dev));
    }
    let (lock, inode, dev) = if let Some(found) = holder(address, &XINODE_LOCK, inode) {
        (Lock::IlockExclusive, found.0, found.1)
    } else if let Some(found) = holder(address, &INODE_RWSEM, vfs_inode) {
        (
            Lock::IolockExclusive,
            container(found.0, &XINODE_VFS)?,
            found.1,
        )
    } else if let Some(found) = holder(address, &XINODE_MMAP_LOCK, inode) {
        (Lock::MmaplockExclusive, found.0, found.1)
    } else {
        let mapping = container(address, &MAPPING_INVALIDATE_LOCK)?;
        let host = host(mapping)?;
        let dev = vfs_inode(host)?;
        (Lock::MmaplockExclusive, container(host, &XINODE_VFS)?, dev)
    };
    Some(Named { lock, dev, inode })
}

#[inline(always)]
fn semaphore(address: u64) -> Option<Named> {
    let target = pointer(container(address, &BUF_SEMA)?, &BUF_TARGET)?;
    Some(of_filesystem(
        Lock::Buffer,
        mount(pointer(target, &TARGET_MOUNT)?)?,
    ))
}

/// A structure with a lock at `offset`, and its filesystem.
#[inline(always)]
fn holder(
    address: u64,
    offset: &Global<u32>,
    dev: impl FnOnce(u64) -> Option<u32>,
) -> Option<(u64, u32)> {
    let structure = container(address, offset)?;
    Some((structure, dev(structure)?))
}

/// A member that could be a pointer to a kernel structure: a wrong guess reads anything, and a fault
/// costs more than all else here.
#[inline(always)]
fn pointer(base: u64, offset: &Global<u32>) -> Option<u64> {
    // The kernel's half begins there also with page tables of five levels.
    read::<u64>(base, offset).filter(|pointer| pointer >> 56 == 0xff && pointer & 7 == 0)
}

/// `dev_t` of what must be a `struct xfs_mount`.
#[inline(always)]
fn mount(mount: u64) -> Option<u32> {
    superblock(pointer(mount, &MOUNT_SUPER)?, mount)
}

/// `dev_t` of what must be the superblock of this mount.
#[inline(always)]
fn superblock(superblock: u64, mount: u64) -> Option<u32> {
    (pointer(superblock, &SUPER_INFO)? == mount).then_some(())?;
    read(superblock, &SUPER_DEV)
}

/// The same of a `struct xlog`.
#[inline(never)]
fn log(log: u64) -> Option<u32> {
    let of = pointer(log, &LOG_MOUNT)?;
    (pointer(of, &MOUNT_LOG)? == log).then_some(())?;
    mount(of)
}

/// The same of a `struct xfs_cil`.
#[inline(never)]
fn cil(cil: u64) -> Option<u32> {
    let of = pointer(cil, &CIL_LOG)?;
    (pointer(of, &LOG_CIL)? == cil).then_some(())?;
    mount(pointer(of, &LOG_MOUNT)?)
}

/// The same of a `struct xfs_ail`, which knew its mount before it knew its log.
#[inline(never)]
fn ail(ail: u64) -> Option<u32> {
    if member(ail, &AIL_MOUNT).is_some() {
        let of = pointer(ail, &AIL_MOUNT)?;
        (pointer(of, &MOUNT_AIL)? == ail).then_some(())?;
        return mount(of);
    }
    let of = pointer(ail, &AIL_LOG)?;
    (pointer(of, &LOG_AIL)? == ail).then_some(())?;
    mount(pointer(of, &LOG_MOUNT)?)
}

/// The same of a `struct xfs_extent_busy_tree`, which knows nothing itself: by an extent in it.
#[inline(never)]
fn busy_tree(tree: u64) -> Option<u32> {
    let busy = container(pointer(tree, &BUSY_TREE_ROOT)?, &BUSY_NODE)?;
    let group = pointer(busy, &BUSY_GROUP)?;
    (pointer(group, &GROUP_BUSY)? == tree).then_some(())?;
    mount(pointer(group, &GROUP_MOUNT)?)
}

/// The same of a `struct xfs_inode`.
#[inline(never)]
fn inode(inode: u64) -> Option<u32> {
    let of = pointer(inode, &XINODE_MOUNT)?;
    let vfs = member(inode, &XINODE_VFS)?;
    let of_vfs = pointer(vfs, &INODE_SUPER)?;
    (pointer(of, &MOUNT_SUPER)? == of_vfs).then_some(())?;
    superblock(of_vfs, of)
}

/// The same of the `struct inode` in it.
#[inline(always)]
fn vfs_inode(vfs: u64) -> Option<u32> {
    inode(container(vfs, &XINODE_VFS)?)
}

/// `struct inode` of a file's page cache.
#[inline(always)]
fn host(mapping: u64) -> Option<u64> {
    let host = pointer(mapping, &MAPPING_HOST)?;
    (pointer(host, &INODE_MAPPING)? == mapping).then_some(host)
}

/// `dev_t` of the filesystem of a page cache, of whatever type.
#[inline(never)]
fn pages(mapping: u64) -> Option<u32> {
    read(pointer(host(mapping)?, &INODE_SUPER)?, &SUPER_DEV)
}
