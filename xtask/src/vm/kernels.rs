//! Which kernels there are, and which of an index's packages a kernel consists of.
//!
//! Versions are never written down here: the newest one of a series that the index has is taken.

use crate::apt::Archive;
use clap::ValueEnum;
use std::str::FromStr;

/// A series of kernels; `cloud` flavour, which is the smallest and has all that is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kernel {
    /// Debian 11's: no BTF of modules
    #[value(name = "5.10")]
    V5_10,
    /// Debian 12's
    #[value(name = "6.1")]
    V6_1,
    /// Debian 13's
    #[value(name = "6.12")]
    V6_12,
    /// From Debian 13's backports
    #[value(name = "6.18")]
    V6_18,
    /// The newest one in Debian 13's backports
    #[value(name = "newest")]
    Newest,
}

/// Kernels as a command line names them: one, or `all`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection(pub Vec<Kernel>);

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(Kernel::value_variants().to_vec()));
        }
        Kernel::from_str(text, false)
            .map(|kernel| Self(vec![kernel]))
            .map_err(|_| {
                let known: Vec<_> = Kernel::value_variants()
                    .iter()
                    .map(|kernel| kernel.series())
                    .collect();
                format!("one of {}, or all", known.join(", "))
            })
    }
}

impl Kernel {
    /// Its name on the command line.
    pub fn series(self) -> &'static str {
        match self {
            Self::V5_10 => "5.10",
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::V6_18 => "6.18",
            Self::Newest => "newest",
        }
    }

    /// Where Debian has it.
    pub fn suites(self) -> &'static [(Archive, &'static str)] {
        match self {
            Self::V5_10 => &[(Archive::Security, "bullseye-security")],
            Self::V6_1 => &[
                (Archive::Main, "bookworm"),
                (Archive::Security, "bookworm-security"),
            ],
            Self::V6_12 => &[
                (Archive::Main, "trixie"),
                (Archive::Security, "trixie-security"),
            ],
            Self::V6_18 | Self::Newest => &[(Archive::Main, "trixie-backports")],
        }
    }

    /// The packages of its newest version among an index's `names`; `None` if there is none.
    ///
    /// Up to 6.18 an image is one package, then `linux-image` only depends on the parts.
    pub fn packages(self, names: &[&str]) -> Option<Vec<String>> {
        const PARTS: [&str; 3] = ["linux-binary-", "linux-modules-", "linux-base-"];
        let version = names
            .iter()
            .filter_map(|name| name.strip_prefix("linux-image-"))
            .filter(|version| version.ends_with("-cloud-amd64") && self.contains(version))
            .max_by_key(|version| numbers(version))?;
        let parts: Vec<_> = PARTS
            .iter()
            .map(|part| format!("{part}{version}"))
            .filter(|package| names.contains(&package.as_str()))
            .collect();
        if parts.is_empty() {
            Some(vec![format!("linux-image-{version}")])
        } else {
            Some(parts)
        }
    }

    fn contains(self, version: &str) -> bool {
        let numbers = numbers(version);
        // `linux-image-6.12-cloud-amd64` and `linux-image-cloud-amd64` stand for some version.
        numbers.len() > 2
            && (self == Self::Newest || numbers.starts_with(&self::numbers(self.series())))
    }
}

/// The numbers in a version, by which versions are ordered.
fn numbers(version: &str) -> Vec<u64> {
    version
        .trim_end_matches("-cloud-amd64")
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Kernel, Selection};

    #[test]
    fn a_selection_is_one_or_all() {
        let chosen = |text: &str| text.parse().map(|Selection(kernels)| kernels);
        assert_eq!(chosen("6.12"), Ok(vec![Kernel::V6_12]));
        assert_eq!(chosen("all").map(|kernels| kernels.len()), Ok(5));
        let refused = "one of 5.10, 6.1, 6.12, 6.18, newest, or all";
        assert_eq!(chosen("5.14"), Err(refused.to_owned()));
    }

    const NAMES: &[&str] = &[
        "linux-image-5.10.0-9-cloud-amd64",
        "linux-image-5.10.0-46-cloud-amd64",
        "linux-image-5.10.0-46-cloud-amd64-dbg",
        "linux-image-5.10.0-46-amd64",
        "linux-image-6.1.0-57-cloud-amd64",
        "linux-image-6.12-cloud-amd64",
        "linux-image-6.12.107+deb13-cloud-amd64",
        "linux-image-6.12.117+deb13-cloud-amd64",
        "linux-image-7.2.12+deb13-cloud-amd64",
        "linux-binary-7.2.12+deb13-cloud-amd64",
        "linux-image-7.3.4+deb13-cloud-amd64",
        "linux-binary-7.3.4+deb13-cloud-amd64",
        "linux-modules-7.3.4+deb13-cloud-amd64",
        "linux-image-cloud-amd64",
    ];

    #[test]
    fn the_newest_of_a_series_is_taken() {
        let taken = |kernel: Kernel| kernel.packages(NAMES).unwrap_or_default();
        assert_eq!(taken(Kernel::V5_10), ["linux-image-5.10.0-46-cloud-amd64"]);
        assert_eq!(taken(Kernel::V6_1), ["linux-image-6.1.0-57-cloud-amd64"]);
        assert_eq!(
            taken(Kernel::V6_12),
            ["linux-image-6.12.117+deb13-cloud-amd64"]
        );
        assert_eq!(Kernel::V6_18.packages(NAMES), None);
    }

    #[test]
    fn a_kernel_in_parts_is_all_of_them() {
        assert_eq!(
            Kernel::Newest.packages(NAMES).unwrap_or_default(),
            [
                "linux-binary-7.3.4+deb13-cloud-amd64",
                "linux-modules-7.3.4+deb13-cloud-amd64"
            ]
        );
    }
}
