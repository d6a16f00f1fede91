//! The kernel's text symbols, from /proc/kallsyms, in a table small enough to keep while tracing.
//!
//! Data symbols are dropped. It does not say which symbols can be probed: inlined functions have
//! none, and a clone made by the compiler may have changed arguments.

use anyhow::{Context as _, Result, bail};
use cil_trace_common::function::{Group, MAX_RANGES, Range};
use cil_trace_core::probes::{Part, source_name};
use std::collections::{HashMap, HashSet};
use std::fs;

const PATH: &str = "/proc/kallsyms";
/// End of a symbol that no other follows: its page, as code is mapped by pages.
const PAGE: u64 = 4096;
/// Index of the kernel itself among the modules.
const KERNEL: u16 = 0;

/// Text symbols, sorted by address.
#[derive(Debug)]
pub struct Kallsyms {
    symbols: Vec<Symbol>,
    /// All names, one after the other.
    names: String,
    /// Modules' names; the first, empty one is the kernel itself.
    modules: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    name: u32,
    length: u16,
    module: u16,
}

/// Where a function's code, or a part of it, lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FunctionRange<'a> {
    /// The symbol with its suffix.
    pub symbol: &'a str,
    /// The module that holds it; `None` for the kernel itself.
    pub module: Option<&'a str>,
    /// First address.
    pub start: u64,
    /// The next symbol's address.
    pub end: u64,
    /// Which part of the function it is.
    pub part: Part,
}

impl Kallsyms {
    /// Reads this machine's symbols.
    ///
    /// # Errors
    /// If the file cannot be read, or `kernel.kptr_restrict` hides the addresses; the text says how
    /// to get them.
    pub fn read() -> Result<Self> {
        let text = fs::read(PATH)
            .with_context(|| format!("cannot read {PATH}: the kernel needs CONFIG_KALLSYMS=y"))?;
        let table = Self::parse(&text);
        if table.symbols.is_empty() {
            let present = fs::read_to_string("/proc/sys/kernel/kptr_restrict").ok();
            bail!(no_addresses(present.as_deref()));
        }
        Ok(table)
    }

    /// Parses the text of /proc/kallsyms; lines that it does not understand, data symbols and
    /// hidden (zero) addresses are left out.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        // A line is `address type name`, on average 44 bytes long on the kernels measured.
        let mut table = Self {
            symbols: Vec::with_capacity(text.len() / 44),
            names: String::with_capacity(text.len() / 2),
            modules: vec![String::new()],
        };
        for line in text.split(|&byte| byte == b'\n') {
            if let Some((address, name, module)) = text_symbol(line) {
                table.push(address, name, module);
            }
        }
        // Modules follow the kernel in the order in which they were loaded. Stable, so that the
        // first of several names for an address stays first, as it does in the kernel's own %pS.
        table.symbols.sort_by_key(|symbol| symbol.address);
        table.symbols.shrink_to_fit();
        table.names.shrink_to_fit();
        table
    }

    /// Leaves out a module's symbols, as if it were not loaded.
    pub fn leave_out(&mut self, module: &str) {
        let Some(index) = self.modules.iter().position(|name| name == module) else {
            return;
        };
        self.symbols
            .retain(|symbol| usize::from(symbol.module) != index);
    }

    fn push(&mut self, address: u64, name: &str, module: &str) {
        // Lines of a module follow each other, so the last one is nearly always the right one.
        let module = match self.modules.iter().rposition(|known| known == module) {
            Some(index) => index,
            None => {
                self.modules.push(module.to_owned());
                self.modules.len() - 1
            }
        };
        let (Ok(start), Ok(length), Ok(module)) = (
            u32::try_from(self.names.len()),
            u16::try_from(name.len()),
            u16::try_from(module),
        ) else {
            return;
        };
        self.names.push_str(name);
        self.symbols.push(Symbol {
            address,
            name: start,
            length,
            module,
        });
    }

    /// Number of text symbols.
    #[must_use]
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Every symbol by address, with its module if it is in one.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.symbols
            .iter()
            .map(|symbol| (self.name(symbol), self.module(symbol)))
    }

    /// Bytes that the table occupies.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.symbols.capacity() * size_of::<Symbol>() + self.names.capacity()
    }

    /// Address of the symbol with exactly this name, suffix included.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let found = self
            .symbols
            .iter()
            .find(|symbol| self.name(symbol) == name)?;
        Some(found.address)
    }

    /// The code of a function by its name in the source: itself, clones and cold halves, by
    /// address.
    #[must_use]
    pub fn resolve_function(&self, name: &str) -> Vec<FunctionRange<'_>> {
        (0..self.symbols.len())
            .filter(|&index| source_name(self.name(&self.symbols[index])) == name)
            .map(|index| self.function(index))
            .collect()
    }

    /// The symbols of these functions, by their names in the source; halves that are jumped to are
    /// left out. A name that has none is there with an empty list.
    #[must_use]
    pub fn gather(&self, functions: &HashSet<String>) -> HashMap<String, Vec<String>> {
        let mut found: HashMap<String, Vec<String>> = functions
            .iter()
            .map(|name| (name.clone(), Vec::new()))
            .collect();
        for symbol in &self.symbols {
            let name = self.name(symbol);
            if let Some(symbols) = found.get_mut(source_name(name))
                && Part::of(name).attachable()
            {
                symbols.push(name.to_owned());
            }
        }
        found
    }

    /// The code of all functions in these groups, sorted; neighbours of one group are joined.
    ///
    /// # Errors
    /// If there are more than [`MAX_RANGES`], which the kernel side could not search.
    pub fn ranges(&self, groups: &[Group]) -> Result<Vec<Range>> {
        let wanted: HashMap<&str, Group> = groups
            .iter()
            .flat_map(|&group| group.symbols().iter().map(move |&symbol| (symbol, group)))
            .collect();
        let mut ranges: Vec<Range> = Vec::new();
        for (index, symbol) in self.symbols.iter().enumerate() {
            let Some(group) = wanted.get(source_name(self.name(symbol))) else {
                continue;
            };
            let range = Range {
                start: symbol.address,
                end: self.end(index),
                group: group.bit(),
            };
            match ranges.last_mut() {
                Some(last) if last.group == range.group && last.end >= range.start => {
                    last.end = range.end;
                }
                _ => ranges.push(range),
            }
        }
        if ranges.len() > MAX_RANGES {
            bail!(
                "the functions that name causes have {} ranges of code on this kernel, and the \
                 probes search {MAX_RANGES}: please report this with the output of `uname -r`",
                ranges.len()
            );
        }
        Ok(ranges)
    }

    /// The symbol that holds an address, with the distance from its start.
    #[must_use]
    pub fn name_of(&self, address: u64) -> Option<(&str, u64)> {
        let index = self.holder(address)?;
        let symbol = &self.symbols[index];
        Some((self.name(symbol), address - symbol.address))
    }

    /// The module that holds an address; `None` for the kernel itself and for no symbol.
    #[must_use]
    pub fn module_of(&self, address: u64) -> Option<&str> {
        self.module(&self.symbols[self.holder(address)?])
    }

    fn holder(&self, address: u64) -> Option<usize> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let last = self.symbols.get(after.checked_sub(1)?)?;
        // The first of several names for the address.
        let index = self
            .symbols
            .partition_point(|symbol| symbol.address < last.address);
        (address < self.end(index)).then_some(index)
    }

    fn function(&self, index: usize) -> FunctionRange<'_> {
        let symbol = &self.symbols[index];
        let name = self.name(symbol);
        FunctionRange {
            symbol: name,
            module: self.module(symbol),
            start: symbol.address,
            end: self.end(index),
            part: Part::of(name),
        }
    }

    fn name(&self, symbol: &Symbol) -> &str {
        let start = symbol.name as usize;
        &self.names[start..start + usize::from(symbol.length)]
    }

    fn module(&self, symbol: &Symbol) -> Option<&str> {
        (symbol.module != KERNEL).then(|| self.modules[usize::from(symbol.module)].as_str())
    }

    /// The next higher address that has a symbol. Behind the last one of the kernel or of a module
    /// lies what has none, as the trampolines of programs: it ends with its page.
    fn end(&self, index: usize) -> u64 {
        let Symbol {
            address: start,
            module,
            ..
        } = self.symbols[index];
        let page = (start | (PAGE - 1)).saturating_add(1);
        self.symbols[index + 1..]
            .iter()
            .find(|next| next.address > start)
            .map_or(page, |next| {
                if next.module == module {
                    next.address
                } else {
                    next.address.min(page)
                }
            })
    }
}

/// `ffffffff81000000 T name` or `... t name<TAB>[module]`, if it is text with an address.
///
/// On bytes, as checking and splitting 120,000 lines as text takes several times as long.
fn text_symbol(line: &[u8]) -> Option<(u64, &str, &str)> {
    let gap = line.iter().position(|&byte| byte == b' ')?;
    let [b' ', b'T' | b't' | b'W' | b'w', b' ', rest @ ..] = &line[gap..] else {
        return None;
    };
    let (name, module) = match rest.iter().position(|&byte| byte == b'\t') {
        Some(tab) => (
            rest[..tab].trim_ascii_end(),
            rest[tab + 1..].strip_prefix(b"[")?.strip_suffix(b"]")?,
        ),
        None => (rest, &[][..]),
    };
    let address = line[..gap].iter().try_fold(0, |address: u64, &digit| {
        Some(address << 4 | u64::from(char::from(digit).to_digit(16)?))
    })?;
    (address != 0).then_some((
        address,
        str::from_utf8(name).ok()?,
        str::from_utf8(module).ok()?,
    ))
}

fn no_addresses(kptr_restrict: Option<&str>) -> String {
    let present = kptr_restrict.map_or("unreadable", str::trim);
    format!(
        "{PATH} shows no addresses: kernel.kptr_restrict is {present}. Run as root, and if it is 2, \
         allow it for this boot: sysctl kernel.kptr_restrict=1"
    )
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    reason = "a failed test should stop where it fails"
)]
mod tests {
    use super::*;

    /// From a 6.18 kernel; the module's and the cold part's addresses are made up.
    const EXCERPT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T srso_alias_untrain_ret
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000010 T __entry_text_start
ffffffff814f3d10 t __pfx_xlog_cil_push_now.isra.0
ffffffff814f3d20 t xlog_cil_push_now.isra.0
ffffffff814f3e00 t xlog_cil_push_work
ffffffff814f4800 W weak_function
ffffffff82000000 D jiffies
ffffffff81c00000 t xlog_cil_push_work.cold
ffffffffc0401000 t xfs_log_force\t[xfs]
ffffffffc0401200 t xfs_log_force_seq\t[xfs]
ffffffffc0401300 t xfs_file_fsync\t[xfs]
ffffffffc0301000 t loop_queue_work\t[loop]
ffffffffc0301000 t loop_alias\t[loop]
garbage
";

    fn table() -> Kallsyms {
        Kallsyms::parse(EXCERPT.as_bytes())
    }

    #[test]
    fn text_symbols_alone_are_kept_and_sorted() {
        let table = table();
        assert_eq!(table.len(), 14);
        assert!(table.symbols.is_sorted_by_key(|symbol| symbol.address));
        assert_eq!(table.address("jiffies"), None);
        assert_eq!(
            table.address("xlog_cil_push_now.isra.0"),
            Some(0xffff_ffff_814f_3d20)
        );
        assert_eq!(table.address("xlog_cil_push_now"), None);
    }

    #[test]
    fn a_function_is_found_with_its_clones_and_cold_half() {
        let table = table();
        let push = table.resolve_function("xlog_cil_push_work");
        let seen: Vec<_> = push
            .iter()
            .map(|range| (range.symbol, range.end - range.start, range.part))
            .collect();
        assert_eq!(
            seen,
            [
                ("xlog_cil_push_work", 0xa00, Part::Whole),
                ("xlog_cil_push_work.cold", 0x1000, Part::Cold),
            ]
        );
        let now = table.resolve_function("xlog_cil_push_now");
        assert_eq!(now.len(), 1);
        assert_eq!(now[0].part, Part::Clone);
        assert!(now[0].part.attachable() && !push[1].part.attachable());
    }

    #[test]
    fn functions_are_gathered_by_name() {
        let names = [
            "xlog_cil_push_work",
            "xlog_cil_push_now",
            "xlog_cil_insert_items",
        ];
        let found = table().gather(&names.map(str::to_owned).into());
        assert_eq!(found["xlog_cil_push_work"], ["xlog_cil_push_work"]);
        assert_eq!(found["xlog_cil_push_now"], ["xlog_cil_push_now.isra.0"]);
        assert!(found["xlog_cil_insert_items"].is_empty());
    }

    #[test]
    fn an_address_is_named_up_to_the_next_symbol() {
        let table = table();
        assert_eq!(
            table.name_of(0xffff_ffff_814f_3e12),
            Some(("xlog_cil_push_work", 0x12))
        );
        assert_eq!(
            table.name_of(0xffff_ffff_8100_0000),
            Some(("srso_alias_untrain_ret", 0))
        );
        // Behind the kernel, and between modules, lie trampolines.
        assert_eq!(table.name_of(0xffff_ffff_c020_0000), None);
        assert_eq!(table.name_of(0xffff_ffff_c030_2000), None);
        assert_eq!(
            table.name_of(0xffff_ffff_c030_1001),
            Some(("loop_queue_work", 1))
        );
        assert_eq!(table.module_of(0xffff_ffff_c040_1001), Some("xfs"));
        assert_eq!(table.module_of(0xffff_ffff_814f_3e12), None);
        assert_eq!(table.name_of(0x1000), None);
        // The last symbol's page ends at c0402000.
        assert_eq!(
            table.name_of(0xffff_ffff_c040_1fff),
            Some(("xfs_file_fsync", 0xcff))
        );
        assert_eq!(table.name_of(0xffff_ffff_c040_2000), None);
    }

    #[test]
    fn ranges_are_sorted_and_neighbours_of_a_group_joined() {
        let ranges = table().ranges(Group::ALL).unwrap();
        assert!(ranges.is_sorted());
        let force = ranges
            .iter()
            .find(|range| range.group == Group::LogForce.bit())
            .unwrap();
        assert_eq!(
            (force.start, force.end),
            (0xffff_ffff_c040_1000, 0xffff_ffff_c040_1300)
        );
        let pushes = ranges
            .iter()
            .filter(|range| range.group == Group::CilPush.bit());
        assert_eq!(pushes.count(), 2);
    }

    #[test]
    fn too_many_ranges_are_an_error() {
        use std::fmt::Write as _;
        let mut text = String::new();
        for index in 0..=MAX_RANGES as u64 {
            let address = 0x1000 + index * 64;
            writeln!(text, "{address:x} t xfs_file_fsync.part.{index}").unwrap();
            writeln!(text, "{:x} t between", address + 32).unwrap();
        }
        let error = Kallsyms::parse(text.as_bytes())
            .ranges(&[Group::Fsync])
            .unwrap_err();
        let count = format!("{} ranges", MAX_RANGES + 1);
        assert!(error.to_string().contains(&count), "{error}");
    }

    #[test]
    fn hidden_addresses_are_explained() {
        let hidden = b"0000000000000000 T _stext\n0000000000000000 t xfs_file_fsync\t[xfs]\n";
        assert!(Kallsyms::parse(hidden).is_empty());
        let text = no_addresses(Some("2\n"));
        assert!(text.contains("kptr_restrict is 2"), "{text}");
        assert!(text.contains("sysctl"), "{text}");
    }
}
