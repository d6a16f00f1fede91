//! What keeps the verifier's work short.

/// The same number, of which the verifier knows nothing any more.
///
/// It follows each value that a variable may have to the end of the program, as long as one of the
/// branches on the way asks for it. Where a choice among many is over, this lets the rest be looked
/// at once. `unknown` is any number that is not a constant to it.
#[inline(always)]
pub fn forget(value: u64, unknown: u64) -> u64 {
    #[cfg(target_arch = "bpf")]
    {
        let mut value = value;
        // SAFETY: two additions in a register.
        unsafe {
            core::arch::asm!("{0} += {1}", "{0} -= {1}", inout(reg) value, in(reg) unknown);
        }
        value
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        let _ = unknown;
        value
    }
}
