//! The impure part of cil-trace: what touches the kernel, processes, files and the terminal.

pub mod system;
pub mod trace;
