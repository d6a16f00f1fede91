//! Which way a kernel leaves open for a probe, decided from what is known of that kernel.

use super::{Attach, Program, Row, Way};
use cil_trace_common::offset::OFFSETS;

/// What is known of a kernel, as far as it decides between ways.
pub trait Kernel {
    /// Whether a tracepoint exists, built in or in a loaded module.
    fn has_event(&self, name: &str) -> bool;
    /// Whether vmlinux's BTF describes a tracepoint.
    fn has_btf_event(&self, name: &str) -> bool;
    /// Whether a function exists under exactly this name.
    fn has_function(&self, name: &str) -> bool;
    /// Whether vmlinux's BTF describes a function.
    fn has_btf_function(&self, name: &str) -> bool;
    /// Whether kprobes can be attached.
    fn has_kprobes(&self) -> bool;
    /// Whether the offset with this name is known.
    fn has_offset(&self, global: &str) -> bool;
}

/// Why a program cannot be attached to a kernel; `None` if nothing speaks against it.
#[must_use]
pub fn obstacle(program: &Program, kernel: &dyn Kernel) -> Option<String> {
    let Program { attach, target, .. } = *program;
    match attach {
        Attach::RawTracepoint if !kernel.has_event(target) => {
            Some(format!("no tracepoint {target}"))
        }
        Attach::BtfTracepoint if !kernel.has_btf_event(target) => {
            Some(format!("vmlinux's BTF has no tracepoint {target}"))
        }
        Attach::Kprobe | Attach::Kretprobe | Attach::Fentry | Attach::Fexit
            if !kernel.has_function(target) =>
        {
            Some(format!("no function {target}: it is inlined or absent"))
        }
        Attach::Kprobe | Attach::Kretprobe if !kernel.has_kprobes() => {
            Some("this kernel has no kprobes".to_owned())
        }
        Attach::Fentry | Attach::Fexit if !kernel.has_btf_function(target) => {
            Some(format!("{target} is not in vmlinux's BTF"))
        }
        _ => None,
    }
}

/// What a probe would have to know of this kernel's structures and does not; `None` if nothing.
#[must_use]
pub fn unknown_layout(row: &Row, kernel: &dyn Kernel) -> Option<String> {
    let unknown = |list: &&[&'static str]| {
        list.iter()
            .copied()
            .find(|global| !kernel.has_offset(global))
    };
    // The last form is the oldest, and only old kernels lack the types of modules.
    let missing = row.layouts.iter().find_map(|layout| {
        let mut missing = None;
        for list in *layout {
            missing = Some(unknown(list)?);
        }
        missing
    })?;
    let what = OFFSETS
        .iter()
        .find(|offset| offset.global == missing)
        .map_or_else(|| missing.to_owned(), |offset| offset.source.to_string());
    Some(format!(
        "no BTF describes {what}: its module is not loaded, or the kernel was built without \
         CONFIG_DEBUG_INFO_BTF_MODULES (5.11 and later can have it)"
    ))
}

/// The ways that a kernel leaves open, in order of preference, and why others are not.
#[must_use]
pub fn open_ways(row: &Row, kernel: &dyn Kernel) -> (Vec<&'static Way>, Vec<String>) {
    let mut open = Vec::new();
    let mut obstacles = Vec::new();
    for way in row.ways {
        match way
            .programs
            .iter()
            .find_map(|program| obstacle(program, kernel))
        {
            None => open.push(way),
            Some(reason) => obstacles.push(reason),
        }
    }
    obstacles.dedup();
    if !open.is_empty()
        && let Some(unknown) = unknown_layout(row, kernel)
    {
        return (Vec::new(), vec![unknown]);
    }
    (open, obstacles)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;
    use crate::probes::PROBES;
    use cil_trace_common::probe::Probe;
    use std::collections::BTreeSet;

    #[test]
    fn every_probe_has_exactly_one_row() {
        let rows: Vec<_> = PROBES.iter().map(|row| row.probe).collect();
        let unique: BTreeSet<_> = rows.iter().copied().collect();
        assert_eq!(rows.len(), unique.len());
        assert_eq!(unique, Probe::ALL.iter().copied().collect());
    }

    #[test]
    fn layouts_name_offsets() {
        let lists = PROBES.iter().flat_map(|row| row.layouts).copied().flatten();
        for name in lists.copied().flatten() {
            assert!(
                OFFSETS.iter().any(|offset| offset.global == *name),
                "{name}"
            );
        }
    }

    /// A kernel with everything but what is described in the BTF of modules.
    struct WithoutModuleTypes;

    impl Kernel for WithoutModuleTypes {
        fn has_event(&self, _: &str) -> bool {
            true
        }
        fn has_btf_event(&self, _: &str) -> bool {
            true
        }
        fn has_function(&self, _: &str) -> bool {
            true
        }
        fn has_btf_function(&self, _: &str) -> bool {
            true
        }
        fn has_kprobes(&self) -> bool {
            true
        }
        fn has_offset(&self, global: &str) -> bool {
            const OF_MODULES: [&str; 9] = [
                "MOUNT", "LOG", "ICLOG", "CIL", "CTX", "TRANS", "XINODE", "ITEM", "LOOP",
            ];
            let of = global.split('_').next().unwrap_or_default();
            !OF_MODULES.contains(&of)
        }
    }

    #[test]
    fn without_the_types_of_modules_only_the_block_layer_is_measured() {
        let open: Vec<_> = PROBES
            .iter()
            .filter(|row| !open_ways(row, &WithoutModuleTypes).0.is_empty())
            .map(|row| row.probe)
            .collect();
        assert_eq!(
            open,
            [
                Probe::Descendants,
                Probe::FlushRequests,
                Probe::FlushEnd,
                Probe::FlushIssues
            ]
        );
        let commits = PROBES.iter().find(|row| row.probe == Probe::Commits);
        let (_, why) = open_ways(commits.unwrap(), &WithoutModuleTypes);
        assert_eq!(
            why,
            [
                "no BTF describes xfs_trans.t_mountp: its module is not loaded, or the kernel was \
                 built without CONFIG_DEBUG_INFO_BTF_MODULES (5.11 and later can have it)"
            ]
        );
    }
}
