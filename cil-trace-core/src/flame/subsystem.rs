//! Colours of functions by the part of the kernel that they belong to.

use crate::profile::frames::Layer;
use inferno::flamegraph::color::Color;

/// Functions that are drawn in one colour.
struct Subsystem {
    name: &'static str,
    colour_name: &'static str,
    colour: u32,
    /// Beginnings of function names, without leading underscores.
    prefixes: &'static [&'static str],
}

/// The first that fits wins; the last fits everything.
const SUBSYSTEMS: &[Subsystem] = &[
    Subsystem {
        name: "XFS log",
        colour_name: "red",
        colour: 0xe8_6a_58,
        prefixes: &["xlog_", "xfs_log_", "xfs_trans_", "xfs_ail", "xfsaild"],
    },
    Subsystem {
        name: "XFS",
        colour_name: "orange",
        colour: 0xf2_b1_5c,
        prefixes: &["xfs_"],
    },
    Subsystem {
        name: "block",
        colour_name: "blue",
        colour: 0x7f_b2_e5,
        prefixes: &[
            "blk_",
            "blkdev_",
            "bio_",
            "submit_bio",
            "block_",
            "dm_",
            "md_",
            "raid",
            "nvme_",
            "scsi_",
            "sd_",
            "ata_",
            "loop_",
            "lo_",
            "virtblk_",
            "virtio_",
            "elv_",
            "dd_",
            "bfq_",
            "kyber_",
            "wbt_",
            "rq_qos_",
        ],
    },
    Subsystem {
        name: "locking",
        colour_name: "purple",
        colour: 0xc0_9a_e0,
        prefixes: &[
            "mutex_",
            "rwsem_",
            "down_",
            "down",
            "up_",
            "raw_spin_",
            "native_queued_",
            "pv_queued_",
            "queued_",
            "osq_",
            "rt_mutex_",
            "ww_mutex_",
            "percpu_down_",
            "percpu_rwsem_",
        ],
    },
    Subsystem {
        name: "VFS",
        colour_name: "green",
        colour: 0x9f_cf_86,
        prefixes: &[
            "vfs_",
            "do_fsync",
            "do_sys",
            "x64_sys_",
            "ia32_sys_",
            "arm64_sys_",
            "se_sys_",
            "ksys_",
            "sync_",
            "iterate_supers",
            "iomap_",
            "filemap_",
            "generic_",
            "writeback_",
            "wb_",
            "do_writepages",
            "file_write_and_wait",
            "dio_",
            "super_",
            "deactivate_",
            "cleanup_mnt",
            "freeze_super",
            "path_",
            "do_unlinkat",
            "do_filp_open",
            "new_sync_write",
        ],
    },
    Subsystem {
        name: "other",
        colour_name: "grey",
        colour: 0xc8_c8_c8,
        prefixes: &[""],
    },
];

/// Colour of programs' own functions.
const USER: u32 = 0xf0_de_86;

/// The colour of a frame; of what is no function that of other functions.
pub(super) fn colour(layer: Layer, name: &str) -> Color {
    let function = match layer {
        Layer::User => return rgb(USER),
        Layer::Kernel => name.trim_start_matches('_'),
        Layer::Group => "",
    };
    SUBSYSTEMS
        .iter()
        .find(|subsystem| {
            let mut prefixes = subsystem.prefixes.iter();
            prefixes.any(|prefix| function.starts_with(prefix))
        })
        .map_or_else(Color::default, |subsystem| rgb(subsystem.colour))
}

/// What the colours mean.
pub(super) fn legend() -> String {
    let kernel = SUBSYSTEMS
        .iter()
        .map(|subsystem| format!("{} {}", subsystem.colour_name, subsystem.name));
    let all: Vec<_> = kernel.chain(["yellow user".to_owned()]).collect();
    all.join(", ")
}

pub(super) const fn rgb(colour: u32) -> Color {
    let [_, r, g, b] = colour.to_be_bytes();
    Color { r, g, b }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn colour_tells_the_subsystem() {
        for (function, name) in [
            ("xlog_state_release_iclog", "XFS log"),
            ("xfs_file_fsync", "XFS"),
            ("__submit_bio", "block"),
            ("__pv_queued_spin_lock_slowpath", "locking"),
            ("__x64_sys_fsync", "VFS"),
            ("ret_from_fork", "other"),
        ] {
            let subsystem = SUBSYSTEMS.iter().find(|s| s.name == name).unwrap();
            assert_eq!(
                colour(Layer::Kernel, function),
                rgb(subsystem.colour),
                "{function}"
            );
        }
    }
}
