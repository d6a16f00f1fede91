//! The demo: a real benchmark on a scratch XFS, recorded, reported and drawn.

use crate::command::{self, command, output, root};
use crate::scratch::Scratch;
use crate::{build, interrupt, packages, setup};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::{env, iter};

const SECONDS: u32 = 10;
const CLIENTS: u32 = 2;

/// Leaves `demo/` with the recording, the report and the pictures.
///
/// # Errors
/// Any step failed, or a signal came; the scratch XFS is gone in both cases.
pub fn run() -> Result<()> {
    interrupt::defer()?;
    let tool = build::with(setup::all()?)?;
    let demo = root().join("demo");
    fs::create_dir_all(&demo).with_context(|| demo.display().to_string())?;
    let recording = demo.join("cil-trace.data");

    let scratch = Scratch::mount()?;
    command::run(
        command(
            &tool,
            &["record", "--keep-root", "--device", scratch.device()],
        )
        .arg("-o")
        .arg(&recording)
        .arg("--")
        .args(workload(&scratch)?),
    )?;
    drop(scratch);

    print!("{}", output(command(&tool, &["report"]).arg(&recording))?);
    command::run(
        command(&tool, &["report"])
            .arg(&recording)
            .arg("--html")
            .arg(demo.join("report.html")),
    )?;
    command::run(
        command(&tool, &["flamegraph"])
            .arg(&recording)
            .args(["--kind", "flush", "-o"])
            .arg(demo.join("flush.svg")),
    )?;
    eprintln!(
        "{} holds the recording, report.html and flush.svg",
        demo.display()
    );
    Ok(())
}

/// dbench, or this program's own workload where there is none.
fn workload(scratch: &Scratch) -> Result<Vec<OsString>> {
    if packages::missing(&["dbench"])?.is_empty() {
        let dbench = scratch.dbench(SECONDS, CLIENTS);
        return Ok(iter::once(dbench.get_program())
            .chain(dbench.get_args())
            .map(OsString::from)
            .collect());
    }
    Ok(vec![
        env::current_exe()?.into(),
        "workload".into(),
        scratch.mountpoint().into(),
        format!("--seconds={SECONDS}").into(),
    ])
}
