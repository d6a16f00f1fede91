//! What is known when the window opens: the machine, what is followed, how the probes came out.

use super::followed::Followed;
use super::generation::Generation;
use crate::options::Tracing;
use anyhow::{Context as _, Result};
use cil_trace_core::probes::{Set, absent_locks};
use cil_trace_core::session::{Header, KernelConfig, Machine, Scope};
use nix::sys::sysinfo::sysinfo;
use nix::sys::utsname::uname;
use procfs::ConfigSetting;
use std::thread::available_parallelism;

/// The header of a session without a workload, whose window has not opened.
///
/// # Errors
///
/// If the kernel does not say what it is.
pub fn header(tracing: &Tracing, followed: &Followed, generation: &Generation) -> Result<Header> {
    let devices = followed.devices();
    let names = || devices.iter().map(|device| device.name.clone()).collect();
    Ok(Header {
        tool: concat!("cil-trace ", env!("CARGO_PKG_VERSION")).to_owned(),
        machine: machine()?,
        scope: Scope {
            devices: match tracing.filters.as_slice() {
                [] => Vec::new(),
                _ => names(),
            },
            pid: None,
            sampling_hz: tracing
                .probes
                .contains(&Set::Cpu)
                .then_some(tracing.sampling_hz),
            probe_sets: tracing
                .probes
                .iter()
                .map(|set| set.name().to_owned())
                .collect(),
        },
        started_at: jiff::Timestamp::now().to_string(),
        interval_ns: u64::try_from(tracing.interval.as_nanos()).unwrap_or(u64::MAX),
        probes: generation.tracer.outcomes.clone(),
        devices,
        absent_locks: absent_locks(&generation.kernel)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        ..Header::default()
    })
}

fn machine() -> Result<Machine> {
    let name = uname().context("uname")?;
    let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    Ok(Machine {
        kernel: text(name.release()),
        kernel_version: text(name.version()),
        architecture: text(name.machine()),
        hostname: text(name.nodename()),
        cpus: available_parallelism()
            .map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
        memory_bytes: sysinfo().context("sysinfo")?.ram_total(),
        kernel_config: kernel_config(),
    })
}

/// From /proc/config.gz or /boot; a machine need not have either.
fn kernel_config() -> Option<KernelConfig> {
    let set = procfs::kernel_config().ok()?.into_iter();
    Some(KernelConfig::of(set.map(|(name, setting)| {
        let value = match setting {
            ConfigSetting::Yes => "y".to_owned(),
            ConfigSetting::Module => "m".to_owned(),
            ConfigSetting::Value(value) => value,
        };
        (name, value)
    })))
}
