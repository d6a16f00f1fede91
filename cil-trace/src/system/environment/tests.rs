#![expect(
    clippy::unwrap_used,
    reason = "a failed test should stop where it fails"
)]

use super::facts::{lockdown_mode, xfs_in};
use super::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn options(set: &[&str]) -> Option<BTreeMap<String, String>> {
    let set = set.iter();
    Some(set.map(|&name| (name.to_owned(), "y".to_owned())).collect())
}

/// A 6.18 kernel without kprobes, XFS built in, root in a container of the initial namespaces.
fn without_kprobes() -> EnvironmentFacts {
    EnvironmentFacts {
        release: "6.18.44".to_owned(),
        uid: 0,
        capabilities: 0x1ff_feff_ffff,
        kernel_btf: true,
        xfs: XfsSupport::BuiltIn,
        xfs_mounts: vec!["/mnt/x (loop0)".to_owned()],
        tracefs: Some("/sys/kernel/tracing".into()),
        kptr_restrict: Some(0),
        perf_event_paranoid: Some(2),
        unprivileged_bpf_disabled: Some(2),
        memlock: Some(8 << 20),
        cgroup: Cgroup::Hybrid,
        container: Some("/.dockerenv".to_owned()),
        initial_pid_namespace: true,
        initial_user_namespace: true,
        config: options(&[
            "CONFIG_BPF_SYSCALL",
            "CONFIG_BPF_EVENTS",
            "CONFIG_DEBUG_INFO_BTF",
            "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
            "CONFIG_XFS_FS",
        ]),
        ..EnvironmentFacts::default()
    }
}

/// Debian 11: no module BTF, and BPF memory counts against RLIMIT_MEMLOCK.
fn debian_5_10() -> EnvironmentFacts {
    EnvironmentFacts {
        release: "5.10.0-46-cloud-amd64".to_owned(),
        capabilities: 0x1ff_ffff_ffff,
        kernel_btf: true,
        xfs: XfsSupport::Module,
        xfs_mounts: vec!["/data (vda1)".to_owned()],
        kprobe_type: Some(6),
        kptr_restrict: Some(0),
        perf_event_paranoid: Some(3),
        unprivileged_bpf_disabled: Some(2),
        lockdown: Some("none".to_owned()),
        memlock: Some(64 << 10),
        cgroup: Cgroup::V2,
        initial_pid_namespace: true,
        initial_user_namespace: true,
        config: options(&[
            "CONFIG_BPF_SYSCALL",
            "CONFIG_BPF_EVENTS",
            "CONFIG_DEBUG_INFO_BTF",
            "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
            "CONFIG_KPROBES",
            "CONFIG_XFS_FS",
        ]),
        ..EnvironmentFacts::default()
    }
}

/// An ordinary user in a rootless container on a locked-down kernel.
fn rootless() -> EnvironmentFacts {
    EnvironmentFacts {
        release: "6.12.117+deb13-amd64".to_owned(),
        uid: 1000,
        kptr_restrict: Some(2),
        perf_event_paranoid: Some(3),
        unprivileged_bpf_disabled: Some(1),
        lockdown: Some("confidentiality".to_owned()),
        memlock: Some(8 << 20),
        cgroup: Cgroup::V2,
        container: Some("/run/.containerenv".to_owned()),
        ..EnvironmentFacts::default()
    }
}

fn listing(facts: &EnvironmentFacts) -> String {
    let mut text = String::new();
    for check in facts.checks() {
        let status = format!("{:?}", check.status).to_lowercase();
        writeln!(text, "{status:8} {}: {}", check.name, check.value).unwrap();
        for line in [check.consequence, check.remedy.unwrap_or_default()] {
            if !line.is_empty() {
                writeln!(text, "         {line}").unwrap();
            }
        }
    }
    text
}

#[test]
fn a_kernel_without_kprobes_is_limited() {
    insta::assert_snapshot!(listing(&without_kprobes()));
}

#[test]
fn a_kernel_without_module_btf_is_limited() {
    insta::assert_snapshot!(listing(&debian_5_10()));
}

#[test]
fn a_build_whose_offsets_are_known_needs_no_module_btf() {
    let build = "72719c48bdc4eba793d48ae0ce6d0f712e44c90e".to_owned();
    let facts = EnvironmentFacts {
        xfs_build: Some(build),
        ..debian_5_10()
    };
    let checks = facts.checks();
    let check = checks.iter().find(|check| check.name == "XFS BTF").unwrap();
    assert_eq!(check.status, Status::Ok);
    assert_eq!(check.value, "none, but the offsets of this build are known");
}

#[test]
fn a_rootless_container_is_told_everything_at_once() {
    insta::assert_snapshot!(listing(&rootless()));
}

#[test]
fn whatever_is_not_ok_says_what_follows_and_all_that_is_missing_has_a_remedy() {
    for facts in [
        without_kprobes(),
        debian_5_10(),
        rootless(),
        EnvironmentFacts::default(),
        EnvironmentFacts::read(),
    ] {
        for check in facts.checks() {
            assert!(
                !check.value.is_empty() || facts.release.is_empty(),
                "{check:?}"
            );
            if check.status != Status::Ok {
                assert!(!check.consequence.is_empty(), "{check:?}");
            }
            if check.status == Status::Missing {
                assert!(check.remedy.is_some(), "{check:?}");
            }
        }
    }
}

#[test]
fn versions_are_judged_by_their_numbers() {
    for (release, status) in [
        ("5.4.0", Status::Missing),
        ("5.10.0-46", Status::Ok),
        ("5.9", Status::Missing),
        ("7.3.4+deb13", Status::Ok),
        ("7.4.0", Status::Limited),
        ("mine", Status::Limited),
    ] {
        let facts = EnvironmentFacts {
            release: release.to_owned(),
            ..without_kprobes()
        };
        assert_eq!(facts.checks()[0].status, status, "{release}");
    }
}

#[test]
fn checks_are_json_for_scripts() {
    let json = serde_json::to_value(&without_kprobes().checks()[0]).unwrap();
    let expected = serde_json::json!({
        "name": "kernel",
        "value": "6.18.44",
        "status": "ok",
        "consequence": "",
        "remedy": null,
    });
    assert_eq!(json, expected);
}

#[test]
fn proc_and_securityfs_texts_are_parsed() {
    assert_eq!(
        lockdown_mode("none [integrity] confidentiality"),
        Some("integrity")
    );
    assert_eq!(lockdown_mode("none"), None);
    let filesystems = "nodev\tsysfs\n\text4\n\txfs\n";
    assert_eq!(xfs_in(filesystems, false), XfsSupport::BuiltIn);
    assert_eq!(xfs_in(filesystems, true), XfsSupport::Module);
    assert_eq!(xfs_in("\tvxfs\nnodev\tnotxfs\n", true), XfsSupport::Absent);
}
