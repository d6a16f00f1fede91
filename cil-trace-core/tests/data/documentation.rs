//! `docs/recording.md` says what is true.

use crate::sample;
use cil_trace_common::metric::{Metric, Shape};
use rusqlite::Connection;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../docs/recording.md");

/// `table.column` of every table, from the database itself.
fn columns(database: &Connection) -> BTreeSet<String> {
    let all = "SELECT tables.name || '.' || columns.name
               FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
               WHERE tables.type = 'table'";
    let mut select = database.prepare(all).unwrap();
    let rows = select.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// The text between the first pair of backquotes.
fn quoted(line: &str) -> Option<&str> {
    line.split('`').nth(1)
}

#[test]
fn it_names_every_table_and_column_and_no_other() {
    let (_directory, path) = sample::recorded();
    let mut table = None;
    let mut documented = BTreeSet::new();
    for line in PAGE.lines() {
        if line.starts_with('#') {
            table = line.strip_prefix("### ").and_then(quoted);
        } else if let (Some(table), true) = (table, line.starts_with("| `")) {
            documented.insert(format!("{table}.{}", quoted(line).unwrap()));
        }
    }
    assert_eq!(documented, columns(&Connection::open(path).unwrap()));
}

#[test]
fn it_names_every_metric_with_its_table_and_unit() {
    for metric in Metric::ALL {
        let table = match metric.shape() {
            Shape::Counter => "counters",
            Shape::Histogram => "histograms",
        };
        let unit = match metric.unit() {
            "1" => String::new(),
            unit => format!("{unit} "),
        };
        let row = format!("| `{}` | {table} | {unit}| ", metric.name());
        assert!(PAGE.contains(&row), "no row begins {row:?}");
    }
}

#[test]
fn it_says_how_to_tell_a_recording() {
    let (_directory, path) = sample::recorded();
    let database = Connection::open(path).unwrap();
    for (pragma, words) in [
        ("application_id", "`PRAGMA application_id` is "),
        (
            "user_version",
            "`PRAGMA user_version` the schema version, now ",
        ),
    ] {
        let value: u32 = database
            .pragma_query_value(None, pragma, |row| row.get(0))
            .unwrap();
        assert!(
            PAGE.contains(&format!("{words}{value}")),
            "{pragma} is {value}"
        );
    }
}

#[test]
fn it_names_every_view() {
    let (_directory, path) = sample::recorded();
    let database = Connection::open(path).unwrap();
    let mut select = database
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'view'")
        .unwrap();
    let views = select.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for view in views.map(Result::unwrap) {
        assert!(PAGE.contains(&format!("`{view}`")), "{view}");
    }
}

#[test]
fn its_queries_have_answers() {
    let (_directory, path) = sample::recorded();
    let database = Connection::open(path).unwrap();
    let queries: Vec<_> = PAGE
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(queries.len() >= 6);
    for query in queries {
        let mut statement = database.prepare(query).unwrap();
        assert!(
            statement.query([]).unwrap().next().unwrap().is_some(),
            "{query}"
        );
    }
}
