//! What a kernel allows, noted down: so that another kernel's answers can be given without it.
//!
//! Kept as raw as it was found (names and members, not answers), so that a new probe can be resolved
//! against kernels that were noted down before.

mod selection;
mod types;

pub use selection::{is_relevant_event, is_relevant_function, relevant_enums, relevant_structs};
pub use types::{Arguments, Member, Types};

use super::{Home, Kernel, Part, source_name};
use crate::debuginfo::Instance;
use crate::offsets::Layout;
use cil_trace_common::offset::{OFFSETS, Offset};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Names by who has them.
pub type Inventory = BTreeMap<Home, BTreeSet<String>>;

/// What was found of a kernel, as far as it concerns the log, block devices, locks, work queues
/// and tasks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelFacts {
    /// `uname -r`.
    pub release: String,
    /// `uname -m`.
    pub architecture: String,
    /// The build id of the code that is XFS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xfs_build: Option<String>,
    /// Whether kprobes can be attached.
    pub kprobes: bool,
    /// Why programs on BPF trampolines are refused.
    pub trampolines_refused: Option<String>,
    /// Tracepoints.
    pub events: Inventory,
    /// Symbols of functions, clones included.
    pub functions: Inventory,
    /// Functions that BTF describes.
    pub described_functions: Inventory,
    /// Where functions' code begins, if there was debug information to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<BTreeMap<String, Vec<Instance>>>,
    /// What BTF says of structures, enumerations and tracepoints.
    pub types: Types,
}

impl Kernel for KernelFacts {
    fn release(&self) -> &str {
        &self.release
    }

    fn xfs_build(&self) -> Option<&str> {
        self.xfs_build.as_deref()
    }

    fn has_event(&self, name: &str) -> bool {
        home_of(&self.events, name).is_some()
    }

    fn btf_of_event(&self, name: &str) -> Option<Home> {
        self.types.home_of_event(name)
    }

    fn symbols(&self, function: &str) -> Vec<String> {
        let symbols = self.functions.values().flatten();
        symbols
            .filter(|symbol| source_name(symbol) == function && Part::of(symbol).attachable())
            .cloned()
            .collect()
    }

    fn btf_of_function(&self, name: &str) -> Option<Home> {
        home_of(&self.described_functions, name)
    }

    fn instances(&self, function: &str) -> Option<&[Instance]> {
        let instances = self.instances.as_ref()?.get(function);
        Some(instances.map_or(&[], Vec::as_slice))
    }

    fn has_kprobes(&self) -> bool {
        self.kprobes
    }

    fn trampolines_refused(&self) -> Option<&str> {
        self.trampolines_refused.as_deref()
    }

    fn has_offset(&self, global: &str) -> bool {
        let row = OFFSETS.iter().find(|row| row.global == global);
        row.is_some_and(|row| self.offset(row).is_some())
    }
}

impl KernelFacts {
    /// What a row's global is set to; `None` if the kernel has no such thing.
    #[must_use]
    pub fn offset(&self, row: &Offset) -> Option<u32> {
        self.types.value(row.source).or_else(|| {
            let layout = Layout::of_build(self.xfs_build.as_deref()?)?;
            layout.get(row.global)
        })
    }
}

fn home_of(inventory: &Inventory, name: &str) -> Option<Home> {
    let (home, _) = inventory.iter().find(|(_, names)| names.contains(name))?;
    Some(home.clone())
}
