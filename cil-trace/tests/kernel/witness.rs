//! An independent witness of a recording: a trace buffer of its own, filled by ftrace.

use crate::count::Subject;
use crate::symbols;
use crate::trace::{Event, parse};
use crate::xfs::Xfs;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const TRACEFS: &str = "/sys/kernel/tracing";

/// Per CPU; the busiest workload here fills a fifth of it.
const BUFFER_KB: &str = "98304";

/// An event, what it is filtered by, and whether its kernel stack is wanted.
struct Watched {
    event: &'static str,
    filter: Filter,
    stack: bool,
}

enum Filter {
    Filesystem,
    Disk,
    /// Bios with PREFLUSH or FUA.
    Flushes,
    Push,
}

const fn watch(event: &'static str, filter: Filter, stack: bool) -> Watched {
    Watched {
        event,
        filter,
        stack,
    }
}

/// What forces, iclog writes and flushes are counted from, with their causes.
const CAUSES: &[Watched] = &[
    watch("xfs/xfs_log_force", Filter::Filesystem, true),
    watch("xfs/xlog_iclog_switch", Filter::Filesystem, true),
    watch("xfs/xlog_iclog_syncing", Filter::Filesystem, false),
    watch("block/block_bio_queue", Filter::Flushes, true),
];

/// What the rest of [`crate::count`] is counted from.
const OTHERS: &[Watched] = &[
    watch("xfs/xfs_trans_commit_items", Filter::Filesystem, false),
    watch("xfs/xfs_file_fsync", Filter::Filesystem, false),
    watch("xfs/xlog_iclog_get_space", Filter::Filesystem, false),
    watch("workqueue/workqueue_queue_work", Filter::Push, true),
    watch("workqueue/workqueue_execute_start", Filter::Push, false),
    watch("workqueue/workqueue_execute_end", Filter::Push, false),
    watch("block/block_rq_issue", Filter::Disk, false),
    watch("block/block_rq_complete", Filter::Disk, false),
];

/// What locks of inodes are counted from.
const LOCKS: &[Watched] = &[
    watch("xfs/xfs_ilock", Filter::Filesystem, false),
    watch("xfs/xfs_ilock_nowait", Filter::Filesystem, false),
    watch("xfs/xfs_iunlock", Filter::Filesystem, false),
    watch("xfs/xfs_ilock_demote", Filter::Filesystem, false),
];

/// A tracefs instance that watches one filesystem; it ends when dropped.
pub struct Witness {
    instance: PathBuf,
    mounted_tracefs: bool,
}

impl Witness {
    /// Watches everything of `xfs` and the disk beneath.
    pub fn of(xfs: &Xfs) -> Self {
        Self::watching(&xfs.subject(), CAUSES.iter().chain(OTHERS))
    }

    /// Watches everything of `xfs` and its own device, which lies above a disk.
    pub fn above(xfs: &Xfs) -> Self {
        Self::watching(&xfs.subject_above(), CAUSES.iter().chain(OTHERS))
    }

    /// Watches what a busy workload still allows to be kept line by line: forces, iclog writes
    /// and flushes.
    pub fn of_causes(xfs: &Xfs) -> Self {
        Self::watching(&xfs.subject(), CAUSES)
    }

    /// Watches the locks of its inodes.
    pub fn of_locks(xfs: &Xfs) -> Self {
        Self::watching(&xfs.subject(), LOCKS)
    }

    fn watching(subject: &Subject, watched: impl IntoIterator<Item = &'static Watched>) -> Self {
        static INSTANCES: AtomicU32 = AtomicU32::new(0);
        let mounted_tracefs = !Path::new(TRACEFS).join("instances").exists();
        if mounted_tracefs {
            crate::shell::output("mount", &["-t", "tracefs", "tracefs", TRACEFS]);
        }
        let number = INSTANCES.fetch_add(1, Ordering::Relaxed);
        let name = format!("cil-trace-test-{}-{number}", std::process::id());
        let instance = Path::new(TRACEFS).join("instances").join(name);
        fs::create_dir(&instance).unwrap();
        let witness = Self {
            instance,
            mounted_tracefs,
        };
        witness.write("trace_clock", "mono");
        witness.write("buffer_size_kb", BUFFER_KB);
        let filesystem = kernel_number(&subject.filesystem, ':');
        let disk = kernel_number(&subject.disk, ',');
        for Watched {
            event,
            filter,
            stack,
        } in watched
        {
            // Where there are none an iclog is its bio: [`Subject::iclog_events`].
            if event.starts_with("xfs/xlog_iclog") && !subject.iclog_events {
                continue;
            }
            let filter = match filter {
                Filter::Filesystem => format!("dev == {filesystem}"),
                Filter::Disk => format!("dev == {disk}"),
                Filter::Flushes => format!("dev == {disk} && rwbs ~ \"*F*\""),
                // By name only since 6.3.
                Filter::Push => format!("function == {:#x}", symbols::push_work()),
            };
            witness.write(&format!("events/{event}/filter"), &filter);
            if *stack {
                let trigger = format!("stacktrace if {filter}");
                witness.write(&format!("events/{event}/trigger"), &trigger);
            }
            witness.write(&format!("events/{event}/enable"), "1");
        }
        witness
    }

    /// Writing to this file puts an event named `tracing_mark_write` among the others.
    pub fn marker(&self) -> PathBuf {
        self.instance.join("trace_marker")
    }

    /// Stops watching and gives what was seen.
    ///
    /// # Panics
    /// The buffer overran: the witness would not know everything.
    pub fn testimony(&self) -> Testimony {
        self.write("tracing_on", "0");
        for cpu in fs::read_dir(self.instance.join("per_cpu")).unwrap() {
            let stats = fs::read_to_string(cpu.unwrap().path().join("stats")).unwrap();
            for line in stats.lines() {
                let lost = line.contains("overrun") || line.starts_with("dropped");
                assert!(
                    !lost || line.ends_with(": 0"),
                    "the trace buffer is too small: {line}"
                );
            }
        }
        Testimony(fs::read_to_string(self.instance.join("trace")).unwrap())
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.instance.join(file);
        fs::write(&path, text)
            .unwrap_or_else(|error| panic!("{text} > {}: {error}", path.display()));
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.instance) {
            eprintln!("left behind: {}: {error}", self.instance.display());
        }
        if self.mounted_tracefs
            && let Err(error) = crate::shell::attempt("umount", &[TRACEFS])
        {
            eprintln!("left behind: {error}");
        }
    }
}

/// `dev` as event filters compare it: 12 bits of major, 20 of minor.
fn kernel_number(device: &str, separator: char) -> u32 {
    let (major, minor) = device.split_once(separator).unwrap();
    major.parse::<u32>().unwrap() << 20 | minor.parse::<u32>().unwrap()
}

/// What a witness has seen.
pub struct Testimony(String);

impl Testimony {
    /// The events in order.
    pub fn events(&self) -> Vec<Event<'_>> {
        parse(&self.0)
    }
}

/// When `mark` was written to [`Witness::marker`].
pub fn marked(events: &[Event<'_>], mark: &str) -> u64 {
    let event = events
        .iter()
        .find(|event| event.name == "tracing_mark_write" && event.text == mark);
    event
        .unwrap_or_else(|| panic!("the workload wrote no mark {mark}"))
        .t_ns
}
