//! Debug information of XFS, where this machine has it.
//!
//! Only that of the very build that runs, which the build id tells; nothing is fetched.

use anyhow::{Context as _, Result, bail, ensure};
use cil_trace_core::debuginfo::{DebugInfo, DebugInfoError, build_id};
use object::read::ReadCache;
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Source files of XFS, by a part of their path; vmlinux has others too.
pub const XFS_SOURCES: &[&str] = &["fs/xfs/"];
/// Where distributions put debug information.
const ROOT: &str = "/usr/lib/debug";

/// The code whose debug information is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted<'a> {
    /// `uname -r`.
    pub release: &'a str,
    /// Its build id.
    pub build: &'a str,
}

/// The debug information of the wanted code; `None` if it is nowhere. What `named` says is the only
/// place to look: a file, or a directory like /usr/lib/debug.
///
/// # Errors
/// What is named has no such thing.
pub fn find(named: Option<&Path>, wanted: Wanted<'_>) -> Result<Option<DebugInfo>> {
    match named {
        Some(path) if path.is_dir() => {
            let found = first(below(path, wanted), wanted);
            let Some(found) = found else {
                bail!(
                    "--debuginfo {}: no debug information of XFS's build {} is below it",
                    path.display(),
                    wanted.build
                );
            };
            Ok(Some(found))
        }
        Some(path) => read_named(path, wanted)
            .map(Some)
            .with_context(|| format!("--debuginfo {}", path.display())),
        None => Ok(first(
            places(wanted, |name| env::var_os(name).map(PathBuf::from)),
            wanted,
        )),
    }
}

fn read_named(path: &Path, wanted: Wanted<'_>) -> Result<DebugInfo> {
    let data = ReadCache::new(File::open(path)?);
    let info = DebugInfo::parse(&data)?;
    let found = info.build_id().unwrap_or("unknown");
    ensure!(
        found == wanted.build,
        "it is of build {found}, and the XFS that runs is build {}",
        wanted.build
    );
    Ok(info)
}

fn first(places: impl IntoIterator<Item = PathBuf>, wanted: Wanted<'_>) -> Option<DebugInfo> {
    places
        .into_iter()
        .find_map(|path| match read(&path, wanted) {
            Ok(found) => found,
            Err(error) => {
                log::debug!("{}: {error}", path.display());
                None
            }
        })
}

/// `None` if the file is not there, is of another build, or has been stripped.
fn read(path: &Path, wanted: Wanted<'_>) -> Result<Option<DebugInfo>, DebugInfoError> {
    let Ok(file) = File::open(path) else {
        return Ok(None);
    };
    let data = ReadCache::new(file);
    let build = build_id(&object::File::parse(&data)?)?;
    if build.as_deref() != Some(wanted.build) {
        log::debug!("{}: of another build", path.display());
        return Ok(None);
    }
    match DebugInfo::parse(&data) {
        Ok(info) => {
            log::debug!("debug information: {}", path.display());
            Ok(Some(info))
        }
        Err(DebugInfoError::Stripped) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Everywhere.
fn places(wanted: Wanted<'_>, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let mut places = below(Path::new(ROOT), wanted);
    // The cache of debuginfod's clients; see debuginfod-find(1).
    let cache = variable("DEBUGINFOD_CACHE_PATH")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("debuginfod_client")))
        .or_else(|| Some(variable("HOME")?.join(".cache/debuginfod_client")));
    places.extend(cache.map(|cache| cache.join(wanted.build).join("debuginfo")));
    // A kernel of one's own has not been stripped, or stands where it was built.
    let modules = Path::new("/lib/modules").join(wanted.release);
    let own = [
        "kernel/fs/xfs/xfs.ko",
        "build/fs/xfs/xfs.ko",
        "build/vmlinux",
    ];
    places.extend(own.map(|path| modules.join(path)));
    places
}

/// Below a directory like /usr/lib/debug: by build id, or by path as Debian, Fedora and Arch do.
fn below(root: &Path, wanted: Wanted<'_>) -> Vec<PathBuf> {
    let Wanted { release, build } = wanted;
    let (head, tail) = build.split_at_checked(2).unwrap_or((build, ""));
    let mut places = vec![root.join(format!(".build-id/{head}/{tail}.debug"))];
    for modules in ["lib/modules", "usr/lib/modules"] {
        let modules = root.join(modules).join(release);
        for name in [
            "kernel/fs/xfs/xfs.ko",
            "kernel/fs/xfs/xfs.ko.debug",
            "vmlinux",
        ] {
            places.push(modules.join(name));
        }
    }
    places.push(root.join(format!("boot/vmlinux-{release}")));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted<'_> = Wanted {
        release: "6.1.0-1-amd64",
        build: "abcdef",
    };

    fn paths(variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| PathBuf::from(value))
        };
        let places = places(WANTED, variable).into_iter();
        places.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn debian_fedora_and_own_kernels_are_looked_at() {
        let paths = paths(&[]);
        for expected in [
            "/usr/lib/debug/.build-id/ab/cdef.debug",
            "/usr/lib/debug/lib/modules/6.1.0-1-amd64/kernel/fs/xfs/xfs.ko",
            "/usr/lib/debug/lib/modules/6.1.0-1-amd64/kernel/fs/xfs/xfs.ko.debug",
            "/usr/lib/debug/lib/modules/6.1.0-1-amd64/vmlinux",
            "/usr/lib/debug/boot/vmlinux-6.1.0-1-amd64",
            "/lib/modules/6.1.0-1-amd64/build/vmlinux",
        ] {
            assert!(paths.iter().any(|path| path == expected), "{expected}");
        }
    }

    #[test]
    fn the_cache_of_debuginfod_is_where_its_clients_have_it() {
        let home = ("HOME", "/root");
        let has = |variables: &[(&str, &str)], expected: &str| {
            paths(variables).iter().any(|path| path == expected)
        };
        assert!(has(
            &[home],
            "/root/.cache/debuginfod_client/abcdef/debuginfo"
        ));
        let xdg = ("XDG_CACHE_HOME", "/cache");
        assert!(has(
            &[home, xdg],
            "/cache/debuginfod_client/abcdef/debuginfo"
        ));
        let own = ("DEBUGINFOD_CACHE_PATH", "/d");
        assert!(has(&[home, xdg, own], "/d/abcdef/debuginfo"));
    }

    #[test]
    fn what_is_named_must_be_of_this_build() {
        // This very program has debug information, and is no XFS.
        let own = env::current_exe().ok();
        let error = find(own.as_deref(), WANTED)
            .err()
            .map(|error| format!("{error:#}"));
        let error = error.unwrap_or_default();
        assert!(
            error.contains("the XFS that runs is build abcdef"),
            "{error}"
        );
        let nowhere = find(Some(Path::new("/nowhere")), WANTED).err();
        let error = nowhere
            .map(|error| format!("{error:#}"))
            .unwrap_or_default();
        assert!(
            error.starts_with("--debuginfo /nowhere: No such file"),
            "{error}"
        );
        let nothing = find(Some(Path::new("/proc/self/task")), WANTED).err();
        let error = nothing
            .map(|error| format!("{error:#}"))
            .unwrap_or_default();
        assert!(
            error.contains("no debug information of XFS's build"),
            "{error}"
        );
    }
}
