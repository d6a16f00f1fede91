//! cil-trace killed in mid-run: the workload does not notice, nothing stays behind.

use crate::eventually::eventually;
use crate::shell::output;
use crate::tool::{program, report};
use crate::xfs::Xfs;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Writes and syncs until `stop` appears, counting in `progress`; then says `done`.
const WORKLOAD: &str = r#"
set -e
cd "$1"
number=0
until [[ -e stop ]]; do
    dd if=/dev/zero of=file bs=4k count=1 conv=fsync status=none
    number=$((number + 1))
    echo $number >progress.new
    mv progress.new progress
done
echo done >done
"#;

#[test]
fn after_a_kill_the_workload_goes_on_and_nothing_stays_attached() {
    let xfs = Xfs::new();
    let file = xfs.outside("cil-trace.data");
    let before = bpf_programs();
    let mut tracer = Command::new(program())
        .args([
            "record",
            "--keep-root",
            "--interval",
            "100ms",
            "--device",
            xfs.device(),
            "-o",
        ])
        .arg(&file)
        .args(["--", "bash", "-c", WORKLOAD, "bash"])
        .arg(xfs.mountpoint())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let workload = Workload(xfs.mountpoint());
    let progress = || workload.progress();
    // Some ticks are in the recording once the workload has come this far.
    eventually("the workload runs", || progress() > 300);
    assert!(
        !bpf_programs().is_subset(&before),
        "recording, and no BPF program is loaded"
    );
    tracer.kill().unwrap();
    tracer.wait().unwrap();

    let then = progress();
    eventually("the workload goes on without its tracer", || {
        progress() > then + 50
    });
    workload.stop();
    eventually("the workload ends by itself", || {
        workload.0.join("done").exists()
    });
    // The kernel frees programs a grace period after their last user.
    eventually("no BPF program is left", || {
        bpf_programs().is_subset(&before)
    });

    let report = report(&file);
    assert_eq!(report["interrupted"], true);
    assert!(
        report["commits"]["count"].as_u64().unwrap() > 0,
        "{:#}",
        report["commits"]
    );
}

/// The running workload by its directory; it stops when dropped, for it has outlived its parent.
struct Workload(PathBuf);

impl Workload {
    fn progress(&self) -> u64 {
        let text = fs::read_to_string(self.0.join("progress")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    fn stop(&self) {
        fs::write(self.0.join("stop"), "").unwrap();
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The ids of all loaded programs.
fn bpf_programs() -> BTreeSet<u64> {
    let shown = output("bpftool", &["-j", "prog", "show"]);
    let programs: Vec<Value> = serde_json::from_str(&shown).unwrap();
    programs
        .iter()
        .map(|program| program["id"].as_u64().unwrap())
        .collect()
}
