//! Loads and attaches programs, and tells what they cost.

use super::bpf::Rejected;
use super::kernel::RunningKernel;
use super::module::{ModulePrograms, Refusal};
use super::program;
use crate::symbols::Records;
use aya::Ebpf;
use aya::programs::ProgramError;
use cil_trace_core::probes::{Attach, Home, Obstacle, OpenWay, Place, Program, Site};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
    /// Why programs could not be loaded ahead.
    refused: BTreeMap<&'static str, ProgramError>,
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
        matches!(self.program.attach, Attach::Kprobe | Attach::Kretprobe)
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
            refused: BTreeMap::new(),
            attached: BTreeMap::new(),
        }
    }

    /// Loads what is going to be attached: of each probe's ways, the first that the kernel lets in.
    pub fn load_ahead(&mut self, probes: impl Iterator<Item = Vec<OpenWay>>) {
        let mut probes: Vec<_> = probes.map(VecDeque::from).collect();
        let mut seen = BTreeSet::new();
        loop {
            let sites = probes.iter().filter_map(VecDeque::front);
            let sites = sites.flat_map(|way| &way.sites).filter(|site| by_aya(site));
            let programs = sites.map(|site| (site.program.name, site.program));
            let wanted: BTreeMap<_, _> = programs.filter(|(name, _)| seen.insert(*name)).collect();
            if wanted.is_empty() {
                return;
            }
            let found = self.ebpf.programs_mut();
            let pairs = found.filter_map(|(name, found)| Some((*wanted.get(name)?, found)));
            let errors = program::load_all(pairs.collect(), &self.kernel.loader_btf);
            self.refused.extend(errors);
            let refused = |site: &Site| self.refused.contains_key(site.program.name);
            for ways in &mut probes {
                while ways
                    .front()
                    .is_some_and(|way| way.sites.iter().any(refused))
                {
                    ways.pop_front();
                }
            }
        }
    }

    /// Attaches all programs of a way, or none.
    ///
    /// # Errors
    ///
    /// Why not, in words; of what the verifier says, the last line.
    pub fn way(&mut self, sites: &[Site]) -> Result<(), Obstacle> {
        let mut added = BTreeMap::new();
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
                Ok(attached) => added.insert(site.program.name, attached),
                Err(obstacle) => {
                    for site in sites {
                        self.unload(site.program);
                    }
                    return Err(obstacle);
                }
            };
        }
        self.attached.extend(added);
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
                self.by_aya(site.program, &[site.program.target], &what)
            }
            Place::Symbols(symbols) => {
                let symbols: Vec<_> = symbols.iter().map(String::as_str).collect();
                self.by_aya(site.program, &symbols, &what)
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
        targets: &[&str],
        what: &str,
    ) -> Result<Attached, Obstacle> {
        self.attach_by_aya(program, targets).map_err(|error| {
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

    fn attach_by_aya(
        &mut self,
        program: &'static Program,
        symbols: &[&str],
    ) -> Result<(), ProgramError> {
        if let Some(error) = self.refused.remove(program.name) {
            return Err(error);
        }
        // `outcome` asks only for programs of the table, and the build's tests hold it against the
        // object.
        let found = self.ebpf.program_mut(program.name);
        let found = found.ok_or(ProgramError::NotLoaded)?;
        if found.fd().is_err() {
            program::load(program, found, &self.kernel.loader_btf)?;
        }
        program::attach(program, found, symbols, self.sampling_hz)
    }

    /// Takes a program out that serves no way that is taken.
    fn unload(&mut self, program: &Program) {
        if !self.attached.contains_key(program.name)
            && let Some(found) = self.ebpf.program_mut(program.name)
        {
            program::unload(program, found);
        }
    }
}

/// Whether aya loads it.
fn by_aya(site: &Site) -> bool {
    site.program.attach != Attach::PerfRecords
        && !matches!(site.place, Place::Described(Home::Module(_)))
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
