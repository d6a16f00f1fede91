//! Reads of kernel structures, at offsets that user space found in BTF.

#[cfg(target_arch = "bpf")]
use aya_ebpf::EbpfContext as _;
use aya_ebpf::Global;
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::programs::RawTracePointContext;
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

/// 1 if a program on a tracepoint may be preempted, so that another task's runs meanwhile on the same
/// CPU.
#[unsafe(no_mangle)]
pub static PREEMPTIBLE: Global<u32> = Global::new(1);

/// An argument of a raw tracepoint: `FIRST` if `choice` is 0, else `SECOND`.
///
/// Written in assembly because the verifier wants constant offsets into the context, and refuses
/// an argument that a tracepoint does not have even if it is not used: there must be two loads in
/// two branches, of which it drops one, as `choice` is read-only.
#[inline(always)]
pub fn argument<const FIRST: usize, const SECOND: usize>(
    ctx: &RawTracePointContext,
    choice: &Global<u32>,
) -> u64 {
    #[cfg(target_arch = "bpf")]
    {
        let value: u64;
        let ctx = ctx.as_ptr();
        // SAFETY: the context holds at least as many arguments as the kernel whose BTF made the
        // choice; the verifier checks it.
        unsafe {
            if choice.load() == 0 {
                core::arch::asm!("{0} = *(u64 *)({1} + {2})", out(reg) value, in(reg) ctx, const FIRST * 8);
            } else {
                core::arch::asm!("{0} = *(u64 *)({1} + {2})", out(reg) value, in(reg) ctx, const SECOND * 8);
            }
        }
        value
    }
    #[cfg(not(target_arch = "bpf"))]
    ctx.arg(if choice.load() == 0 { FIRST } else { SECOND })
}

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
