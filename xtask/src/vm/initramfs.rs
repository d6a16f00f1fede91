//! The guest's only filesystem besides the XFS: busybox, the tool, and what the command needs.
//!
//! Programs are this machine's own, with the libraries that they are linked to.

use super::fetch::Image;
use crate::command::{command, output};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::{NamedTempFile, TempDir};

const INIT: &str = include_str!("init.sh");
const BUSYBOX: &str = "/bin/busybox";
/// What every guest has.
const PROGRAMS: &[&str] = &["/usr/sbin/mkfs.xfs", "/usr/bin/dbench"];
/// dbench's load.
const FILES: &[&str] = &["/usr/share/dbench/client.txt"];
/// Modules for init and for whom `modprobe` may be told, with what they depend on.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "xfs",
    "loop",
    "dm_mod",
    "null_blk",
    "scsi_debug",
];

/// Builds it; the file is gone when dropped.
///
/// # Errors
/// A file is missing, or a program that packs it failed.
pub fn build(
    image: &Image,
    tool: &Path,
    files: &[PathBuf],
    command: &[String],
) -> Result<NamedTempFile> {
    let root = Root::new()?;
    root.add_modules(image)?;
    root.copy(&image.config, &format!("boot/config-{}", image.version))?;
    root.copy(Path::new(BUSYBOX), "usr/bin/busybox")?;
    root.add_tool(tool)?;
    for path in PROGRAMS.iter().chain(FILES) {
        root.add(Path::new(path))?;
    }
    for path in files {
        root.add(path)?;
    }
    root.write("init", INIT, 0o755)?;
    root.write("command", &format!("exec {}", shell_line(command)), 0o644)?;
    root.pack()
}

struct Root(TempDir);

impl Root {
    fn new() -> Result<Self> {
        let root = TempDir::with_prefix("cil-trace-vm-")?;
        for name in ["bin", "sbin", "lib", "lib64"] {
            fs::create_dir_all(root.path().join("usr").join(name))?;
            symlink(Path::new("usr").join(name), root.path().join(name))?;
        }
        for name in ["dev", "mnt", "out", "proc", "root", "run", "sys", "tmp"] {
            fs::create_dir(root.path().join(name))?;
        }
        Ok(Self(root))
    }

    /// Where `path` of this machine goes.
    fn place(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let path = path.as_ref();
        let place = self.0.path().join(path.strip_prefix("/").unwrap_or(path));
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(place)
    }

    fn write(&self, path: &str, text: &str, mode: u32) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let place = self.place(path)?;
        fs::write(&place, text)?;
        Ok(fs::set_permissions(
            place,
            fs::Permissions::from_mode(mode),
        )?)
    }

    fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let place = self.place(to)?;
        fs::copy(from, place).with_context(|| from.display().to_string())?;
        Ok(())
    }

    /// The tool in its place, without the debug information that is four fifths of it: what a
    /// guest unpacks takes its memory, and emulation makes it slow.
    fn add_tool(&self, tool: &Path) -> Result<()> {
        output(
            command("strip", &["--strip-debug", "-o"])
                .arg(self.place("usr/bin/cil-trace")?)
                .arg(tool),
        )?;
        self.add_libraries(tool)
    }

    /// A file or directory at the path that it has here; with its libraries if it is a program.
    fn add(&self, path: &Path) -> Result<()> {
        let path = std::path::absolute(path)?;
        output(
            command(
                "cp",
                &["--archive", "--dereference", "--no-target-directory"],
            )
            .arg(&path)
            .arg(self.place(&path)?),
        )?;
        if path.is_file() {
            self.add_libraries(&path)?;
        }
        Ok(())
    }

    /// What a program is linked to, the dynamic linker included.
    fn add_libraries(&self, program: &Path) -> Result<()> {
        // Fails for what is no dynamic program, and such needs none.
        let listed = output(Command::new("ldd").arg(program)).unwrap_or_default();
        for library in libraries(&listed) {
            self.copy(Path::new(library), library)?;
        }
        Ok(())
    }

    /// The modules, unpacked, as busybox unpacks none, and the list of what depends on what.
    fn add_modules(&self, image: &Image) -> Result<()> {
        let modules = Path::new("lib/modules").join(&image.version);
        depmod(&image.root, &image.version)?;
        let dependencies = image.root.join(&modules).join("modules.dep");
        let dependencies = fs::read_to_string(&dependencies)
            .with_context(|| dependencies.display().to_string())?;
        for module in closure(&dependencies, MODULES) {
            let from = image.root.join(&modules).join(module);
            let place = self.place(modules.join(module))?;
            if from.extension() == Some(OsStr::new("xz")) {
                let unpacked = fs::File::create(place.with_extension(""))?;
                let status = command("xz", &["--decompress", "--stdout"])
                    .arg(&from)
                    .stdout(Stdio::from(unpacked))
                    .status()
                    .context("cannot start xz")?;
                anyhow::ensure!(status.success(), "xz cannot unpack {}", from.display());
            } else {
                fs::copy(from, place)?;
            }
        }
        depmod(self.0.path(), &image.version)
    }

    /// All of it as a cpio archive, which the kernel unpacks.
    fn pack(self) -> Result<NamedTempFile> {
        const PACK: &str = "find . -print0 | \
             cpio --null --create --format=newc --owner=+0:+0 --quiet > \"$0\"";
        let archive = NamedTempFile::with_prefix("cil-trace-vm-")?;
        output(
            command("sh", &["-c", PACK])
                .arg(archive.path())
                .current_dir(self.0.path()),
        )?;
        Ok(archive)
    }
}

fn depmod(root: &Path, version: &str) -> Result<()> {
    // Its path is not in everybody's PATH.
    output(command("/usr/sbin/depmod", &["-b"]).arg(root).arg(version)).map(drop)
}

/// Paths in what ldd prints.
fn libraries(listed: &str) -> impl Iterator<Item = &str> {
    listed
        .split_whitespace()
        .filter(|word| word.starts_with('/') && !word.ends_with(':'))
}

/// The files of the modules with these names, as modules.dep has them, and of all they need; built
/// in ones have none.
fn closure<'a>(dependencies: &'a str, names: &[&str]) -> Vec<&'a str> {
    let mut files: Vec<_> = dependencies
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(file, _)| {
            let name = file.rsplit('/').next().unwrap_or(file);
            let name = name.split('.').next().unwrap_or(name).replace('-', "_");
            names.contains(&name.as_str())
        })
        .flat_map(|(file, needed)| std::iter::once(file).chain(needed.split_whitespace()))
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// A command line that a shell reads as exactly these words.
fn shell_line(words: &[String]) -> String {
    let quoted: Vec<_> = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{closure, libraries, shell_line};

    #[test]
    fn modules_come_with_what_they_need() {
        let dependencies = "\
kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz\n\
kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz\n\
kernel/drivers/md/dm-mod.ko.xz:\n\
kernel/lib/libcrc32c.ko.xz:\n";
        assert_eq!(
            closure(dependencies, &["xfs", "dm_mod", "virtio_pci"]),
            [
                "kernel/drivers/md/dm-mod.ko.xz",
                "kernel/fs/xfs/xfs.ko.xz",
                "kernel/lib/libcrc32c.ko.xz"
            ]
        );
    }

    #[test]
    fn libraries_are_the_paths_that_ldd_prints() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f11)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f11)\n";
        let found: Vec<_> = libraries(listed).collect();
        assert_eq!(
            found,
            [
                "/lib/x86_64-linux-gnu/libc.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
    }

    #[test]
    fn words_survive_the_shell() {
        let words = ["sh", "-c", "echo \"it's\" $HOME"].map(str::to_owned);
        assert_eq!(shell_line(&words), r#"'sh' '-c' 'echo "it'\''s" $HOME'"#);
    }
}
