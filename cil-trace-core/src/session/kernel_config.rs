//! A kernel's configuration, as far as a comparison needs it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of a kernel's configuration is kept: enough to see whether and how two kernels differ in
/// what bears on timing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KernelConfig {
    /// FNV-1a, 64 bits, over all options that are set, sorted; kernels with the same digest have
    /// the same configuration.
    pub digest: String,
    /// The options that bear on timing, by name without `CONFIG_`.
    pub options: BTreeMap<String, String>,
}

/// How the names begin of the options that bear on timing: preemption, ticks, checks at run time,
/// mitigations, the compiler, XFS and the block layer.
const TIMING: &[&str] = &[
    "BFQ_",
    "BLK_",
    "CC_OPTIMIZE",
    "CC_VERSION_TEXT",
    "CPU_MITIGATIONS",
    "DEBUG_",
    "FAIL",
    "FTRACE",
    "FUNCTION_",
    "HZ",
    "IOSCHED_",
    "KASAN",
    "KCSAN",
    "KFENCE",
    "KMSAN",
    "LOCKDEP",
    "LOCK_STAT",
    "LTO_",
    "MEMCG",
    "MITIGATION_",
    "MQ_IOSCHED",
    "NO_HZ",
    "NR_CPUS",
    "NUMA",
    "PAGE_TABLE_",
    "PARAVIRT",
    "PREEMPT",
    "PROVE_",
    "QUEUED_",
    "RETPOLINE",
    "RWSEM_",
    "SLUB_",
    "SMP",
    "TRANSPARENT_HUGEPAGE",
    "UBSAN",
    "XFS_",
];

impl KernelConfig {
    /// Of the options that are set, by name with or without `CONFIG_`.
    #[must_use]
    pub fn of(options: impl IntoIterator<Item = (String, String)>) -> Self {
        let options: BTreeMap<String, String> = options
            .into_iter()
            .map(|(name, value)| (name.trim_start_matches("CONFIG_").to_owned(), value))
            .collect();
        let text = options
            .iter()
            .flat_map(|(name, value)| [name, "=", value, "\n"]);
        let digest = text
            .flat_map(str::bytes)
            .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
                (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        let bears = |name: &String| TIMING.iter().any(|start| name.starts_with(start));
        Self {
            digest: format!("{digest:016x}"),
            options: options
                .into_iter()
                .filter(|(name, _)| bears(name))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[(&str, &str)]) -> KernelConfig {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        KernelConfig::of(options.iter().map(owned))
    }

    #[test]
    fn the_digest_is_of_all_and_the_options_are_those_that_bear_on_timing() {
        let before = config(&[("CONFIG_HZ", "250"), ("CONFIG_USB", "y")]);
        assert_eq!(
            before.options,
            BTreeMap::from([("HZ".into(), "250".into())])
        );
        assert_eq!(before, config(&[("USB", "y"), ("HZ", "250")]));
        let after = config(&[("CONFIG_HZ", "250"), ("CONFIG_USB", "m")]);
        assert_eq!(before.options, after.options);
        assert_ne!(before.digest, after.digest);
        // FNV-1a of nothing is its offset basis.
        assert_eq!(config(&[]).digest, "cbf29ce484222325");
    }
}
