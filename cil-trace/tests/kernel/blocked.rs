//! A lock that is held for long: the waiter's own clock, and the holder with what it waits for.
//!
//! The workloads are tests of this program too, which the traced command runs alone.

use crate::own::{directory, printed, record_own};
use crate::shell::output;
use crate::tool::{rows, uint};
use crate::xfs::Xfs;
use rustix::io::{ReadWriteFlags, preadv2};
use serde_json::Value;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::IoSliceMut;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::{self, Builder, Scope};
use std::time::{Duration, Instant};

/// Names the filesystem that a workload freezes.
const FREEZE: &str = "CIL_TRACE_TEST_FREEZE";

/// How long the holder sleeps, at least.
const HELD: Duration = Duration::from_millis(600);

fn near(reported: u64, own: u64) -> bool {
    reported.abs_diff(own) * 10 <= own
}

fn ilock<'a>(report: &'a Value, device: &str, mode: &str) -> &'a Value {
    rows(report, "ilock", device)
        .find(|row| row["lock"] == "IOLOCK" && row["mode"] == mode)
        .unwrap_or_else(|| panic!("{:#}", report["ilock"]))
}

#[test]
fn a_sleeping_holder_is_named_with_what_it_waits_for() {
    let lower = Xfs::new();
    let upper = Xfs::over(&lower);
    let recording = record_own(
        &upper,
        "blocked::workload_holds_and_waits",
        &[(FREEZE, &lower.mountpoint())],
    );
    let report = recording.complete_report();
    let own = printed(&recording, "waited_ns");
    assert!(own >= 500_000_000, "{own}");

    let exclusive = ilock(&report, upper.device(), "exclusive");
    let longest = uint(&exclusive["wait"]["max"]);
    assert!(
        near(longest, own),
        "{longest} ns reported, {own} ns by its own clock"
    );
    let caller = exclusive["callers"][0]["function"].as_str().unwrap();
    assert!(caller.starts_with("xfs_file_buffered"), "{caller}");
    let lock = rows(&report, "locks", upper.device())
        .find(|row| row["lock"] == "IOLOCK" && row["mode"] == "exclusive")
        .unwrap();
    assert_eq!(lock["kind"], "rwsem");
    assert_eq!(lock["callers"][0]["function"], caller);

    let blocker = rows(&report, "blockers", upper.device())
        .find(|row| row["lock"] == "IOLOCK" && row["mode"] == "exclusive")
        .unwrap();
    assert_eq!(uint(&blocker["wait_ns"]), longest);
    let says = |field: &str, word: &str| {
        let text = blocker[field].as_str().unwrap_or_default();
        assert!(text.contains(word), "{field}: {blocker:#}");
    };
    says("waiter", "waiter");
    says("holder", "holder");
    says("holder_waits_for", "direct I/O");
    let process = report["processes"].as_array().unwrap().iter();
    let waited: u64 = process
        .filter(|row| row["workload"] == true)
        .map(|row| uint(&row["lock_wait_ns"]))
        .sum();
    assert!(
        waited >= longest,
        "{waited} of the workload, {longest} for one lock"
    );

    // The reader tried first, without waiting.
    let shared = ilock(&report, upper.device(), "shared");
    assert_eq!(uint(&shared["trylock_tried"]), 1);
    assert_eq!(uint(&shared["trylock_then_lock"]), 1);
    match shared["trylock_failed"].as_u64() {
        Some(failed) => assert_eq!(failed, 1),
        None => {
            let reason = report["probes"].as_array().unwrap().iter();
            let is = |row: &&Value| row["probe"] == "ilock-return" && row["outcome"] != "attached";
            assert!(
                reason.filter(is).count() == 1,
                "nothing says why it is null"
            );
        }
    }
}

/// A direct write holds the lock while the disk beneath is frozen; a writer and a reader wait.
#[test]
#[ignore = "a workload of the tests above"]
fn workload_holds_and_waits() {
    let path = directory().join("file");
    let frozen = env::var(FREEZE).unwrap();
    // Part of a block, so that writing another part of it excludes everybody else.
    fs::write(&path, [0; 512]).unwrap();
    let direct = open(&path, libc::O_DIRECT);
    direct.sync_all().unwrap();
    let (buffered, read) = (open(&path, 0), open(&path, 0));
    output("fsfreeze", &["-f", &frozen]);
    thread::scope(|scope| {
        spawn_and_block(scope, "holder", || {
            direct.write_all_at(aligned(&mut [0; 1024]), 512).unwrap();
        });
        let waiter = spawn_and_block(scope, "waiter", || {
            let start = Instant::now();
            buffered.write_all_at(b"x", 0).unwrap();
            start.elapsed()
        });
        spawn_and_block(scope, "reader", || {
            let mut byte = [0];
            let mut into = [IoSliceMut::new(&mut byte)];
            let tried = preadv2(&read, &mut into, 0, ReadWriteFlags::NOWAIT);
            assert_eq!(tried, Err(rustix::io::Errno::AGAIN));
            read.read_exact_at(&mut byte, 0).unwrap();
        });
        thread::sleep(HELD);
        output("fsfreeze", &["-u", &frozen]);
        println!("waited_ns={}", waiter.join().unwrap().as_nanos());
    });
}

fn open(path: &PathBuf, flags: i32) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(path)
        .unwrap()
}

/// 512 bytes at an address that a direct write takes.
fn aligned(room: &mut [u8; 1024]) -> &[u8] {
    let start = room.as_ptr().align_offset(512);
    &room[start..start + 512]
}

/// Runs `task` in a thread of this name, and comes back when it sleeps uninterruptibly.
fn spawn_and_block<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    task: impl FnOnce() -> T + Send + 'scope,
) -> thread::ScopedJoinHandle<'scope, T> {
    let tid: &'static AtomicI32 = Box::leak(Box::new(AtomicI32::new(0)));
    let thread = Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, || {
            tid.store(
                rustix::thread::gettid().as_raw_nonzero().get(),
                Ordering::Release,
            );
            task()
        })
        .unwrap();
    loop {
        assert!(!thread.is_finished(), "{name} did not block");
        let stat = fs::read_to_string(format!(
            "/proc/self/task/{}/stat",
            tid.load(Ordering::Acquire)
        ));
        // The state follows the name in parentheses.
        if stat.is_ok_and(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('D'))
        }) {
            return thread;
        }
        thread::yield_now();
    }
}

/// A waiter that spins is seen by functions only.
#[test]
fn a_spinning_waiter_is_seen_by_function() {
    let xfs = Xfs::new();
    let recording = record_own(&xfs, "blocked::workload_spins", &[]);
    let report = recording.complete_report();
    let own = printed(&recording, "waited_ns");
    let exclusive = ilock(&report, xfs.device(), "exclusive");
    let waited = uint(&exclusive["wait"]["sum"]);
    if exclusive["wait_method"] == "function" {
        assert!(
            near(waited, own),
            "{waited} ns reported, {own} ns by its own clock"
        );
    } else {
        println!("not held against the waiter's clock: function entries cannot be probed here");
        assert_eq!(exclusive["wait_method"], "lower_bound");
        assert!(
            waited <= own,
            "{waited} ns reported, {own} ns by its own clock"
        );
    }
}

/// One thread writes 16 MB at a time; another, on another CPU, wants to write one byte.
#[test]
#[ignore = "a workload of the tests above"]
fn workload_spins() {
    const ROUNDS: usize = 20;
    let path = directory().join("file");
    fs::write(&path, []).unwrap();
    let (long, short) = (open(&path, 0), open(&path, 0));
    let data = vec![1; 16 << 20];
    long.write_all_at(&data, 0).unwrap();
    let writing = AtomicBool::new(false);
    let mut waited = Duration::ZERO;
    for _ in 0..ROUNDS {
        thread::scope(|scope| {
            scope.spawn(|| {
                pin(0);
                writing.store(true, Ordering::Release);
                long.write_all_at(&data, 0).unwrap();
            });
            let waiter = scope.spawn(|| {
                pin(1);
                while !writing.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                // Not before the other one has the lock.
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_micros(200) {
                    std::hint::spin_loop();
                }
                let start = Instant::now();
                short.write_all_at(b"x", 0).unwrap();
                start.elapsed()
            });
            waited += waiter.join().unwrap();
        });
        writing.store(false, Ordering::Release);
    }
    println!("waited_ns={}", waited.as_nanos());
}

fn pin(cpu: usize) {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(cpu % thread::available_parallelism().unwrap().get());
    rustix::thread::sched_setaffinity(None, &cpus).unwrap();
}
