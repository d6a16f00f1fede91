//! The facts that checks judge, and how this machine's are read.
//!
//! What cannot be read is a fact too (`None`); reading never fails and never judges.

use crate::system::build_id;
use crate::system::devices::Topology;
use crate::system::mounts;
use procfs::ConfigSetting;
use rustix::process::{Resource, geteuid, getrlimit};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of the kernel's configuration that explain what a kernel lacks.
pub(super) const OPTIONS: &[&str] = &[
    "CONFIG_BPF_SYSCALL",
    "CONFIG_BPF_EVENTS",
    "CONFIG_DEBUG_INFO_BTF",
    "CONFIG_DEBUG_INFO_BTF_MODULES",
    "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
    "CONFIG_KPROBES",
    "CONFIG_XFS_FS",
];

/// How the kernel comes by XFS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum XfsSupport {
    /// Part of the kernel image.
    BuiltIn,
    /// A module, which is loaded.
    Module,
    /// Not there, or a module that is not loaded.
    #[default]
    Absent,
}

/// Which cgroup hierarchies are mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cgroup {
    /// Version 2 alone.
    V2,
    /// Version 1 alone.
    V1,
    /// Both.
    Hybrid,
    /// None.
    #[default]
    None,
}

/// What was read of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EnvironmentFacts {
    /// `uname -r`.
    pub release: String,
    /// Effective user.
    pub uid: u32,
    /// `CapEff` of /proc/self/status.
    pub capabilities: u64,
    /// Whether /sys/kernel/btf/vmlinux can be read.
    pub kernel_btf: bool,
    /// Whether /sys/kernel/btf/xfs can be read.
    pub xfs_btf: bool,
    /// How the kernel comes by XFS.
    pub xfs: XfsSupport,
    /// The build id of the code that is XFS.
    pub xfs_build: Option<String>,
    /// Mounted XFS, as `MOUNTPOINT (DEVICE)`.
    pub xfs_mounts: Vec<String>,
    /// Where tracefs is mounted.
    pub tracefs: Option<PathBuf>,
    /// /sys/bus/event_source/devices/kprobe/type.
    pub kprobe_type: Option<u32>,
    /// kernel.kptr_restrict.
    pub kptr_restrict: Option<i32>,
    /// kernel.perf_event_paranoid.
    pub perf_event_paranoid: Option<i32>,
    /// kernel.unprivileged_bpf_disabled.
    pub unprivileged_bpf_disabled: Option<i32>,
    /// The mode in force, from /sys/kernel/security/lockdown.
    pub lockdown: Option<String>,
    /// RLIMIT_MEMLOCK in bytes; `None` when unlimited.
    pub memlock: Option<u64>,
    /// Which cgroup hierarchies are mounted.
    pub cgroup: Cgroup,
    /// What tells that this is a container, such as `/.dockerenv`.
    pub container: Option<String>,
    /// Whether process numbers are the kernel's own.
    pub initial_pid_namespace: bool,
    /// Whether capabilities are those of the machine.
    pub initial_user_namespace: bool,
    /// Options that are set, of those that matter here; `None` if the configuration is nowhere.
    pub config: Option<BTreeMap<String, String>>,
}

impl EnvironmentFacts {
    /// Reads this machine's.
    #[must_use]
    pub fn read() -> Self {
        let mounts = mounts::own().unwrap_or_default();
        let kinds: Vec<&str> = mounts
            .iter()
            .map(|mount| mount.filesystem.as_str())
            .collect();
        let tracefs = mounts.iter().find(|mount| mount.filesystem == "tracefs");
        let status = procfs::process::Process::myself().and_then(|own| own.status());
        Self {
            release: text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            uid: geteuid().as_raw(),
            capabilities: status.map_or(0, |status| status.capeff),
            kernel_btf: fs::File::open("/sys/kernel/btf/vmlinux").is_ok(),
            xfs_btf: fs::File::open("/sys/kernel/btf/xfs").is_ok(),
            xfs: xfs_support(),
            xfs_build: build_id::of_module("xfs"),
            xfs_mounts: xfs_mounts(),
            tracefs: tracefs.map(|mount| mount.mountpoint.clone()),
            kprobe_type: number("/sys/bus/event_source/devices/kprobe/type"),
            kptr_restrict: number("/proc/sys/kernel/kptr_restrict"),
            perf_event_paranoid: number("/proc/sys/kernel/perf_event_paranoid"),
            unprivileged_bpf_disabled: number("/proc/sys/kernel/unprivileged_bpf_disabled"),
            lockdown: text("/sys/kernel/security/lockdown")
                .as_deref()
                .and_then(lockdown_mode)
                .map(str::to_owned),
            memlock: getrlimit(Resource::Memlock).current,
            cgroup: match (kinds.contains(&"cgroup"), kinds.contains(&"cgroup2")) {
                (true, true) => Cgroup::Hybrid,
                (true, false) => Cgroup::V1,
                (false, true) => Cgroup::V2,
                (false, false) => Cgroup::None,
            },
            container: container(),
            // Numbers that the kernel gives its first namespaces (include/linux/proc_ns.h).
            initial_pid_namespace: is_namespace("pid", 0xEFFF_FFFC),
            initial_user_namespace: is_namespace("user", 0xEFFF_FFFD),
            config: procfs::kernel_config().ok().map(|config| {
                let set = OPTIONS.iter().filter_map(|&option| {
                    let value = match config.get(option)? {
                        ConfigSetting::Yes => "y".to_owned(),
                        ConfigSetting::Module => "m".to_owned(),
                        ConfigSetting::Value(value) => value.clone(),
                    };
                    Some((option.to_owned(), value))
                });
                set.collect()
            }),
        }
    }
}

/// How this kernel comes by XFS, now.
#[must_use]
pub fn xfs_support() -> XfsSupport {
    xfs_in(&text_all("/proc/filesystems"), is_module("xfs"))
}

/// Whether a module is loaded, or built in and has parameters.
#[must_use]
pub fn is_loaded(module: &str) -> bool {
    Path::new("/sys/module").join(module).exists()
}

/// From the text of /proc/filesystems.
pub(super) fn xfs_in(filesystems: &str, module: bool) -> XfsSupport {
    let known = filesystems
        .lines()
        .any(|line| line.split_whitespace().last() == Some("xfs"));
    match (known, module) {
        (false, _) => XfsSupport::Absent,
        (true, true) => XfsSupport::Module,
        (true, false) => XfsSupport::BuiltIn,
    }
}

/// The word in brackets, as in `none [integrity] confidentiality`.
pub(super) fn lockdown_mode(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    let (mode, _) = rest.split_once(']')?;
    Some(mode)
}

/// Code that is built in has no such file, even where it has parameters in /sys/module.
fn is_module(name: &str) -> bool {
    Path::new("/sys/module")
        .join(name)
        .join("initstate")
        .exists()
}

fn xfs_mounts() -> Vec<String> {
    let topology = Topology::read().unwrap_or_default();
    let each = topology.filesystems.iter().map(|one| {
        let at = one.mountpoints.first();
        let at = at.map_or("another namespace".into(), |path| path.to_string_lossy());
        format!("{at} ({})", one.name)
    });
    each.collect()
}

fn container() -> Option<String> {
    let marks = [
        "/.dockerenv",
        "/run/.containerenv",
        "/run/systemd/container",
    ];
    let mark = marks.into_iter().find(|path| Path::new(path).exists());
    mark.map(str::to_owned)
        .or_else(|| std::env::var("container").ok())
}

fn is_namespace(kind: &str, inode: u64) -> bool {
    let link = fs::read_link(format!("/proc/self/ns/{kind}"));
    link.is_ok_and(|link| link == Path::new(&format!("{kind}:[{inode}]")))
}

fn text_all(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn number<T: std::str::FromStr>(path: &str) -> Option<T> {
    text(path)?.parse().ok()
}
