//! Names of programs' functions: of processes that are gone at once, of code that a compiler has
//! just made, and of files whose debug information lies elsewhere.

use crate::shell::output;
use crate::stacks::{ask, rows, stacks};
use crate::tool::{record, uint};
use crate::xfs::Xfs;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Runs for some milliseconds, in a function of which one has been inlined.
const SHORT: &str = r#"
#include <ctime>
namespace engine {
volatile unsigned long sink;
static inline __attribute__((always_inline)) void inner(int rounds) {
    for (int i = 0; i < rounds; i++) sink += i;
}
__attribute__((noinline)) void burn(int milliseconds) {
    timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        inner(200000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < milliseconds);
}
}
int main() { engine::burn(15); }
"#;

fn compile(compiler: &str, directory: &Path, name: &str, source: &str) -> std::path::PathBuf {
    let file = directory.join(format!(
        "{name}.{}",
        if compiler == "c++" { "cc" } else { "c" }
    ));
    fs::write(&file, source).unwrap();
    let program = directory.join(name);
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-o"].map(OsStr::new);
    let arguments = [&flags[..], &[program.as_os_str(), file.as_os_str()]].concat();
    output(compiler, &arguments);
    program
}

#[test]
fn processes_that_are_gone_have_their_names_out_of_separate_debug_information() {
    let _xfs = Xfs::new();
    let directory = TempDir::new().unwrap();
    let program = compile("c++", directory.path(), "short-lived", SHORT);
    // As distributions ship programs and their debug information.
    let debug = directory.path().join("short-lived.debug");
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let split: [&[&OsStr]; 3] = [
        &[
            "--only-keep-debug".as_ref(),
            program.as_os_str(),
            debug.as_os_str(),
        ],
        &["--strip-all".as_ref(), program.as_os_str()],
        &[OsStr::new(&link), program.as_os_str()],
    ];
    for arguments in split {
        output("objcopy", arguments);
    }
    let run = format!("for i in $(seq 20); do {}; done", program.display());
    let workload = ["sh", "-c", &run].map(OsStr::new);
    let recording = record(&["--probes", "cpu"], &workload);
    recording.expect_status(0);

    let export = stacks("cpu", &recording.file());
    let mut processes = std::collections::BTreeSet::new();
    let (mut named, mut all) = (0, 0);
    for (row, stack) in rows(&export).filter(|(row, _)| row["comm"] == "short-lived") {
        let count = uint(&row["count"]);
        processes.insert(uint(&row["pid"]));
        if row["kernel"].as_array().unwrap().is_empty() {
            all += count;
            if stack.ends_with(&["main", "engine::burn(int)", "inner"]) {
                named += count;
            }
        }
    }
    assert!(processes.len() >= 15, "{} of 20 were seen", processes.len());
    assert!(
        named * 10 >= all * 9,
        "{named} of {all} samples have their names: {}",
        ask(
            &["export", "--format", "folded", "--kind", "cpu"],
            &recording.file()
        )
    );
}

/// Makes a function while it runs, and says so as compilers do.
#[cfg(target_arch = "x86_64")]
const COMPILER: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    /* mov ecx, 0x100000; dec ecx; jnz -4; ret */
    static const unsigned char code[] = {0xb9, 0, 0, 0x10, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
    void *place = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(place, code, sizeof code);
    mprotect(place, 4096, PROT_READ | PROT_EXEC);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %zx jit: made; just now\n", (unsigned long)place, sizeof code);
    fclose(map);
    for (clock_t end = clock() + 2 * CLOCKS_PER_SEC; clock() < end;)
        ((void (*)(void))place)();
    unlink(path);
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn functions_made_by_a_compiler_in_the_process_have_names() {
    let _xfs = Xfs::new();
    let directory = TempDir::new().unwrap();
    let program = compile("cc", directory.path(), "just-in-time", COMPILER);
    let recording = record(&["--probes", "cpu"], &[program.as_os_str()]);
    recording.expect_status(0);
    let export = stacks("cpu", &recording.file());
    let made: u64 = rows(&export)
        .filter(|(_, stack)| stack.last() == Some(&"jit: made; just now"))
        .map(|(row, _)| uint(&row["count"]))
        .sum();
    assert!(made > 100, "{made} samples");
}

/// Burns time under names that are markup, and more lines than one.
const NAMES: &str = r#"
import time
for name in ["<script>alert(1)</script>", "a;b\nc 7\"d", "&<>'"]:
    with open("/proc/self/comm", "w") as file:
        file.write(name)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
"#;

#[test]
fn a_process_may_call_itself_what_it_likes() {
    let _xfs = Xfs::new();
    let workload = ["python3", "-c", NAMES].map(OsStr::new);
    let recording = record(&["--probes", "cpu"], &workload);
    recording.expect_status(0);
    let file = recording.file();
    // The kernel keeps fifteen bytes.
    let names = ["<script>alert(1", "a;b\nc 7\"d", "&<>'"];
    let export = stacks("cpu", &file);
    for name in names {
        assert!(
            rows(&export).any(|(row, _)| row["comm"] == name),
            "{name:?}"
        );
    }

    let svg = ask(&["flamegraph", "--kind", "cpu"], &file);
    assert!(!svg.contains("<script>alert"));
    assert!(svg.contains("&lt;script&gt;alert(1 ("));
    let total = uint(&export["total"]);
    let folded = ask(&["export", "--format", "folded", "--kind", "cpu"], &file);
    let weights = folded.lines().map(|line| {
        let (_, weight) = line.rsplit_once(' ').unwrap();
        weight.parse::<u64>().unwrap()
    });
    assert_eq!(weights.sum::<u64>(), total);
    assert!(
        folded.contains(";a:b c_7\"d;") || folded.contains(";a:b c 7\"d;"),
        "{folded}"
    );
    let speedscope = ask(
        &["export", "--format", "speedscope", "--kind", "cpu"],
        &file,
    );
    let speedscope: serde_json::Value = serde_json::from_str(&speedscope).unwrap();
    assert_eq!(speedscope["profiles"][0]["endValue"], total);
    // A picture and a table are read by others, too.
    let directory = TempDir::new().unwrap();
    for (name, text) in [
        ("x.svg", svg),
        (
            "x.csv",
            ask(&["export", "--format", "csv", "--kind", "cpu"], &file),
        ),
    ] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let check = "import csv, sys, xml.etree.ElementTree as tree\n\
                 tree.parse(sys.argv[1] + '/x.svg')\n\
                 rows = list(csv.DictReader(open(sys.argv[1] + '/x.csv', newline='')))\n\
                 print(sum(int(row['count']) for row in rows))";
    let counted = output(
        "python3",
        &["-c".as_ref(), check.as_ref(), directory.path().as_os_str()],
    );
    assert_eq!(counted.trim(), total.to_string());
}
