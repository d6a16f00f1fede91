//! Names of functions out of executable files, their separate debug information, and what
//! just-in-time compilers write about theirs.
//!
//! A file is open only while it is read, so that its filesystem can be unmounted.

use crate::system::heap;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use cil_trace_core::code::{CodeFile, PerfMap, Place};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;

/// Places whose names are remembered, of some 200 bytes each.
const REMEMBERED: usize = 20_000;
/// Debug information of larger files is left alone, bytes: it takes memory in proportion.
const LARGEST_DEBUGGED: u64 = 32 << 20;
/// The largest list of compiled functions that is read.
const LARGEST_MAP: u64 = 64 << 20;

/// Innermost inlined function first; `None` if the file does not tell.
type Names = Option<Arc<[String]>>;

/// What is known of files.
pub struct Files {
    names: HashMap<(Arc<CodeFile>, u64), Names>,
    compiled: HashMap<u32, (Stamp, PerfMap)>,
}

/// Size and time of the last change, by which a file is known to have changed.
type Stamp = (u64, i64, i64);

impl Files {
    pub fn new() -> Self {
        Self {
            names: HashMap::new(),
            compiled: HashMap::new(),
        }
    }

    /// Learns the names of places, each seen in the process of that number.
    pub fn read<'a>(&mut self, places: impl Iterator<Item = (u32, &'a Place)>) {
        if self.names.len() > REMEMBERED {
            self.names.clear();
        }
        let mut wanted: HashMap<Arc<CodeFile>, (u32, BTreeSet<u64>)> = HashMap::new();
        for (pid, place) in places {
            if place.file.inode == 0 {
                self.read_compiled(pid);
                continue;
            }
            let key = (Arc::clone(&place.file), place.offset);
            if !self.names.contains_key(&key) {
                let (_, offsets) = wanted.entry(key.0).or_insert((pid, BTreeSet::new()));
                offsets.insert(key.1);
            }
        }
        for (file, (pid, offsets)) in wanted {
            let offsets: Vec<_> = offsets.into_iter().collect();
            // One that lived longer would keep the files open, and in memory.
            let symbolizer = Symbolizer::new();
            let names = symbolize(&symbolizer, pid, &file, &offsets);
            let places = offsets
                .into_iter()
                .map(|offset| (Arc::clone(&file), offset));
            self.names.extend(places.zip(names));
            drop(symbolizer);
            heap::give_back();
        }
    }

    /// The names of a place that was read; `None` if there are none.
    pub fn names(&self, pid: u32, address: u64, place: &Place) -> Option<Vec<String>> {
        if place.file.inode == 0 {
            let (_, compiled) = self.compiled.get(&pid)?;
            return compiled.find(address).map(|name| vec![name.to_owned()]);
        }
        let names = self.names.get(&(Arc::clone(&place.file), place.offset))?;
        names.as_ref().map(|names| names.to_vec())
    }

    /// Reads what a compiler in a process says of its functions, if it has said more since.
    fn read_compiled(&mut self, pid: u32) {
        let Some((mut file, stamp)) = compiled_by(pid) else {
            return;
        };
        if self
            .compiled
            .get(&pid)
            .is_some_and(|(known, _)| *known == stamp)
        {
            return;
        }
        let mut text = Vec::new();
        if file.read_to_end(&mut text).is_ok() {
            let map = PerfMap::parse(&String::from_utf8_lossy(&text));
            self.compiled.insert(pid, (stamp, map));
        }
    }
}

/// The functions at offsets into a file, one answer for each.
fn symbolize(symbolizer: &Symbolizer, pid: u32, file: &CodeFile, offsets: &[u64]) -> Vec<Names> {
    let unknown = || vec![None; offsets.len()];
    let Some((path, size)) = path_of(pid, file) else {
        return unknown();
    };
    let mut elf = Elf::new(&path);
    elf.debug_syms = size <= LARGEST_DEBUGGED;
    let source = Source::Elf(elf);
    match symbolizer.symbolize(&source, Input::FileOffset(offsets)) {
        Ok(symbols) => symbols.iter().map(names).collect(),
        Err(error) => {
            log::debug!("{}: {error}", path.display());
            unknown()
        }
    }
}

fn names(symbol: &Symbolized<'_>) -> Names {
    let symbol = symbol.as_sym()?;
    let inlined = symbol.inlined.iter().rev().map(|inner| inner.name.as_ref());
    let all = inlined.chain([symbol.name.as_ref()]);
    Some(all.map(str::to_owned).collect())
}

/// Where the file that a process mapped is now, as the process sees it or as we do, and its size in
/// bytes. Another file that has taken its name is not it.
fn path_of(pid: u32, file: &CodeFile) -> Option<(PathBuf, u64)> {
    let relative = file.path.strip_prefix('/')?;
    let seen_by_it = PathBuf::from(format!("/proc/{pid}/root")).join(relative);
    [seen_by_it, PathBuf::from(&file.path)]
        .into_iter()
        .find_map(|path| {
            let found = fs::metadata(&path).ok()?;
            let is_it = found.is_file() && found.ino() == file.inode;
            is_it.then_some((path, found.len()))
        })
}

/// A process's list of compiled functions. Its name holds the number that the process has for
/// itself.
fn compiled_by(pid: u32) -> Option<(File, Stamp)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let own = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last())
        .and_then(|number| number.parse().ok())
        .unwrap_or(pid);
    let paths = [
        format!("/proc/{pid}/root/tmp/perf-{own}.map"),
        format!("/tmp/perf-{pid}.map"),
    ];
    paths.iter().find_map(|path| {
        // Anybody can put something there: a pipe would block.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
            .open(path)
            .ok()?;
        let found = file.metadata().ok()?;
        let usable = found.is_file() && found.len() <= LARGEST_MAP;
        usable.then(|| (file, (found.len(), found.mtime(), found.mtime_nsec())))
    })
}
