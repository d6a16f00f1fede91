//! What each process did and waited for, as rows of a tick.

use super::maps::Maps;
use anyhow::{Context as _, Result};
use cil_trace_common::lock::ProcessWait;
use cil_trace_common::process::Process;
use cil_trace_core::decode;
use cil_trace_core::tick::ProcessRow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Reads the rows that have changed since they were read before.
///
/// A process that has ended leaves the maps, and what it did is kept here, in case another gets its
/// number.
#[derive(Default)]
pub struct ProcessReader {
    now: HashMap<u32, Process>,
    waits: HashMap<u32, ProcessWait>,
    ended: HashMap<u32, Sums>,
}

/// What processes did that have had a number before.
#[derive(Clone, Copy, Default)]
struct Sums {
    forces: u64,
    flushes_requested: u64,
    log_wait_ns: u64,
    lock_wait_ns: u64,
}

impl ProcessReader {
    /// The maps are another tracer's, and empty.
    pub fn begin_anew(&mut self) {
        for (pid, last) in std::mem::take(&mut self.now) {
            self.keep(pid, &last);
        }
        for (pid, last) in std::mem::take(&mut self.waits) {
            self.ended.entry(pid).or_default().lock_wait_ns += last.ns;
        }
    }

    /// What a process did, that is no longer in the map.
    fn keep(&mut self, pid: u32, last: &Process) {
        let kept = self.ended.entry(pid).or_default();
        kept.forces += last.forces;
        kept.flushes_requested += last.flushes_requested;
        kept.log_wait_ns += last.log_wait_ns;
    }

    /// The rows that have changed, by pid.
    ///
    /// # Errors
    ///
    /// If a map cannot be read.
    pub fn read(&mut self, maps: &mut Maps) -> Result<Vec<ProcessRow>> {
        let mut changed = BTreeSet::new();
        let mut ended = Vec::new();
        for entry in maps.processes.iter() {
            let (pid, now) = entry.context("cannot read the processes")?;
            if self.now.insert(pid, now) != Some(now) {
                changed.insert(pid);
            }
            if now.ended != 0 {
                ended.push(pid);
            }
        }
        let mut idle = Vec::new();
        for (place, now) in maps.process_waits.iter().enumerate() {
            if now.pid == 0 {
                continue;
            }
            if self.waits.insert(now.pid, now) == Some(now) {
                idle.push((place, now.pid));
            } else {
                changed.insert(now.pid);
            }
        }
        let rows = changed.into_iter().map(|pid| self.row(pid)).collect();
        for pid in ended {
            maps.processes
                .remove(&pid)
                .context("cannot take out a process that has ended")?;
            if let Some(last) = self.now.remove(&pid) {
                self.keep(pid, &last);
            }
        }
        // Waits are counted where nothing is known of a process's end: it is asked for of those
        // that have not waited lately.
        for (place, pid) in idle {
            if !Path::new(&format!("/proc/{pid}")).exists() {
                maps.process_waits.set(place, ProcessWait::default());
                if let Some(last) = self.waits.remove(&pid) {
                    self.ended.entry(pid).or_default().lock_wait_ns += last.ns;
                }
            }
        }
        Ok(rows)
    }

    fn row(&self, pid: u32) -> ProcessRow {
        let earlier = self.ended.get(&pid).copied().unwrap_or_default();
        let (now, wait) = (self.now.get(&pid), self.waits.get(&pid));
        let comm = now.map_or_else(|| wait.map(|wait| wait.comm), |now| Some(now.comm));
        let did = now.copied().unwrap_or_default();
        let waited = wait.copied().unwrap_or_default();
        ProcessRow {
            pid,
            comm: decode::text(&comm.unwrap_or_default()),
            workload: did.workload | waited.workload != 0,
            forces: earlier.forces + did.forces,
            flushes_requested: earlier.flushes_requested + did.flushes_requested,
            log_wait_ns: earlier.log_wait_ns + did.log_wait_ns,
            lock_wait_ns: earlier.lock_wait_ns + waited.ns,
        }
    }
}
