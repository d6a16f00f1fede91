//! What this kernel allows, as far as it decides how probes are attached.

use crate::system::btf::{KernelBtf, Offsets};
use crate::system::kallsyms::Kallsyms;
use anyhow::{Context as _, Result, anyhow};
use aya::Btf;
use cil_trace_core::probes::Kernel;
use std::path::Path;

/// The kernel that cil-trace runs on.
pub struct RunningKernel {
    /// Its symbols.
    pub symbols: Kallsyms,
    /// Its types, by name and member.
    pub btf: KernelBtf,
    /// What the programs need of them.
    pub offsets: Offsets,
    /// vmlinux's types once more, as the loader wants them.
    pub loader_btf: Btf,
    kprobes: bool,
}

impl RunningKernel {
    /// Reads symbols and types, side by side: each takes some 50 ms, and the workload waits.
    ///
    /// # Errors
    ///
    /// If either cannot be read; the text names the remedy.
    pub fn read() -> Result<Self> {
        std::thread::scope(|scope| {
            let types = scope.spawn(|| -> Result<_> {
                let btf = KernelBtf::open()?;
                let offsets = btf.offsets();
                let loader_btf =
                    Btf::from_sys_fs().context("cannot parse /sys/kernel/btf/vmlinux")?;
                Ok((btf, offsets, loader_btf))
            });
            let symbols = Kallsyms::read()?;
            let (btf, offsets, loader_btf) = types
                .join()
                .map_err(|_| anyhow!("reading the kernel's BTF panicked"))??;
            Ok(Self {
                symbols,
                btf,
                offsets,
                loader_btf,
                // The only sign of CONFIG_KPROBES that does not need the kernel's configuration.
                kprobes: Path::new("/sys/bus/event_source/devices/kprobe/type").exists(),
            })
        })
    }
}

impl Kernel for RunningKernel {
    /// Every tracepoint has a function `__traceiter_<name>` since 5.10, in modules too.
    fn has_event(&self, name: &str) -> bool {
        self.symbols
            .address(&format!("__traceiter_{name}"))
            .is_some()
    }

    fn has_btf_event(&self, name: &str) -> bool {
        self.btf.has_event(name)
    }

    fn has_function(&self, name: &str) -> bool {
        self.symbols.address(name).is_some()
    }

    fn has_btf_function(&self, name: &str) -> bool {
        self.btf.has_function(name)
    }

    fn has_kprobes(&self) -> bool {
        self.kprobes
    }

    fn has_offset(&self, global: &str) -> bool {
        self.offsets.get(global).is_some()
    }
}
