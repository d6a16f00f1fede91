//! The memory that this process has allocated.

/// Gives back to the system what is free. The C library keeps it otherwise: what reading a large
/// file took for a moment would stay ours for good.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and may be called from any thread at any time (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}
