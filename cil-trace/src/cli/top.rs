//! The flags of `top`.

use super::{device_name, filters, time};
use crate::options::{SAMPLING, SAMPLING_HZ, TopOptions, Tracing};
use cil_trace_core::probes::Set;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Show the log live, or play a recording
///
/// Takes the whole screen, with one key for each tab and ? for the keys; q quits. Where standard
/// output is no terminal, frames of plain text come instead, as with --batch, until nobody reads
/// them any more.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// Tell the work of this process and its descendants from that of others
    #[arg(short, long, value_name = "PID", conflicts_with = "all",
          value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Watch the whole machine, also while no XFS is mounted
    #[arg(short, long)]
    all: bool,
    /// Keep only the filesystem mounted here, and the devices beneath it (may be repeated)
    #[arg(long, value_name = "PATH")]
    mount: Vec<PathBuf>,
    /// Keep only the filesystem on this device, loop2 or /dev/loop2 (may be repeated)
    #[arg(long, value_name = "DEV", value_parser = device_name)]
    device: Vec<String>,
    /// Time between two looks, such as 1s or 250ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print N frames of plain text and end; those of a recording at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: Option<u64>,
    /// Play this recording, with time travel; needs neither root nor the machine
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["pid", "all", "mount", "device", "interval"])]
    replay: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  cil-trace top
  cil-trace top --mount /srv --interval 250ms
  cil-trace top --batch 10 > ten-seconds.txt
  cil-trace top --replay cil-trace.data";

/// What there are tabs for: samples and time off the CPUs are pictures' business.
const SHOWN: [Set; 4] = [Set::Log, Set::Flush, Set::Ilock, Set::Locks];

/// Shortest time between two looks: each costs some milliseconds.
const SHORTEST: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = time(text)?;
    if interval < SHORTEST {
        return Err("must be 100ms or longer".to_owned());
    }
    Ok(interval)
}

impl TopArgs {
    pub(super) fn options(self) -> TopOptions {
        TopOptions {
            tracing: Tracing {
                filters: filters(self.mount, self.device),
                probes: SHOWN.to_vec(),
                interval: self.interval,
                wait_for_xfs: self.all,
                sampling_hz: SAMPLING_HZ,
                sampling: SAMPLING,
            },
            pid: self.pid,
            replay: self.replay,
            batch: self.batch,
        }
    }
}
