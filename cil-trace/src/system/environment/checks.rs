//! The table of checks, in the order in which `doctor` prints them.

use super::facts::OPTIONS;
use super::{Cgroup, EnvironmentFacts, Finding, XfsSupport};
use cil_trace_core::offsets::Layout;
use cil_trace_core::probes::version;

type Check = fn(&EnvironmentFacts) -> Finding;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("kernel", kernel),
    ("privileges", privileges),
    ("namespaces", namespaces),
    ("lockdown", lockdown),
    ("kernel configuration", configuration),
    ("kernel BTF", kernel_btf),
    (XFS_IS_THERE[0], xfs),
    ("XFS BTF", xfs_btf),
    (XFS_IS_THERE[1], xfs_mounts),
    ("function probes", kprobes),
    ("kernel.kptr_restrict", kptr_restrict),
    ("kernel.perf_event_paranoid", perf_event_paranoid),
    ("kernel.unprivileged_bpf_disabled", unprivileged_bpf),
    ("RLIMIT_MEMLOCK", memlock),
    ("tracefs", tracefs),
    ("cgroup", cgroup),
];

/// The checks that an XFS which is mounted later passes by itself.
pub const XFS_IS_THERE: [&str; 2] = ["XFS in the kernel", "XFS mounts"];

/// Oldest kernel with all that the programs use, and newest that they were run on.
const OLDEST: (u32, u32) = (5, 10);
const NEWEST: (u32, u32) = (7, 3);
/// First kernel that accounts BPF memory to the cgroup and not to RLIMIT_MEMLOCK.
const NO_MEMLOCK: (u32, u32) = (5, 11);

/// Bits of `CapEff` (include/uapi/linux/capability.h).
const SYS_ADMIN: u64 = 1 << 21;
const SYSLOG: u64 = 1 << 34;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

fn may_load(facts: &EnvironmentFacts) -> bool {
    let held = |capability| facts.capabilities & capability != 0;
    facts.initial_user_namespace && (held(SYS_ADMIN) || held(BPF) && held(PERFMON))
}

fn option(facts: &EnvironmentFacts, name: &str) -> Option<bool> {
    Some(facts.config.as_ref()?.contains_key(name))
}

fn kernel(facts: &EnvironmentFacts) -> Finding {
    let value = facts.release.as_str();
    match version(value) {
        None => Finding::limited(value, "the version cannot be told from this", ""),
        Some(version) if version < OLDEST => Finding::missing(
            value,
            "the programs do not load on kernels before 5.10",
            "boot a kernel 5.10 or newer",
        ),
        Some(version) if version > NEWEST => Finding::limited(
            value,
            "newer than 7.3, the last kernel tried; a probe that no longer fits is reported",
            "compare the outcomes that `cil-trace probes` shows",
        ),
        Some(_) => Finding::ok(value),
    }
}

fn privileges(facts: &EnvironmentFacts) -> Finding {
    let held = |capability| facts.capabilities & capability != 0;
    let named = [
        ("CAP_BPF", BPF),
        ("CAP_PERFMON", PERFMON),
        ("CAP_SYS_ADMIN", SYS_ADMIN),
        ("CAP_SYSLOG", SYSLOG),
    ]
    .map(|(name, bit)| format!("{name} {}", if held(bit) { "yes" } else { "no" }));
    let value = format!("uid {}, {}", facts.uid, named.join(", "));
    if !(held(SYS_ADMIN) || held(BPF) && held(PERFMON)) {
        Finding::missing(
            value,
            "programs cannot be loaded; report, compare, flamegraph and export work without",
            "run it with sudo, or grant it: setcap cap_bpf,cap_perfmon,cap_syslog+ep cil-trace",
        )
    } else if !held(SYSLOG) {
        Finding::limited(
            value,
            "kernel addresses are hidden, so causes told by the calling function are unknown",
            "add CAP_SYSLOG: setcap cap_bpf,cap_perfmon,cap_syslog+ep cil-trace, or run it with sudo",
        )
    } else {
        Finding::ok(value)
    }
}

fn namespaces(facts: &EnvironmentFacts) -> Finding {
    let place = facts.container.as_deref();
    let value = place.map_or("no container".to_owned(), |mark| {
        format!("container ({mark})")
    });
    if !facts.initial_user_namespace {
        Finding::missing(
            format!("{value}, own user namespace"),
            "the kernel does not accept capabilities of a user namespace for loading programs",
            "run it on the host, or as root of the host: docker run --privileged --pid=host",
        )
    } else if !facts.initial_pid_namespace {
        Finding::limited(
            format!("{value}, own pid namespace"),
            "process numbers differ from the kernel's: -p and the workload's share are wrong",
            "run it on the host, or with the host's processes: docker run --pid=host",
        )
    } else {
        Finding::ok(format!("{value}, the machine's process numbers"))
    }
}

fn lockdown(facts: &EnvironmentFacts) -> Finding {
    match facts.lockdown.as_deref() {
        Some("confidentiality") => Finding::missing(
            "confidentiality",
            "BPF programs may not read kernel memory",
            "boot with lockdown=integrity or less, or turn Secure Boot off",
        ),
        Some(mode) => Finding::ok(mode),
        None => Finding::limited(
            "unknown: /sys/kernel/security/lockdown cannot be read",
            "if it is `confidentiality`, programs are refused",
            "mount -t securityfs securityfs /sys/kernel/security",
        ),
    }
}

fn configuration(facts: &EnvironmentFacts) -> Finding {
    let Some(set) = &facts.config else {
        return Finding::limited(
            "unknown: neither /proc/config.gz nor /boot/config-* can be read",
            "reasons for what the kernel lacks cannot be named",
            "modprobe configs, or install the kernel package's configuration",
        );
    };
    let off: Vec<&str> = OPTIONS
        .iter()
        .copied()
        .filter(|&option| !set.contains_key(option))
        .collect();
    if off.is_empty() {
        return Finding::ok("all that is wanted is set");
    }
    let value = format!("not set: {}", off.join(", "));
    if off.iter().any(|option| option.starts_with("CONFIG_BPF_")) {
        Finding::missing(
            value,
            "programs cannot be loaded or attached",
            "boot a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_EVENTS=y",
        )
    } else {
        Finding::ok(value).note("what follows stands at the checks below")
    }
}

fn kernel_btf(facts: &EnvironmentFacts) -> Finding {
    if facts.kernel_btf {
        return Finding::ok("/sys/kernel/btf/vmlinux");
    }
    Finding::missing(
        "/sys/kernel/btf/vmlinux cannot be read",
        "offsets of the kernel's structures are unknown",
        match option(facts, "CONFIG_DEBUG_INFO_BTF") {
            Some(true) => "mount -t sysfs sysfs /sys (the kernel has BTF)",
            _ => "boot a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels have it",
        },
    )
}

fn xfs(facts: &EnvironmentFacts) -> Finding {
    match facts.xfs {
        XfsSupport::BuiltIn => Finding::ok("built in"),
        XfsSupport::Module => Finding::ok("module, loaded"),
        XfsSupport::Absent => Finding::missing(
            "not in /proc/filesystems",
            "there is nothing to trace, and its tracepoints do not exist",
            match option(facts, "CONFIG_XFS_FS") {
                Some(false) => "boot a kernel with CONFIG_XFS_FS",
                _ => "modprobe xfs",
            },
        ),
    }
}

fn xfs_btf(facts: &EnvironmentFacts) -> Finding {
    match (facts.xfs, facts.xfs_btf, facts.kernel_btf) {
        (XfsSupport::BuiltIn, _, true) => Finding::ok("in the kernel's"),
        (_, true, true) => Finding::ok("/sys/kernel/btf/xfs"),
        (XfsSupport::Absent, ..) => Finding::limited(
            "none, as XFS is not loaded",
            "offsets of XFS structures are unknown",
            "modprobe xfs",
        ),
        (.., false) => Finding::limited(
            "none without the kernel's",
            "offsets of XFS structures are unknown",
            "",
        ),
        _ if facts
            .xfs_build
            .as_deref()
            .and_then(Layout::of_build)
            .is_some() =>
        {
            Finding::ok("none, but the offsets of this build are known")
                .note("fentry cannot attach to XFS; kprobes do")
        }
        _ => Finding::limited(
            "/sys/kernel/btf/xfs cannot be read",
            "offsets of XFS structures are unknown, and fentry cannot attach to XFS",
            "boot a kernel with CONFIG_DEBUG_INFO_BTF_MODULES=y (Debian's have it since 6.1)",
        ),
    }
}

fn xfs_mounts(facts: &EnvironmentFacts) -> Finding {
    if facts.xfs_mounts.is_empty() {
        return Finding::missing(
            "none",
            "there is nothing to trace",
            "mount -t xfs DEVICE DIRECTORY",
        );
    }
    Finding::ok(facts.xfs_mounts.join(", "))
}

fn kprobes(facts: &EnvironmentFacts) -> Finding {
    if let Some(number) = facts.kprobe_type {
        return Finding::ok(format!("kprobes, event source {number}"));
    }
    Finding::limited(
        "no kprobes: /sys/bus/event_source/devices/kprobe/type does not exist",
        "what has no tracepoint for its end is approximated or absent: log forces' latency, inode \
         locks' waits",
        match option(facts, "CONFIG_KPROBES") {
            Some(true) => "mount -t sysfs sysfs /sys (the kernel has kprobes)",
            _ => "boot a kernel with CONFIG_KPROBES=y and CONFIG_KPROBE_EVENTS=y",
        },
    )
}

fn kptr_restrict(facts: &EnvironmentFacts) -> Finding {
    match facts.kptr_restrict {
        Some(value @ (0 | 1)) => Finding::ok(value.to_string()),
        value => Finding::limited(
            value.map_or("unknown".to_owned(), |value| value.to_string()),
            "/proc/kallsyms shows no addresses, so causes told by the calling function are unknown",
            "sysctl kernel.kptr_restrict=1",
        ),
    }
}

fn perf_event_paranoid(facts: &EnvironmentFacts) -> Finding {
    let value = facts.perf_event_paranoid;
    let text = value.map_or("unknown".to_owned(), |value| value.to_string());
    if may_load(facts) {
        return Finding::ok(text).note("not asked with these privileges");
    }
    match value {
        Some(..=1) => Finding::ok(text),
        _ => Finding::limited(
            text,
            "the kernel cannot be sampled without privileges",
            "run it with sudo, or sysctl kernel.perf_event_paranoid=1",
        ),
    }
}

fn unprivileged_bpf(facts: &EnvironmentFacts) -> Finding {
    let value = facts.unprivileged_bpf_disabled;
    let text = value.map_or("unknown".to_owned(), |value| value.to_string());
    Finding::ok(text).note("tracing programs need privileges whatever its value")
}

fn memlock(facts: &EnvironmentFacts) -> Finding {
    let value = facts
        .memlock
        .map_or("unlimited".to_owned(), |bytes| format!("{bytes} bytes"));
    let counted = version(&facts.release).is_some_and(|version| version < NO_MEMLOCK);
    match (counted, facts.memlock) {
        (false, _) => Finding::ok(value).note("not asked for BPF since 5.11"),
        (true, None) => Finding::ok(value),
        (true, Some(_)) => Finding::limited(
            value,
            "before 5.11 maps count against it; it is raised at the start, which needs \
             CAP_SYS_RESOURCE",
            "ulimit -l unlimited",
        ),
    }
}

fn tracefs(facts: &EnvironmentFacts) -> Finding {
    const PURPOSE: &str = "only tests read it, to compare with ftrace's own count";
    match &facts.tracefs {
        Some(path) => Finding::ok(path.to_string_lossy()).note(PURPOSE),
        None => Finding::ok("not mounted").note(PURPOSE),
    }
}

fn cgroup(facts: &EnvironmentFacts) -> Finding {
    let value = match facts.cgroup {
        Cgroup::V2 => "v2",
        Cgroup::V1 => "v1",
        Cgroup::Hybrid => "v1 and v2 (hybrid)",
        Cgroup::None => "not mounted",
    };
    Finding::ok(value).note("any will do: the workload is told apart by descent")
}
