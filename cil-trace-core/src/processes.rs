//! What processes did so far, from readings of a map that holds only those that run.
//!
//! A session may last for weeks and see millions of processes, so only so many that have ended keep
//! a row of their own; the others become one, so that the sums stay whole. Knows no map.

use crate::tick::ProcessRow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Ended processes that have rows of their own, at most; some 1 MB.
const MOST: usize = 8_192;

/// Ended processes that keep them when there are more: those that waited longest for the log, then
/// those that forced it most.
const LEAST: usize = MOST / 2;

/// Where something is read of a process. It may be let go here while it is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// What it did to the log. Its word counts for the name.
    Log,
    /// How long it waited for locks.
    Locks,
}

/// All processes of a session.
#[derive(Debug, Default)]
pub struct Processes {
    /// As last read, by [`Source`] and process id.
    running: [HashMap<u32, ProcessRow>; 2],
    /// Those read with something new.
    changed: BTreeSet<u32>,
    /// By process id, which others may have had before.
    ended: HashMap<u32, ProcessRow>,
    /// Of those without rows of their own: other processes, and the workload's.
    merged: [Merged; 2],
}

#[derive(Clone, Debug, Default)]
struct Merged {
    processes: u64,
    row: Option<ProcessRow>,
}

impl Processes {
    /// Notes what was read of a process: its sums since it came in there. Whether it is new.
    pub fn note(&mut self, source: Source, now: ProcessRow) -> bool {
        let pid = now.pid;
        let running = &mut self.running[source as usize];
        if running.get(&pid) == Some(&now) {
            return false;
        }
        running.insert(pid, now);
        self.changed.insert(pid);
        true
    }

    /// The rows that have changed since the last call, by process id, with sums since the session's
    /// start.
    pub fn changed(&mut self) -> Vec<ProcessRow> {
        let changed = std::mem::take(&mut self.changed);
        let mut rows: Vec<_> = changed.into_iter().map(|pid| self.row(pid)).collect();
        rows.extend(self.merge());
        rows.sort_by_key(|row| row.pid);
        rows
    }

    fn row(&self, pid: u32) -> ProcessRow {
        let mut row = self.ended.get(&pid).cloned().unwrap_or(ProcessRow {
            pid,
            ..ProcessRow::default()
        });
        let now = |source: Source| self.running[source as usize].get(&pid);
        let now = [now(Source::Locks), now(Source::Log)].into_iter().flatten();
        let mut workload = false;
        for now in now {
            row.add(now);
            workload |= now.workload;
        }
        row.workload = workload;
        row
    }

    /// The process is no longer there.
    pub fn let_go(&mut self, source: Source, pid: u32) {
        let Some(last) = self.running[source as usize].remove(&pid) else {
            return;
        };
        let row = self.ended.entry(pid).or_insert_with(|| ProcessRow {
            pid,
            ..ProcessRow::default()
        });
        let workload = row.workload | last.workload;
        row.add(&last);
        row.workload = workload;
    }

    /// What is read next is of other maps, which are empty.
    pub fn begin_anew(&mut self) {
        for source in [Source::Log, Source::Locks] {
            let all: Vec<u32> = self.running[source as usize].keys().copied().collect();
            for pid in all {
                self.let_go(source, pid);
            }
        }
    }

    /// Merges the rows of ended processes if they are too many; what changes by that.
    fn merge(&mut self) -> Vec<ProcessRow> {
        if self.ended.len() <= MOST {
            return Vec::new();
        }
        // Where another process has the number, the row is also its.
        let idle = self.ended.values();
        let mut idle: Vec<_> = idle
            .filter(|row| !self.running.iter().any(|map| map.contains_key(&row.pid)))
            .map(|row| {
                (
                    Reverse((row.log_wait_ns, row.forces, row.flushes_requested)),
                    row.pid,
                )
            })
            .collect();
        idle.sort_unstable();
        let mut changed = Vec::new();
        for (_, pid) in idle.into_iter().skip(LEAST) {
            let Some(row) = self.ended.remove(&pid) else {
                continue;
            };
            self.merged[usize::from(row.workload)].add(&row);
            changed.push(ProcessRow::moved(pid));
        }
        changed.extend(self.merged.iter().filter_map(|merged| merged.row.clone()));
        changed
    }
}

impl Merged {
    fn add(&mut self, row: &ProcessRow) {
        self.processes += 1;
        let named = ProcessRow {
            pid: ProcessRow::MERGED + u32::from(row.workload),
            comm: format!("({} that ended)", self.processes),
            ..row.clone()
        };
        self.row = Some(match self.row.take() {
            Some(before) => sum(before, &named),
            None => named,
        });
    }
}

fn sum(mut earlier: ProcessRow, later: &ProcessRow) -> ProcessRow {
    earlier.add(later);
    earlier
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, Keep};
    use crate::model::Model;
    use crate::session::Header;
    use crate::tick::Tick;
    use std::collections::BTreeMap;

    fn row(pid: u32, forces: u64, workload: bool) -> ProcessRow {
        ProcessRow {
            pid,
            comm: "sh".to_owned(),
            workload,
            forces,
            ..ProcessRow::default()
        }
    }

    /// One reading; those of which it is said end with it.
    fn read(processes: &mut Processes, now: &[(ProcessRow, bool)]) -> Vec<ProcessRow> {
        for (row, _) in now {
            processes.note(Source::Log, row.clone());
        }
        let changed = processes.changed();
        for (row, _) in now.iter().filter(|(_, ended)| *ended) {
            processes.let_go(Source::Log, row.pid);
        }
        changed
    }

    #[test]
    fn a_number_that_comes_again_goes_on_with_its_sums() {
        let mut processes = Processes::default();
        let mut forces = |forces, ended| {
            let rows = read(&mut processes, &[(row(7, forces, false), ended)]);
            rows.iter().map(|row| row.forces).collect::<Vec<_>>()
        };
        assert_eq!(forces(3, true), [3]);
        assert_eq!(forces(2, false), [5]);
        assert!(forces(2, false).is_empty(), "nothing new");
        processes.begin_anew();
        let later = read(&mut processes, &[(row(7, 1, false), false)]);
        assert_eq!(later, [row(7, 6, false)]);
    }

    #[test]
    fn a_row_is_of_both_sources() {
        let mut processes = Processes::default();
        let waited = ProcessRow {
            comm: "thread".to_owned(),
            lock_wait_ns: 9,
            ..row(7, 0, true)
        };
        assert!(processes.note(Source::Log, row(7, 3, false)));
        assert!(processes.note(Source::Locks, waited.clone()));
        assert!(!processes.note(Source::Locks, waited));
        let both = ProcessRow {
            lock_wait_ns: 9,
            ..row(7, 3, true)
        };
        assert_eq!(processes.changed(), std::slice::from_ref(&both));
        processes.let_go(Source::Log, 7);
        processes.let_go(Source::Locks, 7);
        assert!(processes.changed().is_empty());
        processes.note(Source::Log, row(7, 1, true));
        assert_eq!(processes.changed(), [ProcessRow { forces: 4, ..both }]);
    }

    #[test]
    fn rows_stay_bounded_and_sums_whole() {
        let mut processes = Processes::default();
        let mut model = Model::new(Header::default());
        let mut history = History::new(Header::default(), Keep { ns: 3, ticks: 3 });
        let mut sums = BTreeMap::from([(false, 0), (true, 0)]);
        for tick in 0..100_u32 {
            let pid = |n: u32| 1 + tick * 1_000 + n;
            let mut now = vec![(row(1_000_000, u64::from(tick), false), false)];
            now.extend((0..1_000).map(|n| (row(pid(n), u64::from(n), n % 2 == 0), true)));
            for (row, _) in now.iter().filter(|(_, ended)| *ended) {
                *sums.entry(row.workload).or_default() += row.forces;
            }
            let tick = Tick {
                index: tick.into(),
                start_ns: tick.into(),
                end_ns: u64::from(tick) + 1,
                processes: read(&mut processes, &now),
                ..Tick::default()
            };
            model.apply(&tick);
            history.push(tick);
            let index = history.bounds().map_or(0, |(_, last)| last);
            let of_tick = history.model(crate::history::Span::Tick, index);
            let forces: u64 = of_tick.processes().map(|row| row.forces).sum();
            let most = 499_500 + u64::from(index > 0);
            assert_eq!(forces, most, "merging rows is no work of tick {index}");
        }
        let rows: Vec<_> = model.processes().collect();
        assert!(rows.len() <= MOST + 1_001 + 2, "{}", rows.len());
        assert!(rows.iter().any(|row| row.pid == 1_000_000));
        for (workload, sum) in sums {
            let rows = rows.iter().filter(|row| row.workload == workload);
            let own = rows.map(|row| row.forces).sum::<u64>();
            let running = if workload { 0 } else { 99 };
            assert_eq!(own, sum + running, "workload: {workload}");
        }
        let merged = rows.iter().filter(|row| row.pid >= ProcessRow::MERGED);
        let names: Vec<_> = merged.map(|row| row.comm.as_str()).collect();
        assert_eq!(names.len(), 2);
        assert!(
            names.iter().all(|name| name.ends_with(" that ended)")),
            "{names:?}"
        );
    }
}
