//! Fetches a kernel's packages from the mirror that this machine's apt uses, and unpacks them.
//!
//! By an apt configuration and state of its own: neither the machine's sources nor its packages
//! change. Needs no root.

use super::kernels::{Archive, Kernel};
use crate::command::{command, output, run};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The archive's keys, as every Debian has them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// How long an index is good.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// An unpacked kernel.
pub struct Image {
    /// As `uname -r` gives it.
    pub version: String,
    /// Holds `lib/modules`.
    pub root: PathBuf,
    /// The kernel itself.
    pub vmlinuz: PathBuf,
    /// Its configuration.
    pub config: PathBuf,
}

/// The newest version of `kernel`, fetched and unpacked below `directory`, unless it is there.
///
/// # Errors
/// The machine's apt knows no Debian mirror, or the mirror did not give what was asked of it.
pub fn kernel(directory: &Path, kernel: Kernel) -> Result<Image> {
    let apt = Apt::new(&directory.join("apt").join(kernel.series()), kernel)?;
    let names = output(apt.command("apt-cache").args(["pkgnames", "linux-"]))?;
    let names: Vec<_> = names.lines().collect();
    let packages = kernel.packages(&names).with_context(|| {
        format!(
            "the index of {} has no kernel {}",
            apt.suites,
            kernel.series()
        )
    })?;
    let root = directory.join("kernels").join(packages.join("+"));
    if !root.exists() {
        let new = tempfile::tempdir_in(directory)?;
        run(apt
            .command("apt-get")
            .args(["download", "-qq"])
            .args(&packages)
            .current_dir(new.path()))?;
        unpack(new.path(), &root)?;
    }
    image(root)
}

/// Unpacks the packages in `from` to `root`, which then holds all of them or does not exist.
fn unpack(from: &Path, root: &Path) -> Result<()> {
    let unpacked = from.join("root");
    for entry in fs::read_dir(from)? {
        let package = entry?.path();
        if package.extension().is_some_and(|end| end == "deb") {
            output(
                command("dpkg-deb", &["--extract"])
                    .arg(package)
                    .arg(&unpacked),
            )?;
        }
    }
    // depmod looks for lib/modules, where packages up to 6.1 have it.
    if !unpacked.join("lib").exists() {
        std::os::unix::fs::symlink("usr/lib", unpacked.join("lib"))?;
    }
    if let Some(kernels) = root.parent() {
        fs::create_dir_all(kernels)?;
    }
    fs::rename(&unpacked, root).with_context(|| root.display().to_string())
}

fn image(root: PathBuf) -> Result<Image> {
    let modules = root.join("lib/modules");
    let version = fs::read_dir(&modules)
        .with_context(|| modules.display().to_string())?
        .next()
        .with_context(|| format!("{} is empty", modules.display()))??
        .file_name()
        .to_string_lossy()
        .into_owned();
    // In /boot up to 6.18, beside the modules since.
    let find = |name: &str| {
        let places = [
            root.join("boot").join(format!("{name}-{version}")),
            modules.join(&version).join(name),
        ];
        let found = places.into_iter().find(|path| path.exists());
        found.with_context(|| format!("no {name} of {version} below {}", root.display()))
    };
    Ok(Image {
        vmlinuz: find("vmlinuz")?,
        config: find("config")?,
        version,
        root,
    })
}

/// apt with a configuration, an index and a cache of its own.
struct Apt {
    configuration: PathBuf,
    suites: String,
}

impl Apt {
    /// Reads the index of the kernel's suites, unless that was done within a day.
    fn new(directory: &Path, kernel: Kernel) -> Result<Self> {
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(directory.join(part))?;
        }
        let suites: Vec<_> = kernel.suites().iter().map(|(_, suite)| *suite).collect();
        let apt = Self {
            configuration: directory.join("apt.conf"),
            suites: suites.join(" and "),
        };
        let wanted = configuration(directory);
        // It holds absolute paths, and the directory may have been moved or copied.
        let same = fs::read_to_string(&apt.configuration).is_ok_and(|found| found == wanted);
        let recent = fs::metadata(&apt.configuration)
            .and_then(|found| found.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age < FRESH));
        if !(same && recent) {
            let mut sources = String::new();
            for &(archive, suite) in kernel.suites() {
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
