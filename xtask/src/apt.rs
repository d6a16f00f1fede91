//! Debian packages of other suites, from the mirror that this machine's apt uses.
//!
//! By an apt configuration and state of its own: neither the machine's sources nor its packages
//! change. Needs no root.

use crate::command::{command, output, run};
use anyhow::{Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The archive's keys, as every Debian has them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// How long an index is good.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// A part of the Debian archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Archive {
    /// `debian`
    Main,
    /// `debian-security`
    Security,
}

impl Archive {
    /// Its label in release files, by which apt knows it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Main => "Debian",
            Self::Security => "Debian-Security",
        }
    }
}

/// apt with a configuration, an index and a cache of its own.
pub struct Apt {
    configuration: PathBuf,
    suites: String,
}

impl Apt {
    /// Reads the index of the suites, unless that was done within a day; `directory` is its own.
    ///
    /// # Errors
    /// The machine's apt knows no Debian mirror, or that has no such suites.
    pub fn new(directory: &Path, suites: &[(Archive, &str)]) -> Result<Self> {
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(directory.join(part))?;
        }
        let names: Vec<_> = suites.iter().map(|(_, suite)| *suite).collect();
        let apt = Self {
            configuration: directory.join("apt.conf"),
            suites: names.join(" and "),
        };
        let wanted = configuration(directory);
        // It holds absolute paths, and the directory may have been moved or copied.
        let same = fs::read_to_string(&apt.configuration).is_ok_and(|found| found == wanted);
        let recent = fs::metadata(&apt.configuration)
            .and_then(|found| found.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age < FRESH));
        if !(same && recent) {
            let mut sources = String::new();
            for &(archive, suite) in suites {
                sources.push_str(&source(archive, suite)?);
            }
            fs::write(directory.join("sources.list"), sources)?;
            fs::write(&apt.configuration, wanted)?;
            // Without its configuration the next run reads the index again.
            if let Err(error) = run(apt.command("apt-get").args(["update", "-qq"])) {
                fs::remove_file(&apt.configuration)?;
                return Err(error);
            }
        }
        Ok(apt)
    }

    /// The suites, for messages.
    pub fn suites(&self) -> &str {
        &self.suites
    }

    /// The packages whose names begin so, a line each.
    ///
    /// # Errors
    /// apt-cache failed.
    pub fn names(&self, prefix: &str) -> Result<String> {
        output(self.command("apt-cache").args(["pkgnames", prefix]))
    }

    /// Fetches packages into a directory.
    ///
    /// # Errors
    /// The mirror did not give all of them.
    pub fn download(&self, packages: &[String], to: &Path) -> Result<()> {
        run(self
            .command("apt-get")
            .args(["download", "-qq"])
            .args(packages)
            .current_dir(to))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.configuration);
        command
    }
}

/// A line of sources.list: the suite on the mirror that this machine takes that archive from.
fn source(archive: Archive, suite: &str) -> Result<String> {
    let known = output(&mut command(
        "apt-get",
        &[
            "indextargets",
            "--format=$(LABEL) $(REPO_URI)",
            "Created-By: Packages",
        ],
    ))?;
    let mirror = known.lines().find_map(|line| {
        let (label, mirror) = line.split_once(' ')?;
        (label == archive.label()).then_some(mirror)
    });
    let Some(mirror) = mirror else {
        bail!(
            "apt has no source labelled {}: `apt-get update`, and see /etc/apt/sources.list",
            archive.label()
        );
    };
    Ok(format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n"))
}

/// Set before the machine's own apt.conf.d is read, which so still names a proxy.
fn configuration(directory: &Path) -> String {
    let directory = directory.display();
    format!(
        "Dir::Etc::SourceList \"{directory}/sources.list\";\n\
         Dir::Etc::SourceParts \"-\";\n\
         Dir::State::Lists \"{directory}/lists\";\n\
         Dir::State::Status \"/dev/null\";\n\
         Dir::Cache \"{directory}/cache\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         APT::Sandbox::User \"\";\n"
    )
}
