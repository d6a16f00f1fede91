//! Loads and attaches programs, and tells what they cost.

use super::bpf::Rejected;
use super::kernel::RunningKernel;
use super::module::{ModulePrograms, Refusal};
use crate::symbols::Records;
use aya::Ebpf;
use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{BtfTracePoint, FEntry, FExit, KProbe, PerfEvent, ProgramError, RawTracePoint};
use aya::util::online_cpus;
use cil_trace_core::probes::{Attach, Home, Obstacle, Place, Program, Site};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

/// Takes programs into the kernel.
pub struct Attacher<'a> {
    ebpf: &'a mut Ebpf,
    object: &'static [u8],
    kernel: &'a RunningKernel,
    sampling_hz: u32,
    records: Option<Records>,
    /// Made when a module's program is first asked for.
    modules: Option<ModulePrograms>,
    attached: BTreeMap<&'static str, Attached>,
}

/// A program that is attached, together with what [`Ebpf`] holds of it.
pub struct Attached {
    /// The program.
    pub program: &'static Program,
    fd: OwnedFd,
    /// What keeps it attached, unless that is with [`Ebpf`].
    _link: Option<OwnedFd>,
}

/// What the kernel says of a program, as far as it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Nanoseconds in the program, while run times are counted.
    pub run_ns: u64,
    /// Runs, likewise.
    pub runs: u64,
    /// Runs left out because another run was under way on the CPU; kernels before 5.12 do not
    /// count them.
    pub left_out: u64,
    /// Its number in the kernel.
    pub id: u32,
}

impl Attached {
    /// Whether it may have a kprobe's or kretprobe's link.
    #[must_use]
    pub fn is_kprobe(&self) -> bool {
        matches!(
            self.program.attach,
            Attach::Kprobe | Attach::Kretprobe | Attach::Inlined
        )
    }

    /// What the kernel says of it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let path = format!("/proc/self/fdinfo/{}", self.fd.as_raw_fd());
        usage(&fs::read_to_string(path).unwrap_or_default())
    }
}

fn usage(fdinfo: &str) -> Usage {
    let field = |name: &str| {
        let mut lines = fdinfo.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(known, _)| *known == name)?;
        value.trim().parse().ok()
    };
    Usage {
        run_ns: field("run_time_ns").unwrap_or(0),
        runs: field("run_cnt").unwrap_or(0),
        left_out: field("recursion_misses").unwrap_or(0),
        id: field("prog_id")
            .and_then(|id: u64| id.try_into().ok())
            .unwrap_or(0),
    }
}

impl<'a> Attacher<'a> {
    /// For the programs of `object`, of which `ebpf` was made and still holds all maps.
    pub fn new(
        ebpf: &'a mut Ebpf,
        object: &'static [u8],
        kernel: &'a RunningKernel,
        sampling_hz: u32,
    ) -> Self {
        Self {
            ebpf,
            object,
            kernel,
            sampling_hz,
            records: None,
            modules: None,
            attached: BTreeMap::new(),
        }
    }

    /// Attaches all programs of a way, or none.
    ///
    /// # Errors
    ///
    /// Why not, in words; of what the verifier says, the last line.
    pub fn way(&mut self, sites: &[Site]) -> Result<(), Obstacle> {
        let mut added = Vec::new();
        for site in sites {
            if self.attached.contains_key(site.program.name) {
                continue;
            }
            if site.program.attach == Attach::PerfRecords {
                self.records = Some(Records::open().map_err(|error| {
                    Obstacle::Failed(format!("{}: {error:#}", site.describe()))
                })?);
                continue;
            }
            match self.site(site) {
                Ok(attached) => added.push(attached),
                Err(obstacle) => {
                    self.unload(site.program);
                    for attached in added {
                        self.unload(attached.program);
                    }
                    return Err(obstacle);
                }
            }
        }
        let added = added.into_iter();
        self.attached
            .extend(added.map(|attached| (attached.program.name, attached)));
        Ok(())
    }

    /// What is attached, by name, and what perf records, if anything.
    pub fn finish(self) -> (Vec<Attached>, Option<Records>) {
        (self.attached.into_values().collect(), self.records)
    }

    fn site(&mut self, site: &Site) -> Result<Attached, Obstacle> {
        let what = site.describe();
        match &site.place {
            Place::Described(Home::Module(module)) => self.in_module(site.program, module, &what),
            Place::Tracepoint | Place::Cpus | Place::Described(Home::Vmlinux) => {
                self.by_aya(site.program, &[(site.program.target, 0)], &what)
            }
            Place::Symbols(symbols) => {
                let starts: Vec<_> = symbols.iter().map(|symbol| (symbol.as_str(), 0)).collect();
                self.by_aya(site.program, &starts, &what)
            }
            Place::Instructions(instructions) => {
                let places: Vec<_> = instructions
                    .iter()
                    .map(|at| (at.symbol.as_str(), at.offset))
                    .collect();
                self.by_aya(site.program, &places, &what)
            }
        }
    }

    fn in_module(
        &mut self,
        program: &'static Program,
        module: &str,
        what: &str,
    ) -> Result<Attached, Obstacle> {
        let modules = match &mut self.modules {
            Some(modules) => modules,
            none => {
                let made = ModulePrograms::new(self.object, self.ebpf);
                none.insert(made.map_err(|error| Obstacle::Failed(format!("{what}: {error:#}")))?)
            }
        };
        let attached = modules.attach(program, module, &self.kernel.btf);
        let attached = attached.map_err(|refusal| match refusal {
            Refusal::Rejected(Rejected { error, log }) => explain_load(&error, &log, what),
            Refusal::NotPermitted(text) => Obstacle::Refused(format!("{what}: {text}")),
            Refusal::Other(text) => Obstacle::Failed(format!("{what}: {text}")),
        })?;
        Ok(Attached {
            program,
            fd: attached.program,
            _link: Some(attached.link),
        })
    }

    fn by_aya(
        &mut self,
        program: &'static Program,
        targets: &[(&str, u64)],
        what: &str,
    ) -> Result<Attached, Obstacle> {
        self.load_by_aya(program, targets).map_err(|error| {
            log::debug!("{what}: {error:?}");
            match &error {
                ProgramError::LoadError {
                    io_error,
                    verifier_log,
                } => explain_load(io_error, &verifier_log.to_string(), what),
                error => Obstacle::Failed(format!("{what}: {}", chain(error))),
            }
        })?;
        let found = self.ebpf.program(program.name);
        let fd = found
            .and_then(|found| found.fd().ok()?.as_fd().try_clone_to_owned().ok())
            .ok_or_else(|| Obstacle::Failed(format!("{what}: no file descriptor is left")))?;
        Ok(Attached {
            program,
            fd,
            _link: None,
        })
    }

    fn load_by_aya(
        &mut self,
        program: &Program,
        targets: &[(&str, u64)],
    ) -> Result<(), ProgramError> {
        let btf = &self.kernel.loader_btf;
        let target = program.target;
        // `outcome` asks only for programs of the table, and the build's tests hold it against the
        // object.
        let found = self
            .ebpf
            .program_mut(program.name)
            .ok_or(ProgramError::NotLoaded)?;
        match program.attach {
            Attach::RawTracepoint => {
                let program = <&mut RawTracePoint>::try_from(found)?;
                program.load()?;
                program.attach(target).map(drop)
            }
            Attach::BtfTracepoint => {
                let program = <&mut BtfTracePoint>::try_from(found)?;
                program.load(target, btf)?;
                program.attach().map(drop)
            }
            Attach::Kprobe | Attach::Kretprobe | Attach::Inlined => {
                let program = <&mut KProbe>::try_from(found)?;
                program.load()?;
                targets
                    .iter()
                    .try_for_each(|&(symbol, offset)| program.attach(symbol, offset).map(drop))
            }
            Attach::Fentry => {
                let program = <&mut FEntry>::try_from(found)?;
                program.load(target, btf)?;
                program.attach().map(drop)
            }
            Attach::Fexit => {
                let program = <&mut FExit>::try_from(found)?;
                program.load(target, btf)?;
                program.attach().map(drop)
            }
            Attach::PerfEvent => {
                let program = <&mut PerfEvent>::try_from(found)?;
                program.load()?;
                let cpus = online_cpus().map_err(|(_, error)| ProgramError::IOError(error))?;
                cpus.into_iter().try_for_each(|cpu| {
                    let attached = program.attach(
                        PerfEventConfig::Software(SoftwareEvent::CpuClock),
                        PerfEventScope::AllProcessesOneCpu { cpu },
                        SamplePolicy::Frequency(u64::from(self.sampling_hz)),
                        false,
                    );
                    attached.map(drop)
                })
            }
            // Not a program.
            Attach::PerfRecords => Err(ProgramError::NotLoaded),
        }
    }

    /// Takes out what aya has loaded of a program, because its way is not taken after all.
    fn unload(&mut self, program: &Program) {
        use aya::programs::Program as Loaded;
        let unloaded = match self.ebpf.program_mut(program.name) {
            Some(Loaded::RawTracePoint(found)) => found.unload(),
            Some(Loaded::BtfTracePoint(found)) => found.unload(),
            Some(Loaded::KProbe(found)) => found.unload(),
            Some(Loaded::FEntry(found)) => found.unload(),
            Some(Loaded::FExit(found)) => found.unload(),
            Some(Loaded::PerfEvent(found)) => found.unload(),
            _ => Ok(()),
        };
        // It may not have been loaded at all.
        if let Err(error) = unloaded {
            log::debug!("unloading {}: {error}", program.name);
        }
    }
}

fn explain_load(error: &io::Error, verifier_log: &str, what: &str) -> Obstacle {
    match verdict(verifier_log) {
        Some(verdict) => Obstacle::Failed(format!("{what}: rejected by the verifier: {verdict}")),
        // Before the verifier looks at it, for programs on trampolines.
        None if error.raw_os_error() == Some(libc::EPERM) => Obstacle::Refused(format!(
            "{what}: this kernel refuses programs of this kind (EPERM)"
        )),
        None => Obstacle::Failed(format!("{what}: {error}")),
    }
}

/// An error with its causes, which aya leaves out of its texts.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The last line of the verifier's log that is not one of the statistics that close it.
fn verdict(log: &str) -> Option<&str> {
    const STATISTICS: [&str; 3] = ["processed ", "verification time ", "stack depth "];
    log.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty() && !STATISTICS.iter().any(|start| line.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::{Usage, usage, verdict};

    #[test]
    fn the_verdict_stands_before_the_statistics() {
        let log = "14: (79) r1 = *(u64 *)(r6 +0)\nR6 invalid mem access\nverification time 52 usec\n\
                   stack depth 0+0\nprocessed 8 insns (limit 1000000)\n";
        assert_eq!(verdict(log), Some("R6 invalid mem access"));
        assert_eq!(verdict(""), None);
    }

    #[test]
    fn usage_is_read_by_name() {
        let fdinfo = "pos:\t0\nflags:\t02000002\nprog_type:\t26\nprog_id:\t70\nrun_time_ns:\t1234\nrun_cnt:\t5\n\
                      recursion_misses:\t6\nverified_insns:\t2\n";
        let expected = Usage {
            run_ns: 1234,
            runs: 5,
            left_out: 6,
            id: 70,
        };
        assert_eq!(usage(fdinfo), expected);
        // 5.10 has no misses.
        assert_eq!(usage("run_cnt:\t5\n").left_out, 0);
    }
}
