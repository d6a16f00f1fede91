//! What `doctor` says can be measured, on every kernel that was noted down, without any of them.
//!
//! A kernel that is booted must say the same. After a wanted change: `INSTA_UPDATE=always`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cil_trace_core::probes::facts::KernelFacts;
use cil_trace_core::probes::features::{features, text};
use cil_trace_core::probes::{Set, outcomes};
use std::path::Path;

#[test]
fn each_kernel_measures_what_it_did() {
    let noted = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cil-trace-core/tests/kernels");
    for kernel in ["5.10", "6.1", "6.12", "6.18", "newest", "machine"] {
        let facts = std::fs::read_to_string(noted.join(format!("{kernel}.json"))).unwrap();
        let facts: KernelFacts = serde_json::from_str(&facts).unwrap();
        let outcomes = outcomes(Set::ALL, &facts, |_| Ok(()));
        insta::with_settings!({
            prepend_module_to_snapshot => false,
            omit_expression => true,
            snapshot_path => "doctor",
        }, {
            insta::assert_snapshot!(kernel, text(&features(&outcomes)));
        });
    }
}
