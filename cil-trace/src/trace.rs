//! The kernel side from user space: loading, attaching, and reading its maps.
//!
//! Nothing here decides what a number means; what is read becomes a
//! [`Tick`](cil_trace_core::tick::Tick).

mod attach;
mod bpf;
mod kernel;
mod load;
mod locks;
mod mapped;
mod maps;
mod module;
mod names;
mod processes;
mod program;
mod snapshot;
mod stacks;

pub use kernel::RunningKernel;
pub use load::{Options, Tracer};
pub use maps::Maps;
pub use snapshot::Reader;
pub use stacks::StackReader;
