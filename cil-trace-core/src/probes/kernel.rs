//! What must be known of a kernel to decide how its log can be measured.

use crate::debuginfo::Instance;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is known of a kernel, as far as it decides between ways.
///
/// Answered by the running kernel, and by what was noted down of another
/// ([`KernelFacts`](super::facts::KernelFacts)).
pub trait Kernel {
    /// `uname -r`.
    fn release(&self) -> &str;
    /// The build id of the code that is XFS: the module's, or the kernel's.
    fn xfs_build(&self) -> Option<&str>;
    /// Whether a tracepoint exists, built in or in a loaded module.
    fn has_event(&self, name: &str) -> bool;
    /// Whose BTF describes a tracepoint.
    fn btf_of_event(&self, name: &str) -> Option<Home>;
    /// The symbols with a function's code, by its name in the source; halves that are jumped to are
    /// left out.
    fn symbols(&self, function: &str) -> Vec<String>;
    /// Whose BTF describes a function.
    fn btf_of_function(&self, name: &str) -> Option<Home>;
    /// Where a function's code begins, its own and where it has been inlined; `None` if there is no
    /// debug information to tell.
    fn instances(&self, function: &str) -> Option<&[Instance]>;
    /// Whether kprobes can be attached.
    fn has_kprobes(&self) -> bool;
    /// Why programs on BPF trampolines are refused; `None` if they are not.
    fn trampolines_refused(&self) -> Option<&str>;
    /// Whether the offset with this name is known.
    fn has_offset(&self, global: &str) -> bool;
}

/// The first two numbers of a release, by which kernels are ordered.
#[must_use]
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Who holds code and describes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Home {
    /// The kernel image.
    Vmlinux,
    /// The module with this name.
    Module(String),
}

impl Home {
    /// Its file's name in /sys/kernel/btf.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Vmlinux => "vmlinux",
            Self::Module(name) => name,
        }
    }
}

impl From<&str> for Home {
    fn from(name: &str) -> Self {
        match name {
            "vmlinux" => Self::Vmlinux,
            name => Self::Module(name.to_owned()),
        }
    }
}

impl From<String> for Home {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<Home> for String {
    fn from(home: Home) -> Self {
        home.name().to_owned()
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a symbol came from a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The function as written.
    Whole,
    /// A clone that the compiler made (`.isra.0`, `.constprop.0`, `.part.0`, `.llvm.1`); its
    /// arguments may differ from the source's.
    Clone,
    /// The unlikely half that was moved away (`.cold`); it is jumped to, never called.
    Cold,
}

impl Part {
    /// By a symbol's suffixes.
    #[must_use]
    pub fn of(symbol: &str) -> Self {
        let mut suffixes = symbol.split('.').skip(1).peekable();
        if suffixes.peek().is_none() {
            Self::Whole
        } else if suffixes.any(|suffix| suffix == "cold") {
            Self::Cold
        } else {
            Self::Clone
        }
    }

    /// Whether a probe at the symbol's start sees calls of the function.
    #[must_use]
    pub const fn attachable(self) -> bool {
        !matches!(self, Self::Cold)
    }
}

/// The function's name in the source: a symbol up to the compiler's suffix.
#[must_use]
pub fn source_name(symbol: &str) -> &str {
    symbol.split_once('.').map_or(symbol, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_told_apart() {
        for (symbol, expected) in [
            ("xfs_ilock", Part::Whole),
            ("f.isra.0", Part::Clone),
            ("f.constprop.12", Part::Clone),
            ("f.part.0.isra.0", Part::Clone),
            ("f.llvm.1234567", Part::Clone),
            ("f.isra.0.cold", Part::Cold),
            ("f.cold.3", Part::Cold),
            ("f_cold", Part::Whole),
        ] {
            assert_eq!(Part::of(symbol), expected, "{symbol}");
        }
        assert_eq!(source_name("f.part.0.isra.0"), "f");
    }
}
