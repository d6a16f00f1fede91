//! `offsets`: makes the data file anew by which kernels are measured that do not describe their
//! modules' types.
//!
//! Fetches the packages; what is made of them is cil-trace-offsets' business.

use crate::apt::{Apt, Archive};
use crate::command::{cargo, command, output, root, run, target_dir};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The data.
const FILE: &str = "cil-trace-core/offsets/debian-5.10";
/// Where Debian has those kernels.
const SUITES: &[(Archive, &str)] = &[
    (Archive::Main, "bullseye"),
    (Archive::Security, "bullseye-security"),
];

/// What to make it of.
#[derive(Args)]
pub struct Options {
    /// Packages by name, or .deb files: linux-image-...-dbg has debug information, of linux-image-...
    /// it is proved that its code is the same [default: those that the file was made of]
    packages: Vec<String>,
}

/// Makes it.
///
/// # Errors
/// A package cannot be had, or what is in it is no reason to write what would be in the file.
pub fn run_with(options: &Options) -> Result<()> {
    let file = root().join(FILE);
    let packages = if options.packages.is_empty() {
        made_of(&fs::read_to_string(&file).with_context(|| file.display().to_string())?)
    } else {
        options.packages.clone()
    };
    let directory = target_dir().join("offsets");
    fs::create_dir_all(&directory)?;
    let modules: Vec<_> = packages
        .iter()
        .map(|package| module(package, &directory).with_context(|| package.clone()))
        .collect::<Result<_>>()?;
    run(cargo()
        .args([
            "run",
            "--release",
            "--quiet",
            "--package=cil-trace-offsets",
            "--",
        ])
        .arg(file)
        .args(modules))
}

/// The packages that a file names.
fn made_of(file: &str) -> Vec<String> {
    let packages = file.lines().filter_map(|line| {
        let mut words = line.strip_prefix("build ")?.split(' ');
        words.nth(1).map(str::to_owned)
    });
    packages.collect()
}

/// A directory with the package's xfs.ko, `PACKAGE_VERSION`; what is not there is fetched.
fn module(package: &str, directory: &Path) -> Result<PathBuf> {
    let new = tempfile::tempdir_in(directory)?;
    let package = if Path::new(package).extension() == Some(OsStr::new("deb")) {
        PathBuf::from(package)
    } else {
        if let Some(found) = unpacked(package, directory)? {
            return Ok(found);
        }
        let apt = Apt::new(&directory.join("apt"), SUITES)?;
        apt.download(&[package.to_owned()], new.path())?;
        let fetched = fs::read_dir(new.path())?.next();
        fetched.context("nothing was fetched")??.path()
    };
    let field = |name| -> Result<String> {
        let value = output(command("dpkg-deb", &["--field"]).arg(&package).arg(name))?;
        Ok(value.trim().to_owned())
    };
    let place = directory.join(format!("{}_{}", field("Package")?, field("Version")?));
    fs::create_dir_all(&place)?;
    let mut archive = command("dpkg-deb", &["--fsys-tarfile"])
        .arg(&package)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start dpkg-deb")?;
    let contents = archive.stdout.take().context("no output of dpkg-deb")?;
    // Its path, whose depth differs between packages, is taken off.
    let written = command(
        "tar",
        &[
            "--extract",
            "--wildcards",
            "--transform=s,.*/,,",
            "--directory",
        ],
    )
    .arg(&place)
    .arg("*/fs/xfs/xfs.ko")
    .stdin(contents)
    .status()?;
    archive.wait()?;
    ensure!(written.success(), "tar found no xfs.ko in it");
    Ok(place)
}

/// Where a package is that has been fetched before.
fn unpacked(package: &str, directory: &Path) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name
            .split_once('_')
            .is_some_and(|(name, _)| name == package)
            && path.join("xfs.ko").exists()
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::made_of;

    #[test]
    fn a_file_names_its_packages() {
        let file = "# build ID PACKAGE VERSION\nbuild 01 one-dbg 5.1-1 debug-information\n\
                    build 02 two 5.2-1 same-code 1/2\n\nLOG 3 xlog.log\n";
        assert_eq!(made_of(file), ["one-dbg", "two"]);
    }
}
