//! XFS as a module that comes and goes while everything is recorded.

use crate::count::count;
use crate::eventually::eventually;
use crate::shell::{attempt, output};
use crate::tool::{forces, program, report, rows, uint};
use crate::witness::Witness;
use crate::xfs::Xfs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What is counted of a stretch of work.
const CAUSE: &str = "log-force:fsync";

#[test]
#[ignore = "takes XFS out of the kernel, so nothing else may use it: for virtual machines"]
fn a_module_that_comes_and_goes_is_followed() {
    let xfs = Xfs::new();
    xfs.unmount();
    unload();
    let mut recorder = Recorder::start(&xfs.outside("cil-trace.data"));
    recorder.until("it records", |report| uint(&report["duration_ns"]) > 0);
    assert_eq!(recorder.forces().0, "skipped");

    load();
    xfs.mount();
    recorder.until_attached(0);
    let first = fsyncs(&xfs, 40);

    // What is attached holds the module, until it is let go.
    xfs.unmount();
    unload();
    load();
    xfs.mount();
    recorder.until_attached(1);
    let second = fsyncs(&xfs, 30);

    let report = recorder.stop();
    let device = xfs.device();
    let fsyncs: u64 = rows(&report, "fsyncs", device)
        .map(|row| uint(&row["count"]))
        .sum();
    assert_eq!(fsyncs, first.fsyncs + second.fsyncs);
    let by_fsync = |forces: &BTreeMap<String, u64>| forces[CAUSE];
    assert_eq!(
        by_fsync(&forces(&report, device)),
        by_fsync(&first.forces) + by_fsync(&second.forces)
    );
    let flushes: u64 = rows(&report, "flushes", device)
        .filter(|row| row["cause"] == CAUSE)
        .map(|row| uint(&row["requested"]))
        .sum();
    assert_eq!(
        flushes,
        by_fsync(&first.flushes) + by_fsync(&second.flushes)
    );
    // Nothing is lost but what came before the probes, and that is said.
    for row in report["loss"]["by_probe"].as_array().unwrap() {
        assert_eq!(row["cause"], "not-attached", "{row:#}");
    }
}

/// Files that are written and synced under a witness, and what it has seen.
fn fsyncs(xfs: &Xfs, files: u32) -> crate::count::Counts {
    const SCRIPT: &str = concat!(include_str!("fsyncs.sh"), r#"fsyncs "$1" "$2""#);
    // It holds the module too, so it must be gone before that is to go.
    let witness = Witness::of(xfs);
    let mountpoint = xfs.mountpoint().display().to_string();
    output(
        "bash",
        &["-ec", SCRIPT, "bash", &mountpoint, &files.to_string()],
    );
    let testimony = witness.testimony();
    count(&testimony.events(), &xfs.subject(), &(0..u64::MAX))
}

fn load() {
    output("modprobe", &["xfs"]);
}

fn unload() {
    eventually("nothing holds XFS", || attempt("rmmod", &["xfs"]).is_ok());
    assert!(!Path::new("/sys/module/xfs").exists());
}

/// `record -a`, which runs until it is stopped.
struct Recorder {
    file: PathBuf,
    child: Child,
}

impl Recorder {
    fn start(file: &Path) -> Self {
        let child = Command::new(program())
            .args([
                "record",
                "-a",
                "--probes",
                "log,flush,ilock",
                "--interval",
                "200ms",
            ])
            .args(["-q", "-o"])
            .arg(file)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Self {
            file: file.to_owned(),
            child,
        }
    }

    /// Its recording as it is now; `None` as long as there is none.
    fn report(&self) -> Option<Value> {
        self.file.exists().then(|| report(&self.file))
    }

    fn until(&self, what: &str, condition: impl Fn(&Value) -> bool) {
        eventually(what, || {
            self.report().is_some_and(|report| condition(&report))
        });
    }

    /// What the recording says of the probe of forces: outcome and reason.
    fn forces(&self) -> (String, String) {
        let report = self.report().unwrap();
        let all = report["probes"].as_array().unwrap();
        let row = all.iter().find(|row| row["probe"] == "forces").unwrap();
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("outcome"), text("reason"))
    }

    /// Waits until it is attached after having been let go so many times.
    fn until_attached(&self, let_go: usize) {
        eventually("XFS is attached to", || {
            let (outcome, reason) = self.forces();
            outcome == "attached"
                && reason.matches(" to ").count() == let_go
                && !reason.contains(" on:")
        });
    }

    /// By TERM, as INT may be ignored below a shell.
    fn stop(&mut self) -> Value {
        output("kill", &["-TERM", &self.child.id().to_string()]);
        assert!(self.child.wait().unwrap().success());
        report(&self.file)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
