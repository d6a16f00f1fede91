//! Every lock traced under a load that takes and waits for all of them, in virtual machines: nothing
//! may dead-lock, and no processor may be stuck.

use super::Soak;
use crate::interrupt;
use crate::vm::{self, Ended, Guest, Kernel};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

const KERNELS: [Kernel; 3] = [Kernel::V6_1, Kernel::V6_12, Kernel::Newest];

/// Seconds, on top of the load's own time, to boot, to attach and to save.
const GRACE: u32 = 240;

/// What the kernel says of itself when somebody waits for ever.
const STUCK: &[&str] = &[
    "soft lockup",
    "hard LOCKUP",
    "blocked for more than",
    "self-detected stall",
    "detected stalls",
    "possible recursive locking",
    "circular locking",
    "scheduling while atomic",
    "Kernel panic",
];

/// `$0` seconds of the load under a tracer of everything; then the report must have waits in it.
const COMMAND: &str = "echo 60 >/proc/sys/kernel/hung_task_timeout_secs; \
     cil-trace record -q --keep-root --probes all --overhead-budget off -o /out/soak.data -- \
     stress-ng --xattr 8 --dentry 8 --timeout \"$0\" && \
     cil-trace report /out/soak.data locks --format csv >/out/locks.csv && \
     cil-trace report /out/soak.data loss";

/// On one kernel after the other.
pub fn run(soak: &Soak) -> Result<()> {
    vm::ready()?;
    let seconds = u32::try_from(soak.time.as_secs())?;
    let stress = Path::new("/usr/bin/stress-ng");
    if !stress.exists() {
        bail!("no {}; `cargo xtask setup` installs it", stress.display());
    }
    let mut failures = Vec::new();
    let kernels = match soak.kernels.as_slice() {
        [] => &KERNELS,
        asked => asked,
    };
    for &kernel in kernels {
        interrupt::check()?;
        match on(kernel, &soak.tool, stress.to_owned(), seconds) {
            Ok(waits) => println!(
                "locks: {seconds} s on {}: {waits} kinds of lock waited for, nothing stuck",
                kernel.series()
            ),
            Err(error) => {
                println!("locks: {seconds} s on {}: {error:#}", kernel.series());
                failures.push(kernel.series());
            }
        }
    }
    if !failures.is_empty() {
        bail!("failed on {}", failures.join(", "));
    }
    Ok(())
}

/// How many locks somebody waited for.
fn on(kernel: Kernel, tool: &Path, stress: PathBuf, seconds: u32) -> Result<usize> {
    let time = seconds.to_string();
    let guest = Guest {
        files: vec![stress],
        limit: seconds + GRACE,
        cpus: 2,
        command: ["sh", "-c", COMMAND, &time].map(str::to_owned).to_vec(),
    };
    let ended = vm::guest(kernel, tool, &guest)?;
    let messages = read(&ended, "dmesg")? + &read(&ended, "console")?;
    if let Some(line) = stuck(&messages) {
        bail!("the kernel said: {line}");
    }
    if ended.status != 0 {
        bail!(
            "exit status {}; outputs, messages and console are in {}",
            ended.status,
            ended.results.display()
        );
    }
    let rows = read(&ended, "locks.csv")?.lines().skip(1).count();
    if rows == 0 {
        bail!("nobody waited for a lock, so this showed nothing");
    }
    Ok(rows)
}

fn read(ended: &Ended, name: &str) -> Result<String> {
    let path = ended.results.join(name);
    let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first complaint.
fn stuck(messages: &str) -> Option<&str> {
    let complains = |line: &&str| STUCK.iter().any(|word| line.contains(word));
    let line = messages.lines().find(complains);
    line.or_else(|| vm::splat(messages))
}

#[cfg(test)]
mod tests {
    use super::stuck;

    #[test]
    fn a_complaint_of_the_kernel_is_found() {
        let quiet = "[    1.0] XFS (vda): Mounting V5 Filesystem\n";
        assert_eq!(stuck(quiet), None);
        let lockup = "[   99.1] watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [stress-ng:7]";
        assert_eq!(stuck(&format!("{quiet}{lockup}\n")), Some(lockup));
        let warning = "[ 3.0] ------------[ cut here ]------------\n[ 3.0] WARNING: CPU: 0\n";
        assert_eq!(stuck(warning), Some("[ 3.0] WARNING: CPU: 0"));
    }
}
