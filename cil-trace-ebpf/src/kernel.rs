//! Reads of kernel structures, at offsets that user space found in BTF.

use aya_ebpf::Global;
use aya_ebpf::helpers::bpf_probe_read_kernel;
use cil_trace_common::offset::ABSENT;

macro_rules! globals {
    ($( $global:ident : $kind:ident $args:tt ; )+) => {
        $(
            #[doc = concat!("See `", stringify!($global), "` in `cil_trace_common::offset`.")]
            #[unsafe(no_mangle)]
            pub static $global: Global<u32> = Global::new(ABSENT);
        )+
    };
}
cil_trace_common::for_each_offset!(globals);

/// Reads the member at `offset` of the structure at `base`; `None` if this kernel has no such
/// member or the address is bad.
#[inline(always)]
pub fn read<T>(base: u64, offset: &Global<u32>) -> Option<T> {
    let offset = offset.load();
    if offset == ABSENT || base == 0 {
        return None;
    }
    // SAFETY: bpf_probe_read_kernel checks the address; `T` is a plain integer at every call.
    unsafe { bpf_probe_read_kernel((base + u64::from(offset)) as *const T) }.ok()
}

/// Reads a pointer member; `None` also when it is null.
#[inline(always)]
pub fn pointer(base: u64, offset: &Global<u32>) -> Option<u64> {
    read::<u64>(base, offset).filter(|pointer| *pointer != 0)
}

/// Address of the member at `offset` of the structure at `base`.
#[inline(always)]
pub fn member(base: u64, offset: &Global<u32>) -> Option<u64> {
    let offset = offset.load();
    (offset != ABSENT).then(|| base + u64::from(offset))
}

/// The structure that has a member at `offset` which stands at `member`.
#[inline(always)]
pub fn container(member: u64, offset: &Global<u32>) -> Option<u64> {
    let offset = offset.load();
    (offset != ABSENT).then(|| member.wrapping_sub(u64::from(offset)))
}

/// `dev_t` of the filesystem of a `struct xfs_mount`.
#[inline(always)]
pub fn dev_of_mount(mount: u64) -> Option<u32> {
    read(pointer(mount, &MOUNT_SUPER)?, &SUPER_DEV)
}

/// `dev_t` of the filesystem of a `struct xlog`.
#[inline(always)]
pub fn dev_of_log(log: u64) -> Option<u32> {
    dev_of_mount(pointer(log, &LOG_MOUNT)?)
}

/// `dev_t` of the filesystem of a `struct xfs_inode`.
#[inline(always)]
pub fn dev_of_inode(inode: u64) -> Option<u32> {
    dev_of_mount(pointer(inode, &XINODE_MOUNT)?)
}

/// `dev_t` of a `struct gendisk`, that is of the whole disk.
#[inline(always)]
pub fn dev_of_disk(disk: u64) -> Option<u32> {
    let major: u32 = read(disk, &DISK_MAJOR)?;
    let minor: u32 = read(disk, &DISK_FIRST_MINOR)?;
    Some(major << 20 | minor)
}
