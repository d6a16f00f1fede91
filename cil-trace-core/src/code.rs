//! Which file's code stands where in each process, as it changes over time.
//!
//! Fed with what perf records of mappings, forks and execs, so that the stack of a process that is
//! long gone can still be read. Opens nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A change of what is mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The process.
    pub pid: u32,
    /// When, CLOCK_MONOTONIC nanoseconds; 0 for what was there before.
    pub at_ns: u64,
    /// What changed.
    pub what: What,
}

/// What changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// Executable memory was mapped.
    Mapped(Mapping),
    /// The process began as a copy of another.
    Forked {
        /// The other.
        parent: u32,
    },
    /// It began another program.
    Executed,
    /// It ended.
    Exited,
}

/// A stretch of executable memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// Where it begins in the file, bytes.
    pub file_offset: u64,
    /// The file.
    pub file: Arc<CodeFile>,
}

/// A file, as the process that mapped it saw it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CodeFile {
    /// Its path in that process's mount namespace; or what stands for memory without a file, such
    /// as `//anon` or `[vdso]`.
    pub path: String,
    /// Its inode number; 0 without a file.
    pub inode: u64,
}

/// What stands at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file.
    pub file: Arc<CodeFile>,
    /// Where in the file, bytes.
    pub offset: u64,
}

type Mappings = BTreeMap<u64, Mapping>;

/// One program that a process ran.
#[derive(Clone, Debug)]
struct Space {
    from_ns: u64,
    /// Shared with the process that it is a copy of, until one of them changes.
    mappings: Arc<Mappings>,
}

/// All processes.
#[derive(Debug, Default)]
pub struct Code {
    /// The programs of each process, one after another.
    processes: HashMap<u32, Vec<Space>>,
    /// Processes that have ended, and when.
    ended: HashMap<u32, u64>,
}

impl Code {
    /// Takes in a change. They must come in order of time, but for those that tell what was there
    /// before.
    pub fn apply(&mut self, change: &Change) {
        let Change { pid, at_ns, what } = change;
        match what {
            What::Mapped(mapping) => {
                let spaces = self.processes.entry(*pid).or_default();
                if spaces.is_empty() {
                    spaces.push(Space::new(0, Arc::default()));
                }
                if let Some(space) = spaces.last_mut() {
                    insert(Arc::make_mut(&mut space.mappings), mapping.clone());
                }
            }
            What::Forked { parent } => {
                let of_parent = self.processes.get(parent).and_then(|spaces| spaces.last());
                let Some(mappings) = of_parent.map(|space| Arc::clone(&space.mappings)) else {
                    return;
                };
                self.begin(*pid, *at_ns, mappings);
            }
            What::Executed => self.begin(*pid, *at_ns, Arc::default()),
            What::Exited => {
                self.ended.insert(*pid, *at_ns);
            }
        }
    }

    fn begin(&mut self, pid: u32, at_ns: u64, mappings: Arc<Mappings>) {
        self.ended.remove(&pid);
        let spaces = self.processes.entry(pid).or_default();
        spaces.push(Space::new(at_ns, mappings));
    }

    /// Whether anything is known of a process.
    #[must_use]
    pub fn knows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// What stood at an address in a process at a time. A mapping that was made a little later in
    /// the same program counts too.
    #[must_use]
    pub fn find(&self, pid: u32, at_ns: u64, address: u64) -> Option<Place> {
        let spaces = self.processes.get(&pid)?;
        let after = spaces.partition_point(|space| space.from_ns <= at_ns);
        let space = spaces.get(after.saturating_sub(1))?;
        let (_, mapping) = space.mappings.range(..=address).next_back()?;
        (address < mapping.end).then(|| Place {
            file: Arc::clone(&mapping.file),
            offset: address - mapping.start + mapping.file_offset,
        })
    }

    /// Forgets programs and processes that had ended before a time.
    pub fn forget_before(&mut self, ns: u64) {
        for spaces in self.processes.values_mut() {
            let current = spaces.partition_point(|space| space.from_ns <= ns);
            spaces.drain(..current.saturating_sub(1));
        }
        self.ended.retain(|pid, ended_ns| {
            let keep = *ended_ns >= ns;
            if !keep {
                self.processes.remove(pid);
            }
            keep
        });
    }
}

impl Space {
    const fn new(from_ns: u64, mappings: Arc<Mappings>) -> Self {
        Self { from_ns, mappings }
    }
}

/// Maps over what was there.
fn insert(mappings: &mut Mappings, new: Mapping) {
    let covered: Vec<_> = mappings
        .range(..new.end)
        .rev()
        .take_while(|(_, old)| old.end > new.start)
        .map(|(&start, _)| start)
        .collect();
    for start in covered {
        if let Some(old) = mappings.remove(&start) {
            if old.start < new.start {
                let end = new.start;
                let left = Mapping { end, ..old.clone() };
                mappings.insert(left.start, left);
            }
            if old.end > new.end {
                let right = Mapping {
                    start: new.end,
                    file_offset: old.file_offset + (new.end - old.start),
                    ..old
                };
                mappings.insert(right.start, right);
            }
        }
    }
    if new.start < new.end {
        mappings.insert(new.start, new);
    }
}

/// Functions that a just-in-time compiler has written to `/tmp/perf-PID.map`: lines of start and
/// size, in hexadecimal, and a name (tools/perf/Documentation/jit-interface.txt).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PerfMap(BTreeMap<u64, (u64, String)>);

impl PerfMap {
    /// Reads a file's contents; lines that are none are left out. Of functions at one place the last
    /// is the one that is there now.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let function = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let mut number = || {
                let word = words.next()?;
                u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
            };
            let (start, size) = (number()?, number()?);
            Some((start, (start.checked_add(size)?, words.next()?.to_owned())))
        };
        Self(text.lines().filter_map(function).collect())
    }

    /// The function at an address.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn mapped(pid: u32, at_ns: u64, start: u64, end: u64, path: &str) -> Change {
        Change {
            pid,
            at_ns,
            what: What::Mapped(Mapping {
                start,
                end,
                file_offset: 0x100,
                file: Arc::new(CodeFile {
                    path: path.into(),
                    inode: 1,
                }),
            }),
        }
    }

    fn change(pid: u32, at_ns: u64, what: What) -> Change {
        Change { pid, at_ns, what }
    }

    fn code(changes: &[Change]) -> Code {
        let mut code = Code::default();
        changes.iter().for_each(|change| code.apply(change));
        code
    }

    fn path(code: &Code, pid: u32, at_ns: u64, address: u64) -> Option<String> {
        let place = code.find(pid, at_ns, address)?;
        Some(place.file.path.clone())
    }

    #[test]
    fn a_shell_forks_and_its_child_executes_another_program() {
        let mut code = code(&[
            mapped(1, 0, 0x1000, 0x2000, "sh"),
            change(2, 10, What::Forked { parent: 1 }),
            change(2, 20, What::Executed),
            mapped(2, 21, 0x1000, 0x2000, "ls"),
            change(2, 30, What::Exited),
        ]);
        assert_eq!(path(&code, 2, 15, 0x1800).as_deref(), Some("sh"));
        assert_eq!(path(&code, 2, 25, 0x1800).as_deref(), Some("ls"));
        assert_eq!(path(&code, 1, 25, 0x1800).as_deref(), Some("sh"));
        assert_eq!(code.find(2, 25, 0x1234).unwrap().offset, 0x334);
        assert_eq!(path(&code, 2, 25, 0x2000), None);
        assert_eq!(path(&code, 3, 25, 0x1000), None);
        code.forget_before(26);
        assert_eq!(path(&code, 2, 28, 0x1800).as_deref(), Some("ls"));
        code.forget_before(31);
        assert!(!code.knows(2) && code.knows(1));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let code = code(&[
            mapped(1, 0, 0x1000, 0x2000, "sh"),
            mapped(2, 0, 0x1000, 0x2000, "old"),
            change(2, 5, What::Exited),
            change(2, 10, What::Forked { parent: 1 }),
        ]);
        assert_eq!(path(&code, 2, 3, 0x1000).as_deref(), Some("old"));
        assert_eq!(path(&code, 2, 12, 0x1000).as_deref(), Some("sh"));
    }

    #[test]
    fn a_mapping_over_another_leaves_its_ends() {
        let code = code(&[
            mapped(1, 0, 0x1000, 0x4000, "old"),
            mapped(1, 1, 0x2000, 0x3000, "new"),
        ]);
        for (address, expected) in [(0x1fff, "old"), (0x2000, "new"), (0x3000, "old")] {
            assert_eq!(path(&code, 1, 2, address).as_deref(), Some(expected));
        }
        assert_eq!(code.find(1, 2, 0x3000).unwrap().offset, 0x2100);
    }

    #[test]
    fn functions_of_a_compiler_in_the_process() {
        let map = PerfMap::parse(
            "7f00 10 LazyCompile:*main /app/x.js:1\n0x8000 20 b\ngarbage\n7f00 8 moved\n",
        );
        assert_eq!(map.find(0x7f07), Some("moved"));
        assert_eq!(map.find(0x7f08), None);
        assert_eq!(map.find(0x801f), Some("b"));
        assert_eq!(map.find(0x10), None);
    }

    proptest! {
        #[test]
        fn the_latest_mapping_is_what_stands_there(
            mappings in proptest::collection::vec((0_u64..64, 0_u64..16), 1..20),
            address in 0_u64..80,
        ) {
            let changes: Vec<_> = mappings
                .iter()
                .enumerate()
                .map(|(number, (start, size))| {
                    mapped(1, 0, *start, start + size, &number.to_string())
                })
                .collect();
            let latest = mappings
                .iter()
                .rposition(|(start, size)| (*start..start + size).contains(&address));
            prop_assert_eq!(
                path(&code(&changes), 1, 0, address),
                latest.map(|number| number.to_string())
            );
        }
    }
}
