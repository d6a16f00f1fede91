//! Which way a kernel leaves open for a probe, decided from what is known of that kernel.

use super::kernel::version;
use super::{Attach, Home, Kernel, Part, Program, Row, Way};
use crate::debuginfo::Instance;
use cil_trace_common::function::Group;
use cil_trace_common::offset::{OFFSETS, Source};

/// Where a program goes on one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// The tracepoint, by its name alone.
    Tracepoint,
    /// What this BTF describes.
    Described(Home),
    /// Entry or return of these symbols' code.
    Symbols(Vec<String>),
    /// Every CPU.
    Cpus,
    /// These instructions.
    Instructions(Vec<Instance>),
}

/// A program and where it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The program.
    pub program: &'static Program,
    /// Where it goes.
    pub place: Place,
}

impl Site {
    /// What it is attached to, as in `fexit xfs_log_force`.
    #[must_use]
    pub fn describe(&self) -> String {
        let kind = self.program.attach.name();
        match &self.place {
            Place::Symbols(symbols) => {
                let each: Vec<_> = symbols
                    .iter()
                    .map(|symbol| format!("{kind} {symbol}"))
                    .collect();
                each.join(", ")
            }
            Place::Instructions(instructions) => {
                let each: Vec<_> = instructions
                    .iter()
                    .map(|at| format!("{kind} {at} ({})", self.program.target))
                    .collect();
                each.join(", ")
            }
            _ => format!("{kind} {}", self.program.target),
        }
    }
}

/// A way that a kernel leaves open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenWay {
    /// The way.
    pub way: &'static Way,
    /// Its programs, and where they go.
    pub sites: Vec<Site>,
    /// What it does not see.
    pub gaps: Vec<String>,
    /// Why better ways are not open.
    pub instead_of: Vec<String>,
}

impl OpenWay {
    /// What is attached, and what that does not see.
    #[must_use]
    pub fn describe(&self) -> String {
        let sites: Vec<_> = self.sites.iter().map(Site::describe).collect();
        let gaps = self.gaps.iter().map(|gap| format!("; {gap}"));
        sites.join(", ") + &gaps.collect::<String>()
    }
}

/// What a kernel leaves open for a probe.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resolution {
    /// The open ways, in order of preference.
    pub open: Vec<OpenWay>,
    /// Why others are not, in order of preference.
    pub obstacles: Vec<String>,
    /// What would have to be known of this kernel's structures and is not: then none is open.
    pub unknown: Option<String>,
}

/// A row's ways, without those that are for other kernels.
pub fn ways(row: &Row, kernel: &dyn Kernel) -> impl Iterator<Item = &'static Way> {
    row.ways
        .iter()
        .filter(|way| way.only_with.is_none_or(|global| kernel.has_offset(global)))
}

/// Goes through a row's ways.
#[must_use]
pub fn resolve(row: &Row, kernel: &dyn Kernel) -> Resolution {
    let mut resolution = Resolution::default();
    for way in ways(row, kernel) {
        match open(way, kernel) {
            Ok(way) => resolution.open.push(OpenWay {
                instead_of: resolution.obstacles.clone(),
                ..way
            }),
            Err(reason) if resolution.obstacles.contains(&reason) => {}
            Err(reason) => resolution.obstacles.push(reason),
        }
    }
    if !resolution.open.is_empty() {
        resolution.unknown = unknown_layout(row, kernel);
    }
    if resolution.unknown.is_some() {
        resolution.open.clear();
    }
    resolution
}

fn open(way: &'static Way, kernel: &dyn Kernel) -> Result<OpenWay, String> {
    let mut sites = Vec::new();
    let mut gaps = Vec::new();
    for program in way.programs {
        let place = site(program, way, kernel)?;
        if let Some(gap) = gap(program, &place, kernel)
            && !gaps.contains(&gap)
        {
            gaps.push(gap);
        }
        sites.push(Site { program, place });
    }
    Ok(OpenWay {
        way,
        sites,
        gaps,
        instead_of: Vec::new(),
    })
}

/// Where a program of a way goes.
///
/// # Errors
///
/// Why it cannot be attached.
pub fn site(program: &Program, way: &Way, kernel: &dyn Kernel) -> Result<Place, String> {
    let Program { attach, target, .. } = *program;
    let absent = |what: &str| {
        if of_xfs(target) && !has_xfs(kernel) {
            NO_XFS.to_owned()
        } else {
            format!("no {what}")
        }
    };
    match attach {
        Attach::RawTracepoint => kernel
            .has_event(target)
            .then_some(Place::Tracepoint)
            .ok_or_else(|| absent(&format!("tracepoint {target}"))),
        Attach::BtfTracepoint => kernel
            .btf_of_event(target)
            .map(Place::Described)
            .ok_or_else(|| absent(&format!("BTF of a tracepoint {target}"))),
        // A kernel that loads tracing programs has perf events (BPF_EVENTS in its Kconfig).
        Attach::PerfEvent | Attach::PerfRecords => Ok(Place::Cpus),
        Attach::Inlined => by_instances(target, kernel).map_err(|reason| {
            if of_xfs(target) && !has_xfs(kernel) {
                NO_XFS.to_owned()
            } else {
                reason
            }
        }),
        Attach::Kprobe | Attach::Kretprobe | Attach::Fentry | Attach::Fexit => {
            let symbols = kernel.symbols(target);
            if symbols.is_empty() {
                return Err(absent(&format!(
                    "function {target}: it is inlined or absent"
                )));
            }
            if attach == Attach::Kprobe || attach == Attach::Kretprobe {
                by_symbols(program, way, &symbols, kernel)
            } else {
                by_trampoline(target, &symbols, kernel)
            }
        }
    }
}

/// Also while XFS is let go because none is mounted.
const NO_XFS: &str = "XFS is not loaded, or none is mounted";

fn of_xfs(name: &str) -> bool {
    name == "xlog" || name.starts_with("xfs_") || name.starts_with("xlog_")
}

/// By a tracepoint that every XFS has.
fn has_xfs(kernel: &dyn Kernel) -> bool {
    kernel.has_event("xfs_log_force")
}

/// By a member that every XFS has.
fn knows_xfs(kernel: &dyn Kernel) -> bool {
    kernel.has_offset("LOG_MOUNT")
}

fn by_instances(target: &str, kernel: &dyn Kernel) -> Result<Place, String> {
    if !kernel.has_kprobes() {
        return Err(NO_KPROBES.to_owned());
    }
    match kernel.instances(target) {
        None => Err(format!(
            "no debug information tells where {target} is inlined: {}",
            debug_information(kernel)
        )),
        Some([]) => Err(format!("the debug information has no {target}")),
        Some(instances) => Ok(Place::Instructions(instances.to_vec())),
    }
}

/// How debug information is had.
fn debug_information(kernel: &dyn Kernel) -> String {
    let release = kernel.release();
    format!(
        "install debug information (Debian's is linux-image-{release}-dbg), or name it with \
         --debuginfo PATH"
    )
}

const NO_KPROBES: &str = "this kernel has no kprobes";

/// Clones serve a way that does not read their arguments.
fn by_symbols(
    program: &Program,
    way: &Way,
    symbols: &[String],
    kernel: &dyn Kernel,
) -> Result<Place, String> {
    if !kernel.has_kprobes() {
        return Err(NO_KPROBES.to_owned());
    }
    if program.attach == Attach::Kretprobe && hides_callers(program.target, kernel) {
        return Err(format!(
            "before 5.16 no stack goes past a return probe, and who calls {} says why",
            program.target
        ));
    }
    // An end without its beginning tells nothing, so both go to the same places.
    let arguments = way.programs.iter().any(|other| {
        other.attach.to_function() && other.target == program.target && other.arguments
    });
    let usable: Vec<_> = symbols
        .iter()
        .filter(|symbol| !arguments || Part::of(symbol) == Part::Whole)
        .cloned()
        .collect();
    if usable.is_empty() {
        return Err(format!(
            "{} has only {}, whose arguments the compiler may have changed",
            program.target,
            symbols.join(", ")
        ));
    }
    Ok(Place::Symbols(usable))
}

/// Whether a return probe on a function would hide those by which causes are told. Stacks go past one
/// since 5.16 (19138af1bd88, "x86/unwind: Recover kretprobe trampoline entry").
fn hides_callers(target: &str, kernel: &dyn Kernel) -> bool {
    // Who waits for an inode's lock or makes the CIL be pushed stands behind these.
    const OTHERS: [&str; 3] = ["xfs_ilock", "xfs_ilock_nowait", "xlog_cil_commit"];
    version(kernel.release()).is_some_and(|version| version < (5, 16))
        && [Group::LogForce, Group::Fsync, Group::DirFsync]
            .iter()
            .flat_map(|group| group.symbols())
            .chain(&OTHERS)
            .any(|symbol| *symbol == target)
}

fn by_trampoline(target: &str, symbols: &[String], kernel: &dyn Kernel) -> Result<Place, String> {
    if !symbols.iter().any(|symbol| symbol == target) {
        return Err(format!(
            "{target} has only {}, which BTF does not describe",
            symbols.join(", ")
        ));
    }
    if let Some(refusal) = kernel.trampolines_refused() {
        return Err(refusal.to_owned());
    }
    kernel
        .btf_of_function(target)
        .map(Place::Described)
        .ok_or_else(|| format!("no BTF describes {target}"))
}

/// What a program does not see: clones of its function to which it does not go, names of locks.
fn gap(program: &Program, place: &Place, kernel: &dyn Kernel) -> Option<String> {
    let waits_for_a_lock =
        program.target == "contention_begin" || Group::Locking.symbols().contains(&program.target);
    if waits_for_a_lock && !kernel.has_offset("CIL_CTX_LOCK") {
        return Some("locks of XFS have no names, as no BTF describes its types".to_owned());
    }
    // Debug information knows of clones too.
    if !program.attach.to_function() || program.attach == Attach::Inlined {
        return None;
    }
    let reached = |symbol: &String| match place {
        Place::Symbols(symbols) => symbols.contains(symbol),
        _ => symbol == program.target,
    };
    let missed: Vec<_> = kernel
        .symbols(program.target)
        .into_iter()
        .filter(|symbol| !reached(symbol))
        .collect();
    (!missed.is_empty()).then(|| format!("calls of {} are not seen", missed.join(", ")))
}

/// What a probe would have to know of this kernel's structures and does not; `None` if nothing.
fn unknown_layout(row: &Row, kernel: &dyn Kernel) -> Option<String> {
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
    let row = OFFSETS.iter().find(|offset| offset.global == missing)?;
    Some(why_unknown(row.source, kernel))
}

fn why_unknown(source: Source, kernel: &dyn Kernel) -> String {
    let structure = match source {
        Source::Member { of, .. } => of,
        _ => "",
    };
    if structure.starts_with("loop_") {
        return "the module loop is not loaded, or has no work queue (before 5.14)".to_owned();
    }
    if of_xfs(structure) && !has_xfs(kernel) {
        return NO_XFS.to_owned();
    }
    if !of_xfs(structure) || knows_xfs(kernel) {
        return format!("this kernel has no {source}");
    }
    let release = kernel.release();
    let build = kernel.xfs_build().unwrap_or("without an id");
    format!(
        "neither BTF nor debug information describes {source}, and XFS's build {build} (Linux \
         {release}) is not one whose offsets are known: {}",
        debug_information(kernel)
    )
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
        fn release(&self) -> &str {
            "5.10.0-99-amd64"
        }
        fn xfs_build(&self) -> Option<&str> {
            Some("0123")
        }
        fn has_event(&self, _: &str) -> bool {
            true
        }
        fn btf_of_event(&self, _: &str) -> Option<Home> {
            Some(Home::Vmlinux)
        }
        fn symbols(&self, function: &str) -> Vec<String> {
            vec![function.to_owned()]
        }
        fn btf_of_function(&self, _: &str) -> Option<Home> {
            Some(Home::Vmlinux)
        }
        fn instances(&self, _: &str) -> Option<&[Instance]> {
            None
        }
        fn trampolines_refused(&self) -> Option<&str> {
            None
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
    fn without_the_types_of_modules_only_what_is_not_xfs_is_measured() {
        let open: Vec<_> = PROBES
            .iter()
            .filter(|row| !resolve(row, &WithoutModuleTypes).open.is_empty())
            .map(|row| row.probe)
            .collect();
        assert_eq!(
            open,
            [
                Probe::Descendants,
                Probe::FlushRequests,
                Probe::FlushEnd,
                Probe::FlushIssues,
                Probe::SpinWaits,
                Probe::RwlockWaits,
                Probe::RwsemWaits,
                Probe::MutexWaits,
                Probe::SemaphoreWaits,
                Probe::Holders,
                Probe::CpuSamples,
                Probe::OffCpu,
                Probe::UserCode,
            ]
        );
        let spins = PROBES.iter().find(|row| row.probe == Probe::SpinWaits);
        let resolution = resolve(spins.unwrap(), &WithoutModuleTypes);
        assert_eq!(
            resolution.open[0].gaps,
            ["locks of XFS have no names, as no BTF describes its types"]
        );
        let commits = PROBES.iter().find(|row| row.probe == Probe::Commits);
        let resolution = resolve(commits.unwrap(), &WithoutModuleTypes);
        assert_eq!(
            resolution.unknown.as_deref(),
            Some(
                "neither BTF nor debug information describes xfs_trans.t_mountp, and XFS's build \
                 0123 (Linux 5.10.0-99-amd64) is not one whose offsets are known: install debug \
                 information (Debian's is linux-image-5.10.0-99-amd64-dbg), or name it with \
                 --debuginfo PATH"
            )
        );
    }
}
