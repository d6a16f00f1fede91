//! Running other programs, whose failure is the test's.

use std::ffi::OsStr;
use std::process::Command;

/// Runs `program` and gives its standard output.
///
/// # Panics
/// It could not start, or failed.
pub fn output<S: AsRef<OsStr>>(program: &str, args: &[S]) -> String {
    attempt(program, args).unwrap_or_else(|error| panic!("{error}"))
}

/// The same where a failure is no end: in `Drop`.
///
/// # Errors
/// What ran, and what it said.
pub fn attempt<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<String, String> {
    let line = || {
        let args: Vec<_> = args
            .iter()
            .map(|arg| arg.as_ref().to_string_lossy())
            .collect();
        format!("{program} {}", args.join(" "))
    };
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|error| format!("{}: {error}", line()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}: {}", line(), output.status, stderr.trim()))
}
