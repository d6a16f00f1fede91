//! What perf records of mappings, forks and execs, on every CPU.
//!
//! The kernel writes a record before the program runs its first instruction, so that nothing is
//! missed of processes that end at once; what does not fit into a buffer is counted.

use crate::system::now;
use anyhow::{Context as _, Result};
use cil_trace_core::code::{Change, CodeFile, Mapping, What};
use perf_event::data::parse::Parser;
use perf_event::data::{Comm, Exit, Fork, Lost, Mmap2, RecordMetadata, Visitor};
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use procfs::process::{MMPermissions, MMapPath, all_processes};
use std::fs;
use std::sync::Arc;

/// Room for the records of one CPU: of some two thousand mappings, as many as a hundred programs
/// make at their start.
const BUFFER: usize = 256 << 10;

/// The buffers.
pub struct Records {
    cpus: Vec<Sampler>,
    /// Taken out, and perhaps later than a record of another CPU that is not.
    waiting: Vec<Change>,
    lost: u64,
}

impl Records {
    /// Begins to record on every CPU that is online.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn open() -> Result<Self> {
        let cpus = online_cpus()?;
        let open = |&cpu: &usize| {
            let counter = Builder::new(Software::DUMMY)
                .any_pid()
                .one_cpu(cpu)
                .include_kernel()
                .enabled(true)
                .mmap(true)
                .mmap2(true)
                .comm(true)
                .comm_exec(true)
                .task(true)
                .sample_id_all(true)
                .sample(SampleFlag::TIME)
                .clockid(Clock::MONOTONIC)
                .build()?;
            counter.sampled(BUFFER)
        };
        let cpus: Result<_, _> = cpus.iter().map(open).collect();
        Ok(Self {
            cpus: cpus.context("perf_event_open(2)")?,
            waiting: Vec::new(),
            lost: 0,
        })
    }

    /// Hands over what has happened, in order of time; returns up to when it is complete.
    pub fn take(&mut self, mut each: impl FnMut(Change)) -> u64 {
        let complete = now();
        for cpu in &mut self.cpus {
            let config = cpu.as_counter().config().clone();
            while let Some(record) = cpu.next_record() {
                let body = record.to_contiguous();
                let size = u16::try_from(body.len() + 8).unwrap_or(0);
                let mut bytes = Vec::with_capacity(body.len() + 8);
                bytes.extend_from_slice(&record.ty().to_ne_bytes());
                bytes.extend_from_slice(&record.misc().to_ne_bytes());
                bytes.extend_from_slice(&size.to_ne_bytes());
                bytes.extend_from_slice(&body);
                match Parser::new(bytes.as_slice(), config.clone()).parse_record(Reading) {
                    Ok(Read::Change(change)) => self.waiting.push(change),
                    Ok(Read::Lost(count)) => self.lost += count,
                    Ok(Read::Other) => {}
                    Err(error) => {
                        log::debug!("a record of perf: {error}");
                        self.lost += 1;
                    }
                }
            }
        }
        self.waiting.sort_by_key(|change| change.at_ns);
        let ready = self
            .waiting
            .partition_point(|change| change.at_ns <= complete);
        self.waiting.drain(..ready).for_each(&mut each);
        complete
    }

    /// Records that did not fit or could not be read, so far.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

fn online_cpus() -> Result<Vec<usize>> {
    let path = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    cpu_list(&text).with_context(|| format!("{path}: {text}"))
}

/// `0-3,8` as the kernel writes it.
fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

enum Read {
    Change(Change),
    Lost(u64),
    Other,
}

struct Reading;

impl Reading {
    fn change(pid: u32, metadata: &RecordMetadata, what: What) -> Read {
        Read::Change(Change {
            pid,
            at_ns: metadata.sample_id().time().unwrap_or(0),
            what,
        })
    }
}

impl<'a> Visitor<'a> for Reading {
    type Output = Read;

    fn visit_unimplemented(self, _: RecordMetadata) -> Read {
        Read::Other
    }

    fn visit_mmap2(self, record: Mmap2<'a>, metadata: RecordMetadata) -> Read {
        let path = String::from_utf8_lossy(&record.filename)
            .trim_end_matches('\0')
            .to_owned();
        let mapping = Mapping {
            start: record.addr,
            end: record.addr.saturating_add(record.len),
            file_offset: record.pgoff,
            file: Arc::new(CodeFile {
                path,
                inode: record.ino().unwrap_or(0),
            }),
        };
        Self::change(record.pid, &metadata, What::Mapped(mapping))
    }

    fn visit_comm(self, record: Comm<'a>, metadata: RecordMetadata) -> Read {
        /// `PERF_RECORD_MISC_COMM_EXEC` (linux/perf_event.h).
        const EXEC: u16 = 1 << 13;
        if metadata.misc() & EXEC == 0 {
            return Read::Other;
        }
        Self::change(record.pid, &metadata, What::Executed)
    }

    fn visit_fork(self, record: Fork, metadata: RecordMetadata) -> Read {
        if record.pid == record.ppid {
            return Read::Other;
        }
        let parent = record.ppid;
        Self::change(record.pid, &metadata, What::Forked { parent })
    }

    fn visit_exit(self, record: Exit, metadata: RecordMetadata) -> Read {
        if record.pid != record.tid {
            return Read::Other;
        }
        Self::change(record.pid, &metadata, What::Exited)
    }

    fn visit_lost(self, record: Lost, _: RecordMetadata) -> Read {
        Read::Lost(record.lost)
    }
}

/// What every process has mapped now, as changes before all others.
pub fn mapped_now() -> Vec<Change> {
    let Ok(processes) = all_processes() else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    for process in processes.flatten() {
        // Kernel threads have none, and a process may end meanwhile.
        let Ok(maps) = process.maps() else { continue };
        let executable = maps
            .into_iter()
            .filter(|map| map.perms.contains(MMPermissions::EXECUTE));
        changes.extend(executable.map(|map| {
            let path = match map.pathname {
                MMapPath::Path(path) => path.to_string_lossy().into_owned(),
                MMapPath::Vdso => "[vdso]".to_owned(),
                MMapPath::Vsyscall => "[vsyscall]".to_owned(),
                _ => "//anon".to_owned(),
            };
            Change {
                pid: process.pid().cast_unsigned(),
                at_ns: 0,
                what: What::Mapped(Mapping {
                    start: map.address.0,
                    end: map.address.1,
                    file_offset: map.offset,
                    file: Arc::new(CodeFile {
                        path,
                        inode: map.inode,
                    }),
                }),
            }
        }));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::cpu_list;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-2,8,10-11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(cpu_list("0\n"), Some(vec![0]));
        assert_eq!(cpu_list(""), None);
    }
}
