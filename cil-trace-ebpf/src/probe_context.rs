//! What a probe at a function's entry can tell besides the arguments.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::programs::ProbeContext;

/// Where the function returns to, at its first instruction.
#[inline(always)]
pub fn return_address(ctx: &ProbeContext) -> Option<u64> {
    // SAFETY: a kprobe's context is the registers.
    let registers = unsafe { &*ctx.regs };
    #[cfg(bpf_target_arch = "x86_64")]
    {
        // SAFETY: bpf_probe_read_kernel checks the address.
        unsafe { bpf_probe_read_kernel(registers.rsp as *const u64) }.ok()
    }
    #[cfg(bpf_target_arch = "aarch64")]
    {
        // The link register.
        Some(registers.regs[30])
    }
    #[cfg(not(any(bpf_target_arch = "x86_64", bpf_target_arch = "aarch64")))]
    {
        let _ = (registers, bpf_probe_read_kernel::<u64>);
        None
    }
}
