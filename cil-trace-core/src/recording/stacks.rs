//! The stacks of a recording as a whole, straight into the model.
//!
//! A profile has a million rows. As parts of ticks each would own its texts, only for the model to
//! hold them once; here they are borrowed from SQLite.

use super::names::Names;
use super::rows::Columns;
use crate::device::Dev;
use crate::model::stacks::StackTable;
use crate::tick::StackSums;
use cil_trace_common::stack::StackKind;
use rusqlite::{Connection, Row};
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::panic::resume_unwind;
use std::thread;

/// So many rows are read by one thread in less time than it takes to start another.
const FEW: i64 = 50_000;

/// Which rows of each table are read.
#[derive(Clone, Copy)]
struct Part {
    index: i64,
    of: i64,
}

/// Whether there are so many of them that two should read.
pub(super) fn are_many(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(last_row(connection, "stacks")? > FEW)
}

fn last_row(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    let last = format!("SELECT ifnull(max(rowid), 0) FROM {table}");
    connection.query_row(&last, [], |row| row.get(0))
}

/// Reads all of them, half by `helper` if there is one, which must see the same; adds to `skipped`
/// the rows that this build does not understand.
pub(super) fn read(
    connection: &Connection,
    helper: Option<Connection>,
    columns: &Columns,
    names: &Names,
    table: &mut StackTable,
    skipped: &mut u64,
) -> rusqlite::Result<()> {
    let Some(helper) = helper else {
        let all = Part { index: 0, of: 1 };
        return read_part(connection, all, columns, names, table, skipped);
    };
    thread::scope(|scope| {
        let later = scope.spawn(move || {
            let part = Part { index: 1, of: 2 };
            let (mut table, mut skipped) = (StackTable::default(), 0);
            read_part(&helper, part, columns, names, &mut table, &mut skipped)?;
            Ok::<_, rusqlite::Error>((table, skipped))
        });
        let part = Part { index: 0, of: 2 };
        read_part(connection, part, columns, names, table, skipped)?;
        let (later, skipped_later) = later.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        table.absorb(&later);
        *skipped += skipped_later;
        Ok(())
    })
}

fn read_part(
    connection: &Connection,
    part: Part,
    columns: &Columns,
    names: &Names,
    table: &mut StackTable,
    skipped: &mut u64,
) -> rusqlite::Result<()> {
    let mut each = |table: &str, columns: &str, take: &mut dyn FnMut(&Row<'_>) -> Option<()>| {
        let last = last_row(connection, table)?;
        let bound = |index| last / part.of * index;
        let (after, until) = (
            bound(part.index),
            if part.index + 1 == part.of {
                last
            } else {
                bound(part.index + 1)
            },
        );
        let mut select = connection.prepare(&format!(
            "SELECT {columns} FROM {table} WHERE rowid > ? AND rowid <= ? ORDER BY rowid"
        ))?;
        let mut rows = select.query([after, until])?;
        while let Some(row) = rows.next()? {
            if take(row).is_none() {
                *skipped += 1;
            }
        }
        Ok::<_, rusqlite::Error>(())
    };
    each("stacks", "stack, frames", &mut |row| {
        let frames = text(row, 1)?;
        let id = row.get(0).ok()?;
        table.learn_frames(id, |name| each_name(frames, name)).ok()
    })?;
    if columns.has_table("stack_sums") {
        each(
            "stack_sums",
            "kind, device, label, pid, comm, workload, kernel_stack, user_stack, count, time_ns,
                bytes",
            &mut |row| sums(row, names, table),
        )?;
    }
    // The first version had a table of the stacks of flushes, and no others.
    if columns.has_table("flush_stacks") {
        each("flush_stacks", "device, cause, stack, count", &mut |row| {
            let count = row.get::<_, i64>(3).ok()? as u64;
            table.add_sums(
                StackKind::Flush,
                dev(row, 0, names)?,
                text(row, 1)?,
                None,
                [Some(row.get(2).ok()?), None],
                StackSums {
                    count,
                    ..StackSums::default()
                },
            );
            Some(())
        })?;
    }
    Ok(())
}

fn sums(row: &Row<'_>, names: &Names, table: &mut StackTable) -> Option<()> {
    let number = |index| row.get::<_, i64>(index).ok().map(|bits| bits as u64);
    let who = match (row.get(3).ok()?, row.get(5).ok()?) {
        (Some(pid), Some(workload)) => text(row, 4).map(|comm| (pid, comm, workload)),
        _ => None,
    };
    table.add_sums(
        StackKind::from_name(text(row, 0)?)?,
        dev(row, 1, names)?,
        text(row, 2).unwrap_or_default(),
        who,
        [row.get(6).ok()?, row.get(7).ok()?],
        StackSums {
            count: number(8)?,
            time_ns: number(9)?,
            bytes: number(10)?,
        },
    );
    Some(())
}

/// A cell's text; `None` if it holds none.
fn text<'a>(row: &'a Row<'_>, index: usize) -> Option<&'a str> {
    row.get_ref(index).ok()?.as_str().ok()
}

fn dev(row: &Row<'_>, index: usize, names: &Names) -> Option<Dev> {
    match row.get_ref(index).ok()?.as_str_or_null().ok()? {
        Some(name) => names.dev(name),
        None => Some(Dev::NONE),
    }
}

/// Hands over the names of a JSON array.
fn each_name(array: &str, take: &mut dyn FnMut(&str)) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(array);
    EachOf(take).deserialize(&mut json)?;
    json.end()
}

/// Takes an array of names in without owning any of it.
struct EachOf<'a>(&'a mut dyn FnMut(&str));

impl<'de> DeserializeSeed<'de> for EachOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EachOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of names")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<(), A::Error> {
        while names.next_element_seed(One(self.0))?.is_some() {}
        Ok(())
    }
}

/// The same for one name.
struct One<'a>(&'a mut dyn FnMut(&str));

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<(), E> {
        (self.0)(name);
        Ok(())
    }
}
