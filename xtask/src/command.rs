//! Running other programs, each shown before it starts and named when it fails.

use crate::interrupt;
use anyhow::{Context, Result, bail};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Where cargo builds: `CARGO_TARGET_DIR`, or `target` in the workspace.
pub fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The cargo that started this program, in the workspace's root.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root());
    command
}

/// `program` with `args`.
pub fn command<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: &[S]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// The command line as a person would type it, without the environment.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}

/// Runs `command` with this program's own output and waits for its success.
///
/// # Errors
/// The command could not start, failed, or a signal asked this program to stop.
pub fn run(command: &mut Command) -> Result<()> {
    let line = shown(command);
    eprintln!("$ {line}");
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let status = interrupt::while_running(child.id(), || child.wait())?;
    interrupt::check()?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Runs `command` silently and gives its standard output. Goes on after a signal, so that guards
/// can clean up with it.
///
/// # Errors
/// The command could not start or failed; then what it wrote to standard error is in the message.
pub fn output(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let output = interrupt::while_running(child.id(), || child.wait_with_output())?;
    if !output.status.success() {
        bail!(
            "`{line}` failed: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
