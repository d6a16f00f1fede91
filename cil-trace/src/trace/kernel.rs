//! What this kernel allows, as far as it decides how probes are attached.

use crate::system::btf::KernelBtf;
use crate::system::kallsyms::Kallsyms;
use anyhow::Result;
use cil_trace_core::probes::Kernel;
use std::path::Path;

/// The kernel that cil-trace runs on.
pub struct RunningKernel {
    /// Its symbols.
    pub symbols: Kallsyms,
    /// Its types.
    pub btf: KernelBtf,
    kprobes: bool,
}

impl RunningKernel {
    /// Reads symbols and types.
    ///
    /// # Errors
    ///
    /// If either cannot be read; the text names the remedy.
    pub fn read() -> Result<Self> {
        // Both take some ten milliseconds, and the workload waits for them.
        std::thread::scope(|scope| {
            let btf = scope.spawn(KernelBtf::open);
            let symbols = Kallsyms::read()?;
            let btf = btf
                .join()
                .map_err(|_| anyhow::anyhow!("reading the kernel's BTF panicked"))??;
            // The only sign of CONFIG_KPROBES that does not need the kernel's configuration.
            let kprobes = Path::new("/sys/bus/event_source/devices/kprobe/type").exists();
            Ok(Self {
                symbols,
                btf,
                kprobes,
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
}
