//! Fetches a kernel's packages and unpacks them. Needs no root.

use super::kernels::Kernel;
use crate::apt::Apt;
use crate::command::{command, output};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

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
    let apt = Apt::new(
        &directory.join("apt").join(kernel.series()),
        kernel.suites(),
    )?;
    let names = apt.names("linux-")?;
    let names: Vec<_> = names.lines().collect();
    let packages = kernel.packages(&names).with_context(|| {
        format!(
            "the index of {} has no kernel {}",
            apt.suites(),
            kernel.series()
        )
    })?;
    let root = directory.join("kernels").join(packages.join("+"));
    if !root.exists() {
        let new = tempfile::tempdir_in(directory)?;
        apt.download(&packages, new.path())?;
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
