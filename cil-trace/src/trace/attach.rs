//! Loads and attaches one program.

use aya::programs::{BtfTracePoint, FEntry, FExit, KProbe, ProgramError, RawTracePoint};
use aya::{Btf, Ebpf};
use cil_trace_core::probes::{Attach, Program};

/// Loads `program` into the kernel and attaches it; it stays attached as long as `ebpf` lives.
///
/// # Errors
///
/// Why not, in words; of what the verifier says, the last line.
pub fn attach(ebpf: &mut Ebpf, btf: &Btf, program: &Program) -> Result<(), Obstacle> {
    let Program {
        name,
        attach,
        target,
    } = *program;
    let found = ebpf
        .program_mut(name)
        .ok_or_else(|| Obstacle::Failed(format!("this build has no program {name}")))?;
    let result = match attach {
        Attach::RawTracepoint => <&mut RawTracePoint>::try_from(found).and_then(|program| {
            program
                .load()
                .and_then(|()| program.attach(target))
                .map(drop)
        }),
        Attach::BtfTracepoint => <&mut BtfTracePoint>::try_from(found).and_then(|program| {
            program
                .load(target, btf)
                .and_then(|()| program.attach())
                .map(drop)
        }),
        Attach::Kprobe | Attach::Kretprobe => <&mut KProbe>::try_from(found).and_then(|program| {
            program
                .load()
                .and_then(|()| program.attach(target, 0))
                .map(drop)
        }),
        Attach::Fentry => <&mut FEntry>::try_from(found).and_then(|program| {
            program
                .load(target, btf)
                .and_then(|()| program.attach())
                .map(drop)
        }),
        Attach::Fexit => <&mut FExit>::try_from(found).and_then(|program| {
            program
                .load(target, btf)
                .and_then(|()| program.attach())
                .map(drop)
        }),
    };
    result.map_err(|error| {
        log::debug!("{} {target}: {error:?}", attach.name());
        explain(&error, &format!("{} {target}", attach.name()))
    })
}

/// Takes out a program that was attached, because its way is not taken after all.
pub fn detach(ebpf: &mut Ebpf, program: &Program) {
    use aya::programs::Program as Loaded;
    let unloaded = match ebpf.program_mut(program.name) {
        Some(Loaded::RawTracePoint(found)) => found.unload(),
        Some(Loaded::BtfTracePoint(found)) => found.unload(),
        Some(Loaded::KProbe(found)) => found.unload(),
        Some(Loaded::FEntry(found)) => found.unload(),
        Some(Loaded::FExit(found)) => found.unload(),
        _ => Ok(()),
    };
    if let Err(error) = unloaded {
        log::debug!("unloading {}: {error}", program.name);
    }
}

/// Why a program is not attached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// This kernel does not let programs of its kind in.
    Refused(String),
    /// Something went wrong.
    Failed(String),
}

fn explain(error: &ProgramError, what: &str) -> Obstacle {
    let ProgramError::LoadError {
        io_error,
        verifier_log,
    } = error
    else {
        return Obstacle::Failed(format!("{what}: {error}"));
    };
    match verdict(&verifier_log.to_string()) {
        Some(verdict) => Obstacle::Failed(format!("{what}: rejected by the verifier: {verdict}")),
        // Before the verifier looks at it, for programs on trampolines.
        None if io_error.raw_os_error() == Some(libc::EPERM) => Obstacle::Refused(format!(
            "{what}: this kernel refuses programs of this kind (EPERM)"
        )),
        None => Obstacle::Failed(format!("{what}: {io_error}")),
    }
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
    use super::verdict;

    #[test]
    fn the_verdict_stands_before_the_statistics() {
        let log = "14: (79) r1 = *(u64 *)(r6 +0)\nR6 invalid mem access\nverification time 52 usec\n\
                   stack depth 0+0\nprocessed 8 insns (limit 1000000)\n";
        assert_eq!(verdict(log), Some("R6 invalid mem access"));
        assert_eq!(verdict(""), None);
    }
}
