//! What each process did and waited for, as rows of a tick.

use super::maps::Maps;
use anyhow::{Context as _, Result};
use cil_trace_common::lock::ProcessWait;
use cil_trace_common::process::Process;
use cil_trace_core::decode;
use cil_trace_core::processes::{Processes, Source};
use cil_trace_core::tick::ProcessRow;
use std::path::Path;

/// Reads the rows that have changed since they were read before.
///
/// A process that has ended leaves the maps.
#[derive(Default)]
pub struct ProcessReader(Processes);

impl ProcessReader {
    /// The maps are another tracer's, and empty.
    pub fn begin_anew(&mut self) {
        self.0.begin_anew();
    }

    /// The rows that have changed, by pid.
    ///
    /// # Errors
    ///
    /// If a map cannot be read.
    pub fn read(&mut self, maps: &mut Maps) -> Result<Vec<ProcessRow>> {
        let mut ended = Vec::new();
        for entry in maps.processes.iter() {
            let (pid, now) = entry.context("cannot read the processes")?;
            self.0.note(Source::Log, did(pid, &now));
            if now.ended != 0 {
                ended.push(pid);
            }
        }
        let mut idle = Vec::new();
        for (place, now) in maps.process_waits.iter().enumerate() {
            if now.pid != 0 && !self.0.note(Source::Locks, waited(&now)) {
                idle.push((place, now.pid));
            }
        }
        let rows = self.0.changed();
        for pid in ended {
            maps.processes
                .remove(&pid)
                .context("cannot take out a process that has ended")?;
            self.0.let_go(Source::Log, pid);
        }
        // Waits are counted where nothing is known of a process's end: it is asked for of those
        // that have not waited lately.
        for (place, pid) in idle {
            if !Path::new(&format!("/proc/{pid}")).exists() {
                maps.process_waits.set(place, ProcessWait::default());
                self.0.let_go(Source::Locks, pid);
            }
        }
        Ok(rows)
    }
}

fn did(pid: u32, did: &Process) -> ProcessRow {
    ProcessRow {
        pid,
        comm: decode::text(&did.comm),
        workload: did.workload != 0,
        forces: did.forces,
        flushes_requested: did.flushes_requested,
        log_wait_ns: did.log_wait_ns,
        lock_wait_ns: 0,
    }
}

fn waited(wait: &ProcessWait) -> ProcessRow {
    ProcessRow {
        pid: wait.pid,
        comm: decode::text(&wait.comm),
        workload: wait.workload != 0,
        lock_wait_ns: wait.ns,
        ..ProcessRow::default()
    }
}
