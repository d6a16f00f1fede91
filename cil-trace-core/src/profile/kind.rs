//! The words of each kind of stacks: what it is called, what one of it is, what it can be weighed by.

use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;

/// What the width of a stack stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Weight {
    /// How often.
    Count,
    /// How long, nanoseconds.
    Time,
    /// How much, bytes.
    Bytes,
}

impl Weight {
    /// Every weight.
    pub const ALL: [Self; 3] = [Self::Count, Self::Time, Self::Bytes];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Time => "time",
            Self::Bytes => "bytes",
        }
    }
}

/// What a kind of stacks means.
#[derive(Debug)]
pub struct Words {
    /// The kind.
    pub kind: StackKind,
    /// For lists of kinds.
    pub help: &'static str,
    /// Title of its pictures.
    pub title: &'static str,
    /// Plural of what is counted.
    pub unit: &'static str,
    /// What they are.
    pub they_are: &'static str,
    /// What their time is.
    pub time_is: &'static str,
    /// What their bytes are, if they have any.
    pub bytes_are: Option<&'static str>,
    /// The probe that counts, and the one that measures the time; `None` while there is none.
    pub probes: Option<[Probe; 2]>,
    /// What else counts the same, for each weight: what is missing from the stacks is what they do
    /// not add up to.
    pub totals: [Option<Metric>; 3],
    /// What an entry's label is.
    pub label_is: &'static str,
    /// Name and unit of the count in pprof's terms.
    pub pprof_count: [&'static str; 2],
    /// Name of the time in pprof's terms.
    pub pprof_time: &'static str,
    /// What a picture is weighed by if nobody says: what one looks for in it.
    pub usual: Weight,
}

/// Every kind.
pub const KINDS: &[Words] = &[
    Words {
        kind: StackKind::Cpu,
        help: "What ran on the CPUs",
        title: "On CPU: threads and stacks",
        unit: "samples",
        they_are: "of each CPU",
        time_is: "running",
        bytes_are: None,
        probes: Some([Probe::CpuSamples, Probe::CpuSamples]),
        totals: [None, None, None],
        label_is: "label",
        pprof_count: ["samples", "count"],
        pprof_time: "cpu",
        usual: Weight::Count,
    },
    Words {
        kind: StackKind::Offcpu,
        help: "Where threads waited off the CPU",
        title: "Off CPU: reasons, threads and stacks",
        unit: "waits",
        they_are: "times off the CPU",
        time_is: "off the CPU",
        bytes_are: None,
        probes: Some([Probe::OffCpu, Probe::OffCpu]),
        totals: [None, None, None],
        label_is: "reason",
        pprof_count: ["contentions", "count"],
        pprof_time: "delay",
        usual: Weight::Time,
    },
    Words {
        kind: StackKind::Lock,
        help: "Who waited for locks",
        title: "Lock waits by lock and stack",
        unit: "waits",
        they_are: "waits for a lock",
        time_is: "waiting",
        bytes_are: None,
        probes: Some([Probe::RwsemWaits, Probe::RwsemWaits]),
        totals: [None, Some(Metric::LockWait), None],
        label_is: "lock",
        pprof_count: ["contentions", "count"],
        pprof_time: "delay",
        usual: Weight::Time,
    },
    Words {
        kind: StackKind::Hold,
        help: "Who held locks",
        title: "Lock holds by lock and stack",
        unit: "holds",
        they_are: "locks released",
        time_is: "held",
        bytes_are: None,
        probes: Some([Probe::Ilock, Probe::Ilock]),
        totals: [None, None, None],
        label_is: "lock",
        pprof_count: ["contentions", "count"],
        pprof_time: "delay",
        usual: Weight::Time,
    },
    Words {
        kind: StackKind::Flush,
        help: "Who asked for cache flushes",
        title: "Cache flushes by device, cause and stack",
        unit: "flushes",
        they_are: "bios with PREFLUSH or FUA",
        time_is: "from queueing to completion",
        bytes_are: Some("written by these bios"),
        probes: Some([Probe::FlushRequests, Probe::FlushEnd]),
        totals: [
            Some(Metric::FlushRequested),
            Some(Metric::FlushLatency),
            None,
        ],
        label_is: "cause",
        pprof_count: ["contentions", "count"],
        pprof_time: "delay",
        usual: Weight::Count,
    },
    Words {
        kind: StackKind::Push,
        help: "Who made the CIL be pushed",
        title: "CIL pushes by device, trigger and stack of who queued them",
        unit: "pushes",
        they_are: "runs of xlog_cil_push_work",
        time_is: "of run time",
        bytes_are: Some("written to iclogs"),
        probes: Some([Probe::Pushes, Probe::Pushes]),
        totals: [
            Some(Metric::Pushes),
            Some(Metric::PushRunTime),
            Some(Metric::PushBytes),
        ],
        label_is: "trigger",
        pprof_count: ["contentions", "count"],
        pprof_time: "delay",
        usual: Weight::Count,
    },
];

/// The words of a kind.
#[must_use]
pub fn words(kind: StackKind) -> &'static Words {
    // The table has a row for each kind; a test sees to it.
    KINDS
        .iter()
        .find(|words| words.kind == kind)
        .unwrap_or(&KINDS[0])
}

impl Words {
    /// Whether there is anything to weigh by.
    #[must_use]
    pub const fn has(&self, weight: Weight) -> bool {
        match weight {
            Weight::Count | Weight::Time => true,
            Weight::Bytes => self.bytes_are.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row() {
        assert_eq!(KINDS.len(), StackKind::ALL.len());
        for &kind in StackKind::ALL {
            assert_eq!(words(kind).kind, kind);
        }
    }
}
