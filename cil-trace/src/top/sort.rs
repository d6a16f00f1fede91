//! The order of a table's rows.

use cil_trace_core::report::table::{Cell, Table};
use std::borrow::Cow;
use std::cmp::Ordering;

/// By which column rows are sorted, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sort {
    /// The column's name.
    pub column: Cow<'static, str>,
    /// The largest comes first.
    pub descending: bool,
}

impl Sort {
    /// The largest comes first.
    #[must_use]
    pub const fn descending(column: &'static str) -> Self {
        Self {
            column: Cow::Borrowed(column),
            descending: true,
        }
    }

    /// Sorts the rows; rows that are equal keep their order, and what is not there comes last.
    pub fn apply(&self, table: &mut Table) {
        let Some(place) = self.place(table) else {
            return;
        };
        table.rows.sort_by(|a, b| {
            let (a, b) = (&a[place], &b[place]);
            let absent = |cell: &Cell| matches!(cell, Cell::Blank | Cell::Missing);
            let order = match self.descending {
                false => compare(a, b),
                true => compare(b, a),
            };
            absent(a).cmp(&absent(b)).then(order)
        });
    }

    /// Where its column is in a table.
    #[must_use]
    pub fn place(&self, table: &Table) -> Option<usize> {
        let mut columns = table.columns.iter();
        columns.position(|column| column.name == self.column)
    }
}

fn compare(a: &Cell, b: &Cell) -> Ordering {
    match (a.number(), b.number()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => match (a, b) {
            (Cell::Text(a), Cell::Text(b)) => by_number(a, b),
            _ => Ordering::Equal,
        },
    }
}

/// Texts that are numbers, such as process ids, by their value.
fn by_number(a: &str, b: &str) -> Ordering {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cil_trace_core::report::table::{Builder, Unit};

    #[test]
    fn numbers_by_value_and_what_is_absent_last() {
        let rows = [
            ("9", Cell::Ns(5)),
            ("10", Cell::Blank),
            ("8", Cell::Ns(700)),
            ("7", Cell::Missing),
        ];
        let table = Builder::new("t", "T", &rows)
            .key("pid", |row| row.0)
            .column("wait", Unit::Ns, |row| row.1.clone())
            .build();
        let order = |column: &'static str, descending| {
            let mut table = table.clone();
            let column = column.into();
            Sort { column, descending }.apply(&mut table);
            table
                .rows
                .iter()
                .map(|row| row[0].human())
                .collect::<Vec<_>>()
        };
        assert_eq!(order("wait", true), ["8", "9", "10", "7"]);
        assert_eq!(order("wait", false), ["9", "8", "10", "7"]);
        assert_eq!(order("pid", false), ["7", "8", "9", "10"]);
        assert_eq!(order("gone", false), ["9", "10", "8", "7"]);
    }
}
