//! A program of aya's: loaded, attached, taken out again.

use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{BtfTracePoint, FEntry, FExit, KProbe, PerfEvent, ProgramError, RawTracePoint};
use aya::util::online_cpus;
use aya::{Btf, programs};
use cil_trace_core::probes::{Attach, Program};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// One of the table, beside what aya holds of it.
pub type Pair<'a> = (&'static Program, &'a mut programs::Program);

/// Loads programs, on every CPU: the verifier takes its time for each and looks at several at once.
///
/// The errors of those that are not loaded, by name.
pub fn load_all(
    pairs: Vec<Pair<'_>>,
    btf: &Btf,
) -> impl Iterator<Item = (&'static str, ProgramError)> + use<> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(pairs);
    let work = || {
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut errors = Vec::new();
        while let Some((program, found)) = next() {
            if let Err(error) = load(program, found, btf) {
                errors.push((program.name, error));
            }
        }
        errors
    };
    let errors: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
        joined.flatten().flatten().collect()
    });
    errors.into_iter()
}

/// Loads a program.
///
/// # Errors
///
/// What the kernel or aya says.
pub fn load(
    program: &Program,
    found: &mut programs::Program,
    btf: &Btf,
) -> Result<(), ProgramError> {
    let target = program.target;
    match program.attach {
        Attach::RawTracepoint => <&mut RawTracePoint>::try_from(found)?.load(),
        Attach::BtfTracepoint => <&mut BtfTracePoint>::try_from(found)?.load(target, btf),
        Attach::Kprobe | Attach::Kretprobe => <&mut KProbe>::try_from(found)?.load(),
        Attach::Fentry => <&mut FEntry>::try_from(found)?.load(target, btf),
        Attach::Fexit => <&mut FExit>::try_from(found)?.load(target, btf),
        Attach::PerfEvent => <&mut PerfEvent>::try_from(found)?.load(),
        // Not a program.
        Attach::PerfRecords => Err(ProgramError::NotLoaded),
    }
}

/// Attaches what is loaded to its target; kprobes to each of `symbols`.
///
/// # Errors
///
/// What the kernel or aya says.
pub fn attach(
    program: &Program,
    found: &mut programs::Program,
    symbols: &[&str],
    sampling_hz: u32,
) -> Result<(), ProgramError> {
    match program.attach {
        Attach::RawTracepoint => {
            let found = <&mut RawTracePoint>::try_from(found)?;
            found.attach(program.target).map(drop)
        }
        Attach::BtfTracepoint => <&mut BtfTracePoint>::try_from(found)?.attach().map(drop),
        Attach::Kprobe | Attach::Kretprobe => {
            let found = <&mut KProbe>::try_from(found)?;
            let mut symbols = symbols.iter();
            symbols.try_for_each(|symbol| found.attach(symbol, 0).map(drop))
        }
        Attach::Fentry => <&mut FEntry>::try_from(found)?.attach().map(drop),
        Attach::Fexit => <&mut FExit>::try_from(found)?.attach().map(drop),
        Attach::PerfEvent => {
            let found = <&mut PerfEvent>::try_from(found)?;
            let cpus = online_cpus().map_err(|(_, error)| ProgramError::IOError(error))?;
            cpus.into_iter().try_for_each(|cpu| {
                let attached = found.attach(
                    PerfEventConfig::Software(SoftwareEvent::CpuClock),
                    PerfEventScope::AllProcessesOneCpu { cpu },
                    SamplePolicy::Frequency(u64::from(sampling_hz)),
                    false,
                );
                attached.map(drop)
            })
        }
        Attach::PerfRecords => Err(ProgramError::NotLoaded),
    }
}

/// Takes a program out of the kernel, because its way is not taken after all.
pub fn unload(program: &Program, found: &mut programs::Program) {
    use programs::Program as Loaded;
    let unloaded = match found {
        Loaded::RawTracePoint(found) => found.unload(),
        Loaded::BtfTracePoint(found) => found.unload(),
        Loaded::KProbe(found) => found.unload(),
        Loaded::FEntry(found) => found.unload(),
        Loaded::FExit(found) => found.unload(),
        Loaded::PerfEvent(found) => found.unload(),
        _ => Ok(()),
    };
    // It may not have been loaded at all.
    if let Err(error) = unloaded {
        log::debug!("unloading {}: {error}", program.name);
    }
}
