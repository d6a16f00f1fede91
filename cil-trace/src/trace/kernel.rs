//! What this kernel allows, as far as it decides how probes are attached.

use super::bpf::{self, Tracing};
use crate::system::btf::{KernelBtf, Offsets};
use crate::system::build_id;
use crate::system::debuginfo::{self, Wanted, XFS_SOURCES};
use crate::system::kallsyms::Kallsyms;
use anyhow::{Context as _, Result, anyhow};
use aya::Btf;
use aya_obj::btf::BtfKind;
use aya_obj::generated::{bpf_attach_type, bpf_insn};
use cil_trace_common::offset::OFFSETS;
use cil_trace_core::debuginfo::Instance;
use cil_trace_core::offsets::Layout;
use cil_trace_core::probes::facts::{
    Inventory, KernelFacts, is_relevant_event, is_relevant_function,
};
use cil_trace_core::probes::{Attach, Home, Kernel, PROBES};
use nix::sys::utsname::uname;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;

/// The kernel that cil-trace runs on.
pub struct RunningKernel {
    release: String,
    xfs_build: Option<String>,
    /// Its symbols.
    pub symbols: Kallsyms,
    /// Its types, by name and member.
    pub btf: KernelBtf,
    /// What the programs need of them.
    pub offsets: Offsets,
    /// vmlinux's types once more, as the loader wants them.
    pub loader_btf: Btf,
    /// Symbols of the functions that the probe table names and of tracepoints, by name.
    functions: HashMap<String, Vec<String>>,
    /// Where the code of those begins that the table wants inlined, if debug information tells.
    instances: Option<BTreeMap<String, Vec<Instance>>>,
    kprobes: bool,
    trampolines_refused: Option<String>,
}

impl RunningKernel {
    /// Reads symbols and types, side by side: each takes some 50 ms, and the workload waits.
    /// `debuginfo` is where debug information is, if not at one of the usual places.
    ///
    /// # Errors
    ///
    /// If either cannot be read; the text names the remedy.
    pub fn read(debuginfo: Option<&Path>) -> Result<Self> {
        Self::read_without(None, debuginfo)
    }

    /// The same as if `module` were not loaded: nothing then holds it.
    ///
    /// # Errors
    ///
    /// Likewise.
    pub fn read_without(module: Option<&str>, debuginfo: Option<&Path>) -> Result<Self> {
        let release = uname()
            .context("uname")?
            .release()
            .to_string_lossy()
            .into_owned();
        let xfs_build = (module != Some("xfs"))
            .then(|| build_id::of_module("xfs"))
            .flatten();
        let build = xfs_build.as_deref();
        // The only sign of CONFIG_KPROBES that does not need the kernel's configuration.
        let kprobes = Path::new("/sys/bus/event_source/devices/kprobe/type").exists();
        let wanted = build.map(|build| Wanted {
            release: &release,
            build,
        });
        std::thread::scope(|scope| {
            let types = scope.spawn(|| -> Result<_> {
                let btf = KernelBtf::open_without(module)?;
                let mut offsets = btf.offsets();
                if let Some(layout) = build.and_then(Layout::of_build) {
                    offsets.complete(|global| layout.get(global));
                }
                let instances = match wanted {
                    Some(wanted) => {
                        from_debug_information(wanted, debuginfo, kprobes, &mut offsets)?
                    }
                    None => None,
                };
                let loader_btf =
                    Btf::from_sys_fs().context("cannot parse /sys/kernel/btf/vmlinux")?;
                Ok((btf, offsets, instances, loader_btf))
            });
            let mut symbols = Kallsyms::read()?;
            if let Some(module) = module {
                symbols.leave_out(module);
            }
            let functions = symbols.gather(&names());
            let (btf, offsets, instances, loader_btf) = types
                .join()
                .map_err(|_| anyhow!("reading the kernel's BTF panicked"))??;
            Ok(Self {
                release: release.clone(),
                xfs_build: xfs_build.clone(),
                symbols,
                functions,
                trampolines_refused: trampolines_refused(&loader_btf),
                btf,
                offsets,
                loader_btf,
                instances,
                kprobes,
            })
        })
    }

    /// What decides here, noted down.
    ///
    /// # Errors
    ///
    /// If the kernel does not say what it is.
    pub fn facts(&self) -> Result<KernelFacts> {
        let name = uname().context("uname")?;
        let text = |part: &OsStr| part.to_string_lossy().into_owned();
        let mut events = Inventory::new();
        let mut functions = Inventory::new();
        for (symbol, module) in self.symbols.iter() {
            let home = || module.map_or(Home::Vmlinux, Home::from);
            if let Some(event) = symbol.strip_prefix(ITERATOR) {
                if is_relevant_event(event) {
                    events.entry(home()).or_default().insert(event.to_owned());
                }
            } else if is_relevant_function(symbol) {
                functions
                    .entry(home())
                    .or_default()
                    .insert(symbol.to_owned());
            }
        }
        Ok(KernelFacts {
            release: self.release.clone(),
            architecture: text(name.machine()),
            xfs_build: self.xfs_build.clone(),
            kprobes: self.kprobes,
            trampolines_refused: self.trampolines_refused.clone(),
            events,
            functions,
            described_functions: self.btf.relevant_functions(),
            instances: self.instances.clone(),
            types: self.btf.relevant_types(),
        })
    }

    fn named(&self, name: &str) -> Vec<String> {
        match self.functions.get(name) {
            Some(symbols) => symbols.clone(),
            // Not one of the probe table's.
            None => {
                let name = HashSet::from([name.to_owned()]);
                self.symbols.gather(&name).into_values().flatten().collect()
            }
        }
    }
}

/// Completes `offsets`, and says where the code of functions begins that have been inlined: from
/// debug information, as far as there is any and it can be used.
fn from_debug_information(
    wanted: Wanted<'_>,
    named: Option<&Path>,
    kprobes: bool,
    offsets: &mut Offsets,
) -> Result<Option<BTreeMap<String, Vec<Instance>>>> {
    let undescribed = !offsets.describe_xfs();
    if !undescribed && !kprobes {
        return Ok(None);
    }
    let Some(info) = debuginfo::find(named, wanted)? else {
        return Ok(None);
    };
    if undescribed {
        let values = info.offsets(OFFSETS, XFS_SOURCES)?;
        let values: HashMap<_, _> = OFFSETS.iter().map(|row| row.global).zip(values).collect();
        offsets.complete(|global| values.get(global)?.as_ref()?.value);
    }
    let programs = PROBES
        .iter()
        .flat_map(|row| row.ways)
        .flat_map(|way| way.programs);
    let inlined: Vec<_> = programs
        .filter(|program| program.attach == Attach::Inlined)
        .map(|program| program.target)
        .collect();
    let instances = info.instances(&inlined, XFS_SOURCES)?.into_iter();
    Ok(Some(
        instances
            .map(|(function, instances)| (function.to_owned(), instances))
            .collect(),
    ))
}

/// Functions and tracepoints of the probe table.
fn names() -> HashSet<String> {
    let ways = PROBES.iter().flat_map(|row| row.ways);
    let programs = ways.flat_map(|way| way.programs);
    programs
        .map(|program| {
            if program.attach.to_function() {
                program.target.to_owned()
            } else {
                iterator(program.target)
            }
        })
        .collect()
}

/// Every tracepoint has a function of such a name since 5.10, in modules too.
const ITERATOR: &str = "__traceiter_";

fn iterator(event: &str) -> String {
    format!("{ITERATOR}{event}")
}

/// Some kernels refuse every program on a trampoline, whatever it does and whoever loads it. One
/// that refuses programs of other kinds too lacks no trampolines: the process lacks privileges.
fn trampolines_refused(btf: &Btf) -> Option<String> {
    let load = |kind, target| {
        bpf::load(&Tracing {
            name: "trial",
            license: c"GPL",
            instructions: &RETURN_0,
            kind,
            target,
            module: None,
        })
    };
    let event = btf.id_by_type_name_kind("btf_trace_sched_switch", BtfKind::Typedef);
    let function = btf.id_by_type_name_kind("vfs_fsync", BtfKind::Func);
    load(bpf_attach_type::BPF_TRACE_RAW_TP, event.ok()?).ok()?;
    let refused = load(bpf_attach_type::BPF_TRACE_FENTRY, function.ok()?).err()?;
    Some(format!(
        "this kernel refuses programs on trampolines ({})",
        refused.error
    ))
}

/// `r0 = 0; exit`
const RETURN_0: [bpf_insn; 2] = {
    const fn insn(code: u8) -> bpf_insn {
        bpf_insn {
            code,
            _bitfield_align_1: [],
            _bitfield_1: aya_obj::generated::__BindgenBitfieldUnit::new([0]),
            off: 0,
            imm: 0,
        }
    }
    [insn(0xb7), insn(0x95)]
};

impl Kernel for RunningKernel {
    fn release(&self) -> &str {
        &self.release
    }

    fn xfs_build(&self) -> Option<&str> {
        self.xfs_build.as_deref()
    }

    fn has_event(&self, name: &str) -> bool {
        !self.named(&iterator(name)).is_empty()
    }

    fn btf_of_event(&self, name: &str) -> Option<Home> {
        self.btf.home_of_event(name).map(Home::from)
    }

    fn symbols(&self, function: &str) -> Vec<String> {
        self.named(function)
    }

    fn btf_of_function(&self, name: &str) -> Option<Home> {
        self.btf.home_of_function(name).map(Home::from)
    }

    fn instances(&self, function: &str) -> Option<&[Instance]> {
        let instances = self.instances.as_ref()?.get(function);
        Some(instances.map_or(&[], Vec::as_slice))
    }

    fn has_kprobes(&self) -> bool {
        self.kprobes
    }

    fn trampolines_refused(&self) -> Option<&str> {
        self.trampolines_refused.as_deref()
    }

    fn has_offset(&self, global: &str) -> bool {
        self.offsets.get(global).is_some()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;
    use cil_trace_core::probes::resolve;

    #[test]
    fn what_is_noted_down_decides_like_the_kernel_itself() {
        let kernel = match RunningKernel::read(None) {
            Ok(kernel) => kernel,
            Err(error) => {
                eprintln!("skipped: {error:#}");
                return;
            }
        };
        let facts = serde_json::to_string(&kernel.facts().unwrap()).unwrap();
        let facts: KernelFacts = serde_json::from_str(&facts).unwrap();
        for row in PROBES {
            let name = row.probe.name();
            assert_eq!(resolve(row, &facts), resolve(row, &kernel), "{name}");
        }
        for row in OFFSETS {
            let global = row.global;
            assert_eq!(facts.offset(row), kernel.offsets.get(global), "{global}");
        }
    }
}
