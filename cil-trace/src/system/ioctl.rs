//! The two ioctls that tell what no file in /proc or /sys does.
//!
//! Both only read. The layouts are the kernel's: fs/xfs/libxfs/xfs_fs.h and uapi/linux/loop.h.

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};
use std::os::fd::AsFd;

/// `struct xfs_fsop_geom` in words; the fifth version, in all kernels since 5.2.
type RawGeometry = [u32; 64];
const XFS_IOC_FSGEOMETRY: Opcode = opcode::read::<RawGeometry>(b'X', 126);
const BLOCK_SIZE: usize = 0;
const LOG_BLOCKS: usize = 4;
const FLAGS: usize = 23;

/// What `xfs_info` calls the numbers of mkfs.xfs, and where each stands.
const NUMBERS: &[(&str, usize)] = &[
    ("bsize", BLOCK_SIZE),
    ("isize", 6),
    ("agcount", 3),
    ("agsize", 2),
    ("sectsz", 5),
    ("sunit", 20),
    ("swidth", 21),
    ("logblocks", LOG_BLOCKS),
    ("logsectsz", 24),
    ("logsunit", 27),
    ("naming_bsize", 26),
];

/// Features of the format, by bit of `XFS_FSOP_GEOM_FLAGS_*`.
const FEATURES: &[(&str, u32)] = &[
    ("crc", 15),
    ("ftype", 16),
    ("finobt", 17),
    ("sparse", 18),
    ("rmapbt", 19),
    ("reflink", 20),
    ("bigtime", 21),
    ("inobtcount", 22),
    ("nrext64", 23),
    ("exchange", 24),
    ("parent", 25),
    ("metadir", 26),
    ("zoned", 27),
];

/// How an XFS was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Size of its log in bytes.
    pub log_size: u64,
    /// What mkfs.xfs chose, in the words of `xfs_info`.
    pub text: String,
}

/// `struct loop_info64` in words.
type LoopInfo = [u32; 58];
const LOOP_GET_STATUS64: Opcode = 0x4C05;

/// How the XFS that holds an open file was made.
///
/// # Errors
/// As ioctl(2): ENOTTY if it is no XFS.
pub fn xfs_geometry(file: impl AsFd) -> rustix::io::Result<Geometry> {
    // SAFETY: the kernel writes one `struct xfs_fsop_geom`, whose size the opcode states.
    let raw: RawGeometry =
        unsafe { ioctl(file, Getter::<XFS_IOC_FSGEOMETRY, RawGeometry>::new()) }?;
    Ok(described(&raw))
}

fn described(raw: &RawGeometry) -> Geometry {
    let numbers = NUMBERS
        .iter()
        .map(|(name, at)| format!("{name}={}", raw[*at]));
    let features = FEATURES
        .iter()
        .filter(|(_, bit)| raw[FLAGS] >> bit & 1 == 1)
        .map(|(name, _)| (*name).to_owned());
    Geometry {
        log_size: u64::from(raw[BLOCK_SIZE]) * u64::from(raw[LOG_BLOCKS]),
        text: numbers.chain(features).collect::<Vec<_>>().join(" "),
    }
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
        assert_eq!(size_of::<RawGeometry>(), 256);
        assert_eq!(size_of::<LoopInfo>(), 232);
        // _IOR('X', 126, struct xfs_fsop_geom) on architectures with the common encoding.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!(XFS_IOC_FSGEOMETRY, 0x8100_587e);
    }

    #[test]
    fn a_geometry_reads_as_xfs_info_prints_it() {
        let mut raw = [0; 64];
        for (index, (_, at)) in NUMBERS.iter().enumerate() {
            raw[*at] = 4096 + index as u32;
        }
        raw[FLAGS] = 1 << 15 | 1 << 20;
        let geometry = described(&raw);
        assert_eq!(geometry.log_size, 4096 * 4103);
        assert!(
            geometry
                .text
                .starts_with("bsize=4096 isize=4097 agcount=4098 ")
        );
        assert!(geometry.text.ends_with(" naming_bsize=4106 crc reflink"));
    }
}
