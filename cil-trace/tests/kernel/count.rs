//! What a trace says about one filesystem: forces, pushes, iclog writes and flushes by cause.
//!
//! Written from the definitions, without a line of cil-trace's: it is what the report is held
//! against.

use crate::cause;
use crate::trace::Event;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// The filesystem, and the disk beneath it.
pub struct Subject {
    /// `major:minor` of the mount, which is its partition's.
    pub filesystem: String,
    /// The mount's name in workqueues and reports.
    pub name: String,
    /// `major,minor` of the whole disk.
    pub disk: String,
    /// Whether the disk honours FUA itself.
    pub fua: bool,
    /// Whether the kernel has events for iclogs (since 5.14). Where not, an iclog is the bio that
    /// writes it, which before 5.14 always asked for a flush.
    pub iclog_events: bool,
}

/// The numbers that the report and the trace must agree on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    pub forces: BTreeMap<String, u64>,
    pub pushes: u64,
    pub empty_pushes: u64,
    pub pushes_without_iclog: u64,
    pub pushes_by_trigger: BTreeMap<String, u64>,
    /// Writes and bytes.
    pub iclogs: BTreeMap<String, (u64, u64)>,
    pub commits: u64,
    pub fsyncs: u64,
    /// By cause, whichever device is above.
    pub flushes: BTreeMap<String, u64>,
    pub flushes_needed: u64,
    pub flushes_issued: u64,
    pub flushes_empty: u64,
}

impl Counts {
    /// All forces: the 4th number of the statistics' `log` line.
    pub fn all_forces(&self) -> u64 {
        self.forces.values().sum()
    }

    /// By name, as [`crate::tool::reported`] gives them; null what ftrace cannot tell without events
    /// for iclogs.
    pub fn named(&self, iclog_events: bool) -> Value {
        let known = |value: u64| iclog_events.then_some(value);
        let iclogs = self.iclogs.iter().map(|(cause, (writes, bytes))| {
            let of_cause = json!({"writes": writes, "bytes": known(*bytes)});
            (cause.clone(), of_cause)
        });
        json!({
            "forces": self.forces,
            "pushes": self.pushes,
            "empty_pushes": known(self.empty_pushes),
            "pushes_without_iclog": known(self.pushes_without_iclog),
            "pushes_by_trigger": self.pushes_by_trigger,
            "iclogs": iclogs.collect::<serde_json::Map<_, _>>(),
            "commits": self.commits,
            "fsyncs": self.fsyncs,
            "flushes": self.flushes,
            "flushes_needed": self.flushes_needed,
            "flushes_issued": self.flushes_issued,
            "flushes_empty": self.flushes_empty,
        })
    }

    /// All iclog writes: the 1st number of that line.
    pub fn iclog_writes(&self) -> u64 {
        self.iclogs.values().map(|(writes, _)| writes).sum()
    }
}

/// Counts the events inside `window`; those before it still tell what an iclog is.
pub fn count(events: &[Event<'_>], subject: &Subject, window: &Range<u64>) -> Counts {
    let mut counter = Counter::new(subject);
    for event in events.iter().filter(|event| event.t_ns < window.end) {
        counter.counting = window.contains(&event.t_ns);
        counter.see(event);
    }
    counter.counts
}

struct Counter<'a> {
    subject: &'a Subject,
    counting: bool,
    counts: Counts,
    /// Works that push this filesystem's CIL.
    works: HashSet<&'a str>,
    /// Pushes under way, by task.
    pushing: HashMap<u32, Push>,
    /// iclogs that a force switched, by LSN, with the force's cause.
    switched: HashMap<&'a str, &'static str>,
    /// The cause of the iclog that a task is writing.
    writing: HashMap<u32, &'static str>,
    /// Writes completed since the previous device flush started; unknown before the first.
    written: Option<u64>,
}

#[derive(Default)]
struct Push {
    got_space: bool,
    wrote_iclog: bool,
}

impl<'a> Counter<'a> {
    fn new(subject: &'a Subject) -> Self {
        Self {
            subject,
            counting: false,
            counts: Counts::default(),
            works: HashSet::new(),
            pushing: HashMap::new(),
            switched: HashMap::new(),
            writing: HashMap::new(),
            written: None,
        }
    }

    fn see(&mut self, event: &Event<'a>) {
        let of_filesystem = event.field("dev") == Some(&self.subject.filesystem);
        let of_disk = event.text.split(' ').next() == Some(&self.subject.disk);
        match event.name {
            "xfs_log_force" if of_filesystem => self.force(event),
            "xfs_trans_commit_items" if of_filesystem => self.add(|counts| counts.commits += 1),
            "xfs_file_fsync" if of_filesystem => self.add(|counts| counts.fsyncs += 1),
            "xlog_iclog_get_space" if of_filesystem => {
                if let Some(push) = self.pushing.get_mut(&event.pid) {
                    push.got_space = true;
                }
            }
            "xlog_iclog_switch" if of_filesystem => self.iclog_switched(event),
            "xlog_iclog_syncing" if of_filesystem => self.iclog_written(event),
            "workqueue_queue_work" => self.push_queued(event),
            "workqueue_execute_start" if self.is_push(event) => {
                self.pushing.insert(event.pid, Push::default());
            }
            "workqueue_execute_end" if self.is_push(event) => self.push_ended(event),
            "block_bio_queue" if of_disk => self.bio(event),
            "block_rq_issue" if of_disk => self.issued(event),
            "block_rq_complete" if of_disk => self.completed(event),
            _ => {}
        }
    }

    fn add(&mut self, change: impl FnOnce(&mut Counts)) {
        if self.counting {
            change(&mut self.counts);
        }
    }

    /// The event fires again inside a force, and for the AIL's push request, which is none.
    fn force(&mut self, event: &Event<'a>) {
        let caller = event.caller();
        let inner = matches!(caller, Some("xfs_log_force" | "xfs_log_force_seq"));
        let push_request = caller == Some("xfsaild") && event.field("lsn") != Some("0x0");
        if !inner && !push_request {
            let cause = cause::of_force(&event.stack);
            self.add(|counts| *counts.forces.entry(cause.to_owned()).or_default() += 1);
        }
    }

    fn push_queued(&mut self, event: &Event<'a>) {
        let Some(work) = work(event) else { return };
        let ours = format!("workqueue=xfs-cil/{}", self.subject.name);
        // Before 5.13 the event shows no name; such kernels are tried with one filesystem mounted.
        if self.subject.iclog_events && !event.text.split(' ').any(|word| word == ours) {
            // The kernel has given the memory to another filesystem's push.
            self.works.remove(work);
            return;
        }
        self.works.insert(work);
        let cause = cause::of_push(&event.stack);
        self.add(|counts| {
            *counts
                .pushes_by_trigger
                .entry(cause.to_owned())
                .or_default() += 1;
        });
    }

    fn is_push(&self, event: &Event<'a>) -> bool {
        work(event).is_some_and(|work| self.works.contains(work))
    }

    fn push_ended(&mut self, event: &Event<'a>) {
        let push = self.pushing.remove(&event.pid).unwrap_or_default();
        self.add(|counts| {
            counts.pushes += 1;
            counts.empty_pushes += u64::from(!push.got_space);
            counts.pushes_without_iclog += u64::from(push.got_space && !push.wrote_iclog);
        });
    }

    /// A full iclog is switched by whoever asks for space, one with a commit record at times by
    /// the push; every other switch is a force's.
    fn iclog_switched(&mut self, event: &Event<'a>) {
        let by_force = !matches!(
            event.caller(),
            Some(
                "xlog_state_get_iclog_space"
                    | "xlog_write_get_more_iclog_space"
                    | "xlog_write"
                    | "xlog_cil_push_work"
            )
        );
        if by_force && let Some(lsn) = event.field("lsn") {
            self.switched.insert(lsn, cause::of_force(&event.stack));
        }
    }

    fn iclog_written(&mut self, event: &Event<'a>) {
        let forced = event.field("lsn").and_then(|lsn| self.switched.remove(lsn));
        let cause = forced.unwrap_or_else(|| cause::of_flags(event.field("flags").unwrap_or("")));
        self.wrote_iclog(event, cause, number(event.field("offset")));
    }

    fn wrote_iclog(&mut self, event: &Event<'a>, cause: &'static str, bytes: u64) {
        self.writing.insert(event.pid, cause);
        if let Some(push) = self.pushing.get_mut(&event.pid) {
            push.wrote_iclog = true;
        }
        self.add(|counts| {
            let (writes, sum) = counts.iclogs.entry(cause.to_owned()).or_default();
            *writes += 1;
            *sum += bytes;
        });
    }

    fn bio(&mut self, event: &Event<'a>) {
        let flags = Flags::of(event);
        if !flags.preflush && !flags.fua {
            return;
        }
        let of_log = event.under("xlog_state_release_iclog");
        if of_log && flags.write && !self.subject.iclog_events && number(event.field("+")) > 0 {
            let cause = cause::of_iclog(&event.stack);
            self.wrote_iclog(event, cause, 0);
        }
        let cause = match (of_log, event.under("blkdev_issue_flush")) {
            (true, true) => "external-log",
            (true, false) => self.writing.get(&event.pid).copied().unwrap_or("other"),
            (false, _) => cause::of_other_bio(&event.stack),
        };
        let needed = u64::from(flags.preflush) + u64::from(flags.fua && !self.subject.fua);
        self.add(|counts| {
            *counts.flushes.entry(cause.to_owned()).or_default() += 1;
            counts.flushes_needed += needed;
        });
    }

    fn issued(&mut self, event: &Event<'a>) {
        if self.counting && rwbs(event) == "FF" {
            self.counts.flushes_issued += 1;
            self.counts.flushes_empty += u64::from(self.written == Some(0));
            self.written = Some(0);
        }
    }

    fn completed(&mut self, event: &Event<'a>) {
        let flags = Flags::of(event);
        let durable = flags.fua && self.subject.fua;
        if flags.write && !durable && number(event.field("+")) > 0 {
            self.written = self.written.map(|writes| writes + 1);
        }
    }
}

/// The work's address: `work struct=ADDRESS` when queued, `work struct ADDRESS:` when executed.
fn work<'a>(event: &Event<'a>) -> Option<&'a str> {
    let rest = event.text.strip_prefix("work struct")?;
    rest[1..].split([' ', ':']).next()
}

/// The second word of a block event.
fn rwbs<'a>(event: &Event<'a>) -> &'a str {
    event.text.split(' ').nth(1).unwrap_or("")
}

fn number(word: Option<&str>) -> u64 {
    word.and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("not a number: {word:?}"))
}

/// What rwbs says: `F` in front is PREFLUSH, the letter after it the operation, `F` later FUA.
pub struct Flags {
    pub preflush: bool,
    pub write: bool,
    pub fua: bool,
}

impl Flags {
    /// Of a block event.
    pub fn of(event: &Event<'_>) -> Self {
        let rwbs = rwbs(event);
        let operation = rwbs.strip_prefix('F').unwrap_or(rwbs);
        Self {
            preflush: rwbs.len() > operation.len(),
            write: operation.starts_with('W'),
            fua: operation.get(1..).is_some_and(|rest| rest.contains('F')),
        }
    }
}

/// Whether a bio asks `disk` for a flush.
pub fn is_flush(event: &Event<'_>, disk: &str) -> bool {
    let flags = Flags::of(event);
    event.name == "block_bio_queue"
        && event.text.split(' ').next() == Some(disk)
        && (flags.preflush || flags.fua)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::parse;

    fn counted(trace: &str, fua: bool) -> Counts {
        let (filesystem, disk) = ("7:1".to_owned(), "7,1".to_owned());
        let name = "loop1".to_owned();
        let subject = Subject {
            filesystem,
            name,
            disk,
            fua,
            iclog_events: true,
        };
        count(&parse(trace), &subject, &(0..u64::MAX))
    }

    fn by_cause<T>(cause: &str, value: T) -> BTreeMap<String, T> {
        BTreeMap::from([(cause.to_owned(), value)])
    }

    /// As 6.18 wrote it, for a new file of one block on a disk without FUA.
    #[test]
    fn one_fsync_is_one_of_everything_and_two_flushes() {
        const FSYNC: &str = "log-force:fsync";
        let expected = Counts {
            forces: by_cause(FSYNC, 1),
            pushes: 1,
            empty_pushes: 0,
            pushes_without_iclog: 1,
            pushes_by_trigger: by_cause(FSYNC, 1),
            iclogs: by_cause(FSYNC, (1, 2112)),
            commits: 2,
            fsyncs: 1,
            flushes: by_cause(FSYNC, 1),
            flushes_needed: 2,
            flushes_issued: 2,
            flushes_empty: 0,
        };
        assert_eq!(counted(include_str!("fsync.trace"), false), expected);
    }

    #[test]
    fn an_iclog_switched_by_a_force_is_the_forces_whoever_writes_it() {
        let counts = counted(
            "\
 dd-7 [000] .. 1.000001: xlog_iclog_switch: dev 7:1 offset 9 lsn 0x5 flags  caller xlog_force_lsn+0x1/0x2
 dd-7 [000] .. 1.000001: <stack trace>
 => xlog_force_lsn
 => xfs_file_fsync
 kw-8 [001] .. 1.000002: xlog_iclog_syncing: dev 7:1 offset 9 lsn 0x5 flags XLOG_ICL_NEED_FLUSH caller x+0x1/0x2
 kw-8 [001] .. 1.000003: block_bio_queue: 7,1 FWSM 8 + 1 [kw]
 kw-8 [001] .. 1.000003: <stack trace>
 => xlog_state_release_iclog
 => xlog_cil_push_work
 kw-8 [001] .. 1.000004: xlog_iclog_switch: dev 7:1 offset 512 lsn 0x6 flags  caller xlog_state_get_iclog_space+0x1/0x2
 kw-8 [001] .. 1.000005: xlog_iclog_syncing: dev 7:1 offset 512 lsn 0x6 flags  caller x+0x1/0x2
",
            false,
        );
        assert_eq!(counts.iclogs["log-force:fsync"], (1, 9));
        assert_eq!(counts.iclogs["iclog-write"], (1, 512));
        assert_eq!(counts.flushes, by_cause("log-force:fsync", 1));
        assert_eq!(counts.flushes_needed, 1);
    }

    #[test]
    fn what_is_another_filesystems_or_no_force_is_not_counted() {
        let counts = counted(
            "\
 xfsaild/loop1-7 [000] .. 1.000001: xfs_log_force: dev 7:1 lsn 0x7 caller xfsaild+0x1/0x2
 dd-8 [000] .. 1.000002: xfs_log_force: dev 7:1 lsn 0x7 caller xfs_log_force_seq+0x1/0x2
 dd-8 [000] .. 1.000003: xfs_log_force: dev 7:11 lsn 0x7 caller xfs_file_fsync+0x1/0x2
 dd-8 [000] .. 1.000004: workqueue_queue_work: work struct=0a function=xlog_cil_push_work workqueue=xfs-cil/loop1 cpu=-1
 dd-8 [000] .. 1.000005: workqueue_queue_work: work struct=0a function=xlog_cil_push_work workqueue=xfs-cil/loop11 cpu=-1
 kw-9 [000] .. 1.000006: workqueue_execute_start: work struct 0a: function xlog_cil_push_work
 kw-9 [000] .. 1.000007: workqueue_execute_end: work struct 0a: function xlog_cil_push_work
",
            false,
        );
        assert_eq!(counts.all_forces(), 0);
        assert_eq!(counts.pushes, 0);
    }

    #[test]
    fn a_flush_is_empty_when_only_durable_writes_came_before() {
        let trace = "\
 kw-9 [000] .. 1.000001: block_rq_issue: 7,1 FF 0 () 0 + 0 none,0,0 [kw]
 kw-9 [000] .. 1.000002: block_rq_complete: 7,1 WFSM () 8 + 1 none,0,0 [0]
 kw-9 [000] .. 1.000003: block_rq_complete: 7,1 WSM () 8 + 0 none,0,0 [0]
 kw-9 [000] .. 1.000004: block_rq_issue: 7,1 FF 0 () 0 + 0 none,0,0 [kw]
";
        assert_eq!(counted(trace, true).flushes_empty, 1);
        assert_eq!(counted(trace, false).flushes_empty, 0);
    }
}
