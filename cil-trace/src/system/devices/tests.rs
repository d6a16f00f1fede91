#![expect(
    clippy::unwrap_used,
    reason = "a failed test should stop where it fails"
)]

use super::select::Wanted;
use super::*;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// Files of /sys as they were on a machine with an XFS on a loop device's partition (`loop5p1`, its
/// file on `vda`'s ext4), one on LVM over a partition (`dm-0` on `sda2`), with its log on `sda1`
/// and its realtime part on `loop6` (a file on btrfs), and one on `loop7` in another namespace.
const FILES: &[(&str, &str)] = &[
    ("devices/virtual/block/loop5/dev", "7:5\n"),
    ("devices/virtual/block/loop5/mq/0/nr_tags", "128\n"),
    (
        "devices/virtual/block/loop5/queue/write_cache",
        "write back\n",
    ),
    ("devices/virtual/block/loop5/queue/fua", "0\n"),
    (
        "devices/virtual/block/loop5/loop/backing_file",
        "/srv/x.img\n",
    ),
    ("devices/virtual/block/loop5/loop5p1/dev", "259:0\n"),
    ("devices/virtual/block/loop5/loop5p1/partition", "1\n"),
    ("devices/virtual/block/loop6/dev", "7:6\n"),
    ("devices/virtual/block/loop6/mq/0/nr_tags", "128\n"),
    (
        "devices/virtual/block/loop6/loop/backing_file",
        "/btrfs/rt.img\n",
    ),
    ("devices/virtual/block/loop7/dev", "7:7\n"),
    ("devices/virtual/block/loop7/mq/0/nr_tags", "128\n"),
    (
        "devices/virtual/block/loop7/loop/backing_file",
        "/srv/gone.img (deleted)\n",
    ),
    ("devices/pci0/virtio1/block/vda/dev", "254:0\n"),
    ("devices/pci0/virtio1/block/vda/mq/0/nr_tags", "128\n"),
    (
        "devices/pci0/virtio1/block/vda/queue/write_cache",
        "write through\n",
    ),
    ("devices/pci0/virtio1/block/vda/queue/fua", "0\n"),
    ("devices/pci1/ata1/block/sda/dev", "8:0\n"),
    ("devices/pci1/ata1/block/sda/mq/0/nr_tags", "32\n"),
    (
        "devices/pci1/ata1/block/sda/queue/write_cache",
        "write back\n",
    ),
    ("devices/pci1/ata1/block/sda/queue/fua", "1\n"),
    ("devices/pci1/ata1/block/sda/sda1/dev", "8:1\n"),
    ("devices/pci1/ata1/block/sda/sda1/partition", "1\n"),
    ("devices/pci1/ata1/block/sda/sda2/dev", "8:2\n"),
    ("devices/pci1/ata1/block/sda/sda2/partition", "2\n"),
    ("devices/virtual/block/dm-0/dev", "253:0\n"),
    (
        "devices/virtual/block/dm-0/queue/write_cache",
        "write back\n",
    ),
    ("devices/virtual/block/dm-0/queue/fua", "1\n"),
    ("fs/xfs/stats/stats", "log 1 2 3 4 5\n"),
    ("fs/xfs/loop5p1/stats/stats", "log 6 7 8 9 10\n"),
    ("fs/xfs/dm-0/stats/stats", "log 0 0 0 0 0\n"),
    ("fs/xfs/loop7/stats/stats", "log 0 0 0 0 0\n"),
];

/// Devices by number and the directory that holds them.
const DEVICES: &[(&str, &str, &str)] = &[
    ("7:5", "loop5", "virtual/block/loop5"),
    ("259:0", "loop5p1", "virtual/block/loop5/loop5p1"),
    ("7:6", "loop6", "virtual/block/loop6"),
    ("7:7", "loop7", "virtual/block/loop7"),
    ("254:0", "vda", "pci0/virtio1/block/vda"),
    ("8:0", "sda", "pci1/ata1/block/sda"),
    ("8:1", "sda1", "pci1/ata1/block/sda/sda1"),
    ("8:2", "sda2", "pci1/ata1/block/sda/sda2"),
    ("253:0", "dm-0", "virtual/block/dm-0"),
];

const MOUNTINFO: &str = "\
27 1 254:0 / / rw - ext4 /dev/vda rw,discard
50 27 259:0 /deep /mnt/bind rw - xfs /dev/loop5p1 rw,logbufs=8,logbsize=32k,noquota
51 27 259:0 / /mnt/p rw,noatime - xfs /dev/loop5p1 rw,logbufs=8,logbsize=32k,noquota
52 27 253:0 / /data rw - xfs /dev/mapper/v-data rw,logdev=/dev/sda1,rtdev=/dev/loop6,logbsize=256k
53 27 0:45 / /btrfs rw - btrfs /dev/sdb rw
";

const ASK: Ask = Ask {
    file_device: |name, _| match name {
        "loop5" => Some(Dev::new(254, 0)),
        "loop6" => Some(Dev::new(0, 45)),
        _ => None,
    },
    node: |path| match path.to_str()? {
        "/dev/sda1" => Some(Dev::new(8, 1)),
        "/dev/loop6" => Some(Dev::new(7, 6)),
        _ => None,
    },
    geometry: |path, _| {
        (path == Path::new("/mnt/p")).then(|| Geometry {
            log_size: 64 << 20,
            text: "bsize=4096".to_owned(),
        })
    },
};

fn tree() -> (TempDir, Sysfs) {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    for (path, text) in FILES {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), text).unwrap();
    }
    for directory in ["dev/block", "class/block"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    for (number, name, directory) in DEVICES {
        let target = format!("../../devices/{directory}");
        symlink(&target, at(&format!("dev/block/{number}"))).unwrap();
        symlink(&target, at(&format!("class/block/{name}"))).unwrap();
    }
    let slaves = at("devices/virtual/block/dm-0/slaves");
    fs::create_dir_all(&slaves).unwrap();
    symlink(at("devices/pci1/ata1/block/sda/sda2"), slaves.join("sda2")).unwrap();
    let sysfs = Sysfs::new(root.path());
    (root, sysfs)
}

fn topology() -> Topology {
    let (_root, sysfs) = tree();
    let mounts = mounts::parse(MOUNTINFO.as_bytes(), Path::new("/"));
    Topology::build(&sysfs, &mounts, &ASK)
}

fn named<'a>(topology: &'a Topology, name: &str) -> &'a Device {
    let mut all = topology.devices.iter();
    all.find(|device| device.name == name).unwrap()
}

fn names(topology: &Topology) -> Vec<&str> {
    let all = topology.devices.iter();
    all.map(|device| device.name.as_str()).collect()
}

#[test]
fn a_partition_of_a_loop_device_is_followed_down_to_the_disk_of_its_file() {
    let topology = topology();
    let partition = named(&topology, "loop5p1");
    assert_eq!(partition.partition_of, Some(Dev::new(7, 5)));
    assert_eq!(partition.filesystem.as_deref(), Some("xfs"));
    assert_eq!(
        partition.mountpoint.as_deref(),
        Some("/mnt/p"),
        "not the bind mount"
    );
    assert_eq!(
        partition.write_cache.as_deref(),
        Some("write back"),
        "its disk's"
    );
    assert_eq!(partition.request_based, Some(false));
    assert_eq!(partition.log_size_bytes, Some(64 << 20));
    assert_eq!(partition.geometry.as_deref(), Some("bsize=4096"));
    let options = "logbsize=32k,logbufs=8,noatime,noquota,rw";
    assert_eq!(partition.mount_options.as_deref(), Some(options));
    assert_eq!(partition.iclog_size_bytes, Some(32 << 10));

    let disk = named(&topology, "loop5");
    assert_eq!(disk.stacked_on, [Dev::new(254, 0)]);
    assert_eq!(disk.request_based, Some(true));
    assert_eq!(disk.filesystem, None);

    let bottom = named(&topology, "vda");
    assert_eq!(bottom.filesystem.as_deref(), Some("ext4"));
    assert_eq!(bottom.mountpoint.as_deref(), Some("/"));
    assert_eq!(bottom.fua, Some(false));
}

#[test]
fn dm_members_log_and_realtime_devices_are_followed() {
    let topology = topology();
    let mapped = named(&topology, "dm-0");
    assert_eq!(mapped.request_based, Some(false));
    assert_eq!(mapped.stacked_on, [Dev::new(8, 2)]);
    assert_eq!(mapped.log_device, Some(Dev::new(8, 1)));
    assert_eq!(mapped.realtime_device, Some(Dev::new(7, 6)));
    assert_eq!(named(&topology, "sda2").partition_of, Some(Dev::new(8, 0)));
    assert_eq!(named(&topology, "sda").fua, Some(true));
}

#[test]
fn what_is_not_found_out_is_said() {
    let topology = topology();
    let hidden = named(&topology, "loop7");
    assert_eq!(hidden.filesystem.as_deref(), Some("xfs"));
    assert_eq!(hidden.mountpoint, None);
    for expected in [
        "loop6: its file /btrfs/rt.img lies on a filesystem without a block device",
        "loop7: its file /srv/gone.img (deleted) cannot be reached",
        "loop7: mounted where no visible process has it",
        "dm-0: log size unknown",
    ] {
        let said = topology
            .notes
            .iter()
            .filter(|note| note.starts_with(expected));
        assert_eq!(said.count(), 1, "{expected}: {:#?}", topology.notes);
    }
    assert_eq!(topology.notes.len(), 4);
}

#[test]
fn the_kernel_side_is_told_each_devices_part() {
    let topology = topology();
    let scope = |name: &str| {
        let dev = named(&topology, name).dev;
        let entries = topology.scope_entries();
        let (_, scope) = entries.into_iter().find(|(of, _)| *of == dev).unwrap();
        scope
    };
    let above = Dev::new(7, 5).0;
    for (name, flags, above) in [
        ("loop5p1", Scope::XFS, 0),
        ("loop5", Scope::BENEATH, 0),
        ("vda", Scope::BENEATH, above),
        ("loop7", Scope::XFS | Scope::BENEATH, 0),
        ("dm-0", Scope::XFS | Scope::BENEATH | Scope::FUA, 0),
        ("sda1", Scope::XFS | Scope::FUA, 0),
        ("sda2", Scope::BENEATH | Scope::FUA, 0),
        ("sda", Scope::BENEATH | Scope::FUA, 0),
        ("loop6", Scope::XFS | Scope::BENEATH, 0),
    ] {
        assert_eq!(scope(name), Scope { flags, above }, "{name}");
    }
}

#[test]
fn two_loop_devices_over_a_disk_are_none_that_can_be_named() {
    // One of them is out of scope, with its file on a partition, and flushes all the same.
    let mut topology = topology();
    let file = Backing {
        dev: Dev::new(254, 1),
        disk: Some(Dev::new(254, 0)),
    };
    topology.loops.insert(Dev::new(7, 8), file);
    let entries = topology.scope_entries();
    let vda = entries.iter().find(|(dev, _)| *dev == Dev::new(254, 0));
    assert_eq!(vda.unwrap().1.above, 0);
}

#[test]
fn a_filter_keeps_a_filesystem_and_what_is_beneath() {
    let topology = topology();
    let by_mount = topology.keep(&Wanted {
        mounts: vec![("/mnt/p/".into(), "/mnt/p".into())],
        ..Wanted::default()
    });
    assert_eq!(names(&by_mount.unwrap()), ["loop5", "vda", "loop5p1"]);
    let by_device = topology.keep(&Wanted {
        devices: vec![("dm-0".to_owned(), Some(Dev::new(253, 0)))],
        ..Wanted::default()
    });
    let by_device = by_device.unwrap();
    assert_eq!(names(&by_device), ["loop6", "sda", "sda1", "sda2", "dm-0"]);
    assert_eq!(by_device.filesystems.len(), 1);
    assert_eq!(topology.keep(&Wanted::default()).unwrap(), topology);
}

#[test]
fn a_filter_that_fits_nothing_lists_what_there_is() {
    let topology = topology();
    const MOUNTED: &str =
        "XFS is mounted at another mount namespace (loop7), /data (dm-0), /mnt/p (loop5p1)";
    let mount = |path: &str| Wanted {
        mounts: vec![(path.into(), path.into())],
        ..Wanted::default()
    };
    let device = |name: &str, dev| Wanted {
        devices: vec![(name.to_owned(), dev)],
        ..Wanted::default()
    };
    for (wanted, text) in [
        (
            mount("/srv"),
            "--mount /srv: not the mount point of an XFS; ",
        ),
        (
            mount("/data/a/b"),
            "--mount /data/a/b: not the mount point of an XFS but inside /data; ",
        ),
        (
            device("nvme9n1", None),
            "--device nvme9n1: no such block device; ",
        ),
        (
            device("vda", Some(Dev::new(254, 0))),
            "--device vda: no mounted XFS on this device; ",
        ),
    ] {
        let error = topology.keep(&wanted).unwrap_err().to_string();
        assert_eq!(error, format!("{text}{MOUNTED}"));
    }
    let error = Topology::default().keep(&Wanted::default()).unwrap_err();
    assert_eq!(error, SelectError::NoXfs(NoXfs));
    assert!(
        error
            .to_string()
            .starts_with("no XFS is mounted: mount one")
    );
}

#[test]
fn the_statistics_of_a_filesystem_are_not_the_sum() {
    let (_root, sysfs) = tree();
    assert_eq!(
        sysfs.xfs_stats("loop5p1").as_deref(),
        Some("log 6 7 8 9 10\n")
    );
    assert_eq!(sysfs.xfs_stats("sdz"), None);
    assert_eq!(sysfs.xfs_names(), ["dm-0", "loop5p1", "loop7"]);
}

#[test]
fn sizes_are_read_as_xfs_shows_them() {
    assert_eq!(size_in_bytes("32k"), Some(32768));
    assert_eq!(size_in_bytes("262144"), Some(262_144));
    assert_eq!(size_in_bytes("k"), None);
}
