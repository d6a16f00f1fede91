//! `cil-trace top` on a screen of tmux, for measuring; gone when dropped.

use crate::command::{command, output};
use crate::interrupt;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for the first look.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

/// A running `top`.
pub struct Screen {
    directory: TempDir,
    pid: u32,
}

impl Screen {
    /// Starts it on the filesystem on `device`, and waits until it shows numbers.
    ///
    /// # Errors
    /// tmux is missing, or `top` ended.
    pub fn top(tool: &Path, device: &str) -> Result<Self> {
        let mut screen = Self {
            directory: TempDir::with_prefix("cil-trace-")?,
            pid: 0,
        };
        let line = format!("exec {} top --device {device}", tool.display());
        let start = ["new-session", "-d", "-x", "120", "-y", "40", &line];
        screen
            .tmux(&start)
            .context("tmux; `cargo xtask setup` installs it")?;
        let pid = screen.tmux(&["display-message", "-p", "#{pane_pid}"])?;
        screen.pid = pid.trim().parse().context("tmux's pane_pid")?;
        let begun = Instant::now();
        while !screen.shown()?.contains("Rates") {
            interrupt::check()?;
            if begun.elapsed() > PATIENCE {
                bail!("top shows no numbers:\n{}", screen.shown()?);
            }
            sleep(POLL);
        }
        Ok(screen)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let mut tmux = command("tmux", &["-f", "/dev/null", "-u", "-S"]);
        tmux.arg(self.directory.path().join("socket"))
            .args(arguments)
            .env("LC_ALL", "C.UTF-8");
        output(&mut tmux)
    }

    /// What is on the screen.
    ///
    /// # Errors
    /// It is gone, because `top` ended.
    pub fn shown(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// CPU time that `top` itself has used, its threads' together, in nanoseconds.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_ns(&self) -> Result<u64> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.pid))? {
            // A thread that ends meanwhile was one that wrote a file, long ago.
            let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else {
                continue;
            };
            let ns = text.split(' ').next().unwrap_or_default();
            sum += ns.parse::<u64>().context("schedstat")?;
        }
        Ok(sum)
    }

    /// Its resident memory, in megabytes.
    ///
    /// # Errors
    /// It has ended.
    pub fn megabytes(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kib: f64 = kib.context("VmRSS")?.trim().parse()?;
        Ok(kib * 1024.0 / 1e6)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It takes `top` with it, which gives the kernel back by itself.
        let _ = self.tmux(&["kill-server"]);
    }
}
