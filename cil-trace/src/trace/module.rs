//! Programs on functions and tracepoints of modules, which BTF of the modules' own describes.
//!
//! aya 0.14 loads such programs for what vmlinux's BTF describes only. So the object is parsed once
//! more, with the maps that aya has made (read-only globals included), and these programs go into
//! the kernel by bpf(2).

use super::bpf::{self, Rejected, Tracing};
use crate::system::btf::KernelBtf;
use anyhow::{Context as _, Result};
use aya::Ebpf;
use aya::maps::{Map, MapData};
use aya_obj::Object;
use aya_obj::generated::bpf_attach_type;
use cil_trace_core::probes::{Attach, Program};
use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

/// The programs of the eBPF object, ready to be loaded.
pub struct ModulePrograms {
    object: Object,
    /// BTF by module.
    btf: BTreeMap<String, OwnedFd>,
}

/// A program that is attached as long as this lives.
pub struct ModuleProgram {
    /// The program.
    pub program: OwnedFd,
    /// What keeps it attached.
    pub link: OwnedFd,
}

/// Why it is not.
pub enum Refusal {
    /// The kernel did not let the program in.
    Rejected(Rejected),
    /// This process may not do what it takes.
    NotPermitted(&'static str),
    /// Something else, in words.
    Other(String),
}

impl ModulePrograms {
    /// Parses `object`, of which `ebpf` was made and still holds all maps.
    ///
    /// # Errors
    ///
    /// If the object and `ebpf` do not belong together.
    pub fn new(object: &[u8], ebpf: &Ebpf) -> Result<Self> {
        let mut object = Object::parse(object).context("cannot parse the eBPF object")?;
        let maps: Vec<_> = object
            .maps
            .iter()
            .filter_map(|(name, map)| Some((name.clone(), fd(ebpf, name)?, map.clone())))
            .collect();
        let maps = maps
            .iter()
            .map(|(name, fd, map)| (name.as_str(), fd.as_raw_fd(), map));
        let sections: HashSet<usize> = object
            .functions
            .keys()
            .map(|&(section, _)| section)
            .collect();
        object
            .relocate_maps(maps, &sections)
            .and_then(|()| object.relocate_calls(&sections))
            .context("cannot relocate the eBPF object")?;
        object.sanitize_functions(aya::features());
        Ok(Self {
            object,
            btf: BTreeMap::new(),
        })
    }

    /// Loads `program` and attaches it to its target in `module`, which `types` describe.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn attach(
        &mut self,
        program: &Program,
        module: &str,
        types: &KernelBtf,
    ) -> Result<ModuleProgram, Refusal> {
        let (kind, target) = match program.attach {
            Attach::Fentry => (
                bpf_attach_type::BPF_TRACE_FENTRY,
                types.function_id(module, program.target),
            ),
            Attach::Fexit => (
                bpf_attach_type::BPF_TRACE_FEXIT,
                types.function_id(module, program.target),
            ),
            Attach::BtfTracepoint => (
                bpf_attach_type::BPF_TRACE_RAW_TP,
                types.event_id(module, program.target),
            ),
            Attach::RawTracepoint
            | Attach::Kprobe
            | Attach::Kretprobe
            | Attach::Inlined
            | Attach::PerfEvent
            | Attach::PerfRecords => {
                return Err(Refusal::Other("not a program that needs BTF".to_owned()));
            }
        };
        let target = target.ok_or_else(|| {
            Refusal::Other(format!("the BTF of {module} has no {}", program.target))
        })?;
        let found = self.object.programs.get(program.name);
        let function = found.and_then(|found| self.object.functions.get(&found.function_key()));
        let (Some(found), Some(function)) = (found, function) else {
            let name = program.name;
            return Err(Refusal::Other(format!("this build has no program {name}")));
        };
        let (license, instructions) = (&found.license, &function.instructions);
        if !self.btf.contains_key(module) {
            let btf = bpf::module_btf(module).map_err(|error| match error.raw_os_error() {
                Some(libc::EPERM) => {
                    Refusal::NotPermitted("opening its module's BTF needs CAP_SYS_ADMIN")
                }
                _ => Refusal::Other(format!("opening the BTF of {module}: {error}")),
            })?;
            self.btf.insert(module.to_owned(), btf);
        }
        let loaded = bpf::load(&Tracing {
            name: program.name,
            license,
            instructions,
            kind,
            target,
            module: self.btf.get(module).map(OwnedFd::as_fd),
        })
        .map_err(Refusal::Rejected)?;
        let link = bpf::attach(loaded.as_fd())
            .map_err(|error| Refusal::Other(format!("attaching it: {error}")))?;
        Ok(ModuleProgram {
            program: loaded,
            link,
        })
    }
}

/// The map's, if it is of a kind that the object has.
fn fd<'a>(ebpf: &'a Ebpf, name: &str) -> Option<BorrowedFd<'a>> {
    match ebpf.map(name)? {
        Map::Array(map)
        | Map::PerCpuArray(map)
        | Map::HashMap(map)
        | Map::PerCpuHashMap(map)
        | Map::RingBuf(map) => Some(MapData::fd(map).as_fd()),
        _ => None,
    }
}
