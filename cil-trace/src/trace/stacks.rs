//! Reads stacks and their sums out of the maps, and has them named.

use super::bpf;
use super::maps::Maps;
use super::names;
use crate::symbols::{Question, UserSymbols};
use crate::system::kallsyms::Kallsyms;
use anyhow::{Context as _, Result};
use aya::maps::{HashMap as Map, MapData};
use cil_trace_common::cause::Cause;
use cil_trace_common::stack::{
    DEPTH, Departure, LOST, Origin, Stack, StackKey, StackKind, StackSum,
};
use cil_trace_core::decode;
use cil_trace_core::device::Dev;
use cil_trace_core::profile::reason::{reason, waits_for};
use cil_trace_core::tick::{self, StackRow, StackSums, Who};
use std::collections::{HashMap, HashSet};
use std::os::fd::BorrowedFd;

/// Stands below what the kernel did not give of a stack.
const DEEPER: &str = "[deeper]";

/// Gives numbers to stacks that have none by their hash: odd ones, for those by hash are even.
#[derive(Default)]
pub struct Numbers(u32);

impl Numbers {
    /// One that has not been given away.
    pub fn give(&mut self) -> u32 {
        self.0 += 1;
        self.0.wrapping_mul(2).wrapping_sub(1)
    }
}

/// What has been read so far.
pub struct StackReader {
    log: Sums,
    threads: Sums,
    known: HashMap<u32, Known>,
    /// Stacks that have been taken out of the kernel side's map.
    evicted: HashSet<u32>,
    /// Those that were when it was read last: that reading's sums could still be theirs.
    just_evicted: Vec<u32>,
    /// Numbers of programs' stacks by process, program and hash.
    user: HashMap<(u32, u32, u64), u32>,
    /// Time that a sample stands for.
    period_ns: u64,
    symbols: Option<UserSymbols>,
}

/// A stack that the kernel side has kept.
struct Known {
    hash: u64,
    /// Its number in the recording.
    number: u32,
    frames: Frames,
}

/// What is kept of a stack's frames: there are tens of thousands of stacks.
enum Frames {
    /// What a thread waits for in them.
    Kernel(Option<&'static str>),
    /// Addresses that mean something in one process only.
    User(Box<[u64]>),
    /// Nothing, as the kernel side has them no more.
    Gone,
}

/// The sums of one map as they were read last.
#[derive(Default)]
struct Sums(HashMap<StackKey, StackSum>);

impl StackReader {
    /// For samples that are taken `hz` times a second.
    pub fn new(hz: u32, symbols: Option<UserSymbols>) -> Self {
        Self {
            log: Sums::default(),
            threads: Sums::default(),
            known: HashMap::new(),
            evicted: HashSet::new(),
            just_evicted: Vec::new(),
            user: HashMap::new(),
            period_ns: 1_000_000_000 / u64::from(hz.max(1)),
            symbols,
        }
    }

    /// The next reading is of other maps, which are empty.
    pub fn begin_anew(&mut self) {
        self.log = Sums::default();
        self.threads = Sums::default();
        self.evicted.extend(self.known.keys());
    }

    /// What happened since the reading before, and the stacks that have names now. `last` waits for
    /// those that do not yet.
    ///
    /// # Errors
    ///
    /// If a map cannot be read.
    pub fn read(
        &mut self,
        maps: &mut Maps,
        kernel: &Kallsyms,
        numbers: &mut Numbers,
        last: bool,
    ) -> Result<(Vec<StackRow>, Vec<tick::Stack>)> {
        // Before the stacks, which are kept before anything is counted by them.
        let mut changed = self.log.changed(&maps.log_stacks, None)?;
        let room = maps.thread_stacks_room;
        let evict = Some((maps.thread_stacks_fd(), room / 2));
        changed.extend(self.threads.changed(&maps.thread_stacks, evict)?);
        let mut named = self.learn(maps, kernel, numbers)?;
        let mut rows: Vec<_> = changed
            .into_iter()
            .map(|(key, sum)| self.row(&key, &sum, numbers))
            .collect();
        rows.sort_by(|a, b| {
            let order = |row: &StackRow| (row.kind, row.dev, row.kernel, row.user);
            order(a)
                .cmp(&order(b))
                .then_with(|| (&a.label, &a.who).cmp(&(&b.label, &b.who)))
        });
        if let Some(symbols) = &mut self.symbols {
            if last {
                named.extend(symbols.last_answers());
            } else {
                named.extend(symbols.answers());
            }
        }
        named.sort_by_key(|stack| stack.id);
        Ok((rows, named))
    }

    /// Records of mappings that were lost so far.
    pub fn lost_mappings(&self) -> u64 {
        self.symbols.as_ref().map_or(0, UserSymbols::lost)
    }

    /// Takes in the stacks that are new; gives those of the kernel with their names.
    fn learn(
        &mut self,
        maps: &mut Maps,
        kernel: &Kallsyms,
        numbers: &mut Numbers,
    ) -> Result<Vec<tick::Stack>> {
        let mut named = Vec::new();
        for id in self.just_evicted.drain(..) {
            if let Some(known) = self.known.get_mut(&id) {
                known.frames = Frames::Gone;
            }
        }
        let ids: Vec<u32> = maps
            .stacks
            .keys()
            .collect::<Result<_, _>>()
            .context("cannot read the stacks")?;
        let evict = ids.len() > maps.stacks_room / 2;
        for id in ids {
            if !self.known.contains_key(&id) || self.evicted.remove(&id) {
                let stack = maps.stacks.get(&id, 0);
                let stack = stack.context("cannot read a stack")?;
                named.extend(self.learn_one(id, &stack, kernel, numbers));
            } else if evict {
                // The kernel side makes it again if it comes again.
                let _ = maps.stacks.remove(&id);
                self.evicted.insert(id);
                self.just_evicted.push(id);
            }
        }
        Ok(named)
    }

    /// Numbers of the kernel's stacks are the kernel side's less 1, as in
    /// [`Series::stack`](cil_trace_core::series::Series), and even; others are odd.
    fn learn_one(
        &mut self,
        id: u32,
        stack: &Stack,
        kernel: &Kallsyms,
        numbers: &mut Numbers,
    ) -> Option<tick::Stack> {
        let hash = stack.hash;
        let (number, is_new) = match self.known.get(&id) {
            None => (id.wrapping_sub(1), true),
            Some(known) if known.hash == hash => (known.number, false),
            // Another stack has taken the number of one that was taken out.
            Some(_) => (numbers.give(), true),
        };
        let (frames, names) = frames(stack, kernel);
        self.known.insert(
            id,
            Known {
                hash,
                number,
                frames,
            },
        );
        let frames = names.filter(|_| is_new)?;
        Some(tick::Stack { id: number, frames })
    }

    fn row(&mut self, key: &StackKey, sum: &StackSum, numbers: &mut Numbers) -> StackRow {
        let kind = StackKind::from_u16(key.kind).unwrap_or(StackKind::Flush);
        let is_thread = matches!(kind, StackKind::Cpu | StackKind::Offcpu);
        let time_ns = match kind {
            StackKind::Cpu => sum.count.saturating_mul(self.period_ns),
            _ => sum.time_ns,
        };
        StackRow {
            kind,
            label: self.label(kind, key),
            dev: if key.dev == 0 {
                Dev::NONE
            } else {
                Dev(key.dev)
            },
            who: is_thread.then(|| Who {
                pid: key.pid,
                comm: decode::text(&key.comm),
                workload: key.workload != 0,
            }),
            kernel: match key.kernel {
                0 => None,
                LOST => Some(LOST),
                id => Some(self.known.get(&id).map_or(LOST, |known| known.number)),
            },
            user: match key.user {
                0 => None,
                LOST => Some(LOST),
                id => Some(self.user(key, id, sum.at_ns, numbers)),
            },
            sums: StackSums {
                count: sum.count,
                time_ns,
                bytes: sum.bytes,
            },
        }
    }

    fn label(&self, kind: StackKind, key: &StackKey) -> String {
        match kind {
            StackKind::Flush | StackKind::Push => {
                let cause = Cause::from_u16(key.label).unwrap_or(Cause::Other);
                cause.name().to_owned()
            }
            StackKind::Offcpu => {
                let departure = Departure::from_u16(key.label).unwrap_or(Departure::Blocked);
                let waits_for = match self.known.get(&key.kernel).map(|known| &known.frames) {
                    Some(Frames::Kernel(waits_for)) => *waits_for,
                    _ => None,
                };
                reason(departure, waits_for).to_owned()
            }
            StackKind::Cpu | StackKind::Lock | StackKind::Hold => String::new(),
        }
    }

    /// The number of a program's stack, which is asked for when it is new.
    fn user(&mut self, key: &StackKey, id: u32, at_ns: u64, numbers: &mut Numbers) -> u32 {
        let Some(known) = self.known.get(&id) else {
            return LOST;
        };
        let of = (key.pid, key.space, known.hash);
        if let Some(&number) = self.user.get(&of) {
            return number;
        }
        let Frames::User(addresses) = &known.frames else {
            return LOST;
        };
        let addresses = addresses.to_vec();
        let number = numbers.give();
        self.user.insert(of, number);
        if let Some(symbols) = &self.symbols {
            symbols.ask(Question {
                id: number,
                pid: key.pid,
                at_ns,
                addresses,
            });
        }
        number
    }
}

impl Sums {
    /// What was added since the reading before. With `evict`, entries to which nothing was added
    /// are taken out of a map that holds more than that.
    fn changed(
        &mut self,
        map: &Map<MapData, StackKey, StackSum>,
        evict: Option<(BorrowedFd<'_>, usize)>,
    ) -> Result<Vec<(StackKey, StackSum)>> {
        let mut changed = Vec::new();
        let mut idle = Vec::new();
        for entry in map.iter() {
            let (key, now) = entry.context("cannot read the sums by stack")?;
            match self.added(key, now) {
                Some(added) => changed.push((key, added)),
                None => idle.push(key),
            }
        }
        if let Some((map, most)) = evict
            && changed.len() + idle.len() > most
        {
            for key in idle {
                // Kernels before 5.14 do not do this for hash maps; there the map may fill, which
                // is counted.
                let Ok(last) = bpf::lookup_and_delete::<_, StackSum>(map, &key) else {
                    break;
                };
                if let Some(added) = self.added(key, last) {
                    changed.push((key, added));
                }
                self.0.remove(&key);
            }
        }
        Ok(changed)
    }

    fn added(&mut self, key: StackKey, now: StackSum) -> Option<StackSum> {
        let before = self.0.insert(key, now).unwrap_or_default();
        let added = StackSum {
            at_ns: now.at_ns,
            count: now.count.wrapping_sub(before.count),
            time_ns: now.time_ns.wrapping_sub(before.time_ns),
            bytes: now.bytes.wrapping_sub(before.bytes),
        };
        (added.count != 0 || added.time_ns != 0 || added.bytes != 0).then_some(added)
    }
}

/// What is kept, and of the kernel's the names, without the tracer's own.
fn frames(stack: &Stack, kernel: &Kallsyms) -> (Frames, Option<Vec<String>>) {
    let len = (stack.len as usize).min(DEPTH);
    let addresses = &stack.frames[..len];
    if stack.origin == Origin::User as u32 {
        return (Frames::User(addresses.into()), None);
    }
    let mut names = if stack.origin == Origin::Tracepoint as u32 {
        names::without_tracer(kernel, addresses.iter())
    } else {
        names::all(kernel, addresses.iter())
    };
    if len == DEPTH {
        names.push(DEEPER.to_owned());
    }
    let waits_for = waits_for(names.iter().map(String::as_str));
    (Frames::Kernel(waits_for), Some(names))
}
