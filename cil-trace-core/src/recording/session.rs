//! What is stored once per recording: its header and its footer.
//!
//! Each field is a row of `meta` with a JSON value, except lists, which have tables.

use crate::session::{Footer, Header, Outcome, ProbeOutcome, ProgramCost, Workload, XfsStats};
use rusqlite::{Connection, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The field of `meta` whose presence says that the recording was finished.
const FINISHED: &str = "window_end_ns";

/// Fields of header and footer that have tables of their own.
const TABLES: [&str; 3] = ["devices", "probes", "xfs_stats"];

/// Stores the header, but not its devices; replaces an earlier one.
pub(super) fn write_header(connection: &Connection, header: &Header) -> rusqlite::Result<()> {
    write_meta(connection, header)?;
    connection.execute("DELETE FROM probes", [])?;
    let mut insert = connection.prepare("INSERT OR REPLACE INTO probes VALUES (?, ?, ?, ?)")?;
    for probe in &header.probes {
        let ProbeOutcome {
            probe,
            outcome,
            how,
            reason,
        } = probe;
        insert.execute(params![probe, outcome.name(), how, reason])?;
    }
    Ok(())
}

/// Reads the header, but not its devices.
pub(super) fn read_header(connection: &Connection) -> Result<Header, Problem> {
    let mut header: Header = read_meta(connection)?;
    let mut select =
        connection.prepare("SELECT probe, outcome, how, reason FROM probes ORDER BY rowid")?;
    let rows = select.query_map([], |row| {
        let outcome: String = row.get(1)?;
        let (probe, how, reason) = (row.get(0)?, row.get(2)?, row.get(3)?);
        // An outcome of a later version is none that we know to have measured anything.
        let outcome = Outcome::from_name(&outcome).unwrap_or(Outcome::Skipped);
        Ok(ProbeOutcome {
            probe,
            outcome,
            how,
            reason,
        })
    })?;
    header.probes = rows.collect::<Result<_, _>>()?;
    Ok(header)
}

/// Stores the footer.
pub(super) fn write_footer(connection: &Connection, footer: &Footer) -> rusqlite::Result<()> {
    let mut fields = footer.clone();
    let metrics = fields
        .workload
        .as_mut()
        .map(|workload| std::mem::take(&mut workload.metrics));
    let programs = fields
        .overhead
        .as_mut()
        .map(|cost| std::mem::take(&mut cost.per_program));
    write_meta(connection, &fields)?;
    let mut insert = connection.prepare("INSERT INTO workload_metrics VALUES (?, ?)")?;
    for (metric, value) in metrics.into_iter().flatten() {
        insert.execute(params![metric, value])?;
    }
    let mut insert = connection.prepare("INSERT OR REPLACE INTO programs VALUES (?, ?, ?)")?;
    for ProgramCost {
        program,
        run_ns,
        runs,
    } in programs.into_iter().flatten()
    {
        insert.execute(params![program, run_ns as i64, runs as i64])?;
    }
    let mut insert = connection.prepare("INSERT OR REPLACE INTO xfs_stats VALUES (?, ?, ?, ?)")?;
    for XfsStats {
        device,
        start,
        end,
        end_ns,
    } in &footer.xfs_stats
    {
        insert.execute(params![device, start, end, *end_ns as i64])?;
    }
    Ok(())
}

/// Reads the footer; `None` if there is none.
pub(super) fn read_footer(connection: &Connection) -> Result<Option<Footer>, Problem> {
    let finished = "SELECT EXISTS (SELECT 1 FROM meta WHERE key = ?)";
    if !connection.query_row(finished, [FINISHED], |row| row.get(0))? {
        return Ok(None);
    }
    let mut footer: Footer = read_meta(connection)?;
    if let Some(workload) = &mut footer.workload {
        *workload = Workload {
            metrics: metrics(connection)?,
            ..std::mem::take(workload)
        };
    }
    if let Some(overhead) = &mut footer.overhead {
        let mut select =
            connection.prepare("SELECT program, run_ns, runs FROM programs ORDER BY rowid")?;
        let rows = select.query_map([], |row| {
            let [run_ns, runs] = [row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64];
            Ok(ProgramCost {
                program: row.get(0)?,
                run_ns,
                runs,
            })
        })?;
        overhead.per_program = rows.collect::<Result<_, _>>()?;
    }
    let mut select = connection
        .prepare("SELECT device, start_text, end_text, end_ns FROM xfs_stats ORDER BY rowid")?;
    let rows = select.query_map([], |row| {
        let end_ns = row.get::<_, i64>(3)? as u64;
        Ok(XfsStats {
            device: row.get(0)?,
            start: row.get(1)?,
            end: row.get(2)?,
            end_ns,
        })
    })?;
    footer.xfs_stats = rows.collect::<Result<_, _>>()?;
    Ok(Some(footer))
}

fn metrics(connection: &Connection) -> rusqlite::Result<BTreeMap<String, f64>> {
    // SQLite has no NaN and stores NULL for it: a result that is not a number is none.
    let select = "SELECT metric, value FROM workload_metrics WHERE value IS NOT NULL";
    let mut select = connection.prepare(select)?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Why header or footer could not be read.
pub(super) enum Problem {
    Sql(rusqlite::Error),
    Json(serde_json::Error),
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

fn write_meta(connection: &Connection, fields: &impl Serialize) -> rusqlite::Result<()> {
    let fields = serde_json::to_value(fields)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let mut insert = connection.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)")?;
    for (key, value) in fields.as_object().into_iter().flatten() {
        if !TABLES.contains(&key.as_str()) {
            insert.execute(params![key, value.to_string()])?;
        }
    }
    Ok(())
}

fn read_meta<T: DeserializeOwned>(connection: &Connection) -> Result<T, Problem> {
    let mut select = connection.prepare("SELECT key, value FROM meta")?;
    let mut rows = select.query([])?;
    let mut fields = Map::new();
    while let Some(row) = rows.next()? {
        let value: String = row.get(1)?;
        fields.insert(
            row.get(0)?,
            serde_json::from_str(&value).map_err(Problem::Json)?,
        );
    }
    serde_json::from_value(Value::Object(fields)).map_err(Problem::Json)
}
