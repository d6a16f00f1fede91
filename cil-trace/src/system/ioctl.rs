//! The two ioctls that tell what no file in /proc or /sys does.
//!
//! Both only read. The layouts are the kernel's: fs/xfs/libxfs/xfs_fs.h and uapi/linux/loop.h.

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};
use std::os::fd::AsFd;

/// `struct xfs_fsop_geom` in words; the fifth version, in all kernels since 5.2.
type Geometry = [u32; 64];
const XFS_IOC_FSGEOMETRY: Opcode = opcode::read::<Geometry>(b'X', 126);
const BLOCK_SIZE: usize = 0;
const LOG_BLOCKS: usize = 4;

/// `struct loop_info64` in words.
type LoopInfo = [u32; 58];
const LOOP_GET_STATUS64: Opcode = 0x4C05;

/// Size in bytes of the log of the XFS that holds an open file.
///
/// # Errors
/// As ioctl(2): ENOTTY if it is no XFS.
pub fn xfs_log_size(file: impl AsFd) -> rustix::io::Result<u64> {
    // SAFETY: the kernel writes one `struct xfs_fsop_geom`, whose size the opcode states.
    let geometry: Geometry = unsafe { ioctl(file, Getter::<XFS_IOC_FSGEOMETRY, Geometry>::new()) }?;
    Ok(u64::from(geometry[BLOCK_SIZE]) * u64::from(geometry[LOG_BLOCKS]))
}

/// `st_dev` of the file behind a loop device, also of one that is unlinked or out of sight.
///
/// # Errors
/// As ioctl(2): ENXIO if the loop device has no file.
pub fn loop_file_device(file: impl AsFd) -> rustix::io::Result<u64> {
    // SAFETY: the kernel writes one `struct loop_info64` of 232 bytes.
    let info: LoopInfo = unsafe { ioctl(file, Getter::<LOOP_GET_STATUS64, LoopInfo>::new()) }?;
    // `lo_device`, the first member.
    Ok(u64::from(info[0]) | u64::from(info[1]) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_have_the_sizes_of_the_uapi() {
        assert_eq!(size_of::<Geometry>(), 256);
        assert_eq!(size_of::<LoopInfo>(), 232);
        // _IOR('X', 126, struct xfs_fsop_geom) on architectures with the common encoding.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!(XFS_IOC_FSGEOMETRY, 0x8100_587e);
    }
}
