//! What is read of the machine before and while it is traced: symbols, BTF, devices, environment.
//!
//! Reading and parsing are kept apart: parsers take text or bytes and are tested on captures. What
//! must not be here: loading or attaching of BPF programs.

pub mod btf;
pub mod build_id;
pub mod debuginfo;
pub mod devices;
pub mod environment;
mod ioctl;
pub mod kallsyms;
pub mod mounts;
mod sysfs;
