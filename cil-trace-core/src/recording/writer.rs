//! Writing a recording, tick by tick.

use super::error::{RecordingError, in_file};
use super::file::{self, Draft};
use super::names::Names;
use super::{rows, session, tables};
use crate::session::{Footer, Header, SCHEMA};
use crate::tick::Tick;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// A recording that is being made.
///
/// Every tick is one transaction in write-ahead mode, so that it can be read while it grows and
/// whatever was written survives the death of this process. Nothing is ever fsynced: the file may
/// lie on the very filesystem that is traced. Without [`Writer::finish`] the recording counts as
/// interrupted.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    connection: Connection,
    names: Names,
    /// An earlier recording is `.old` now.
    replaces: bool,
}

impl Writer {
    /// Starts a recording, with mode 0600. An earlier recording of the same name becomes
    /// `<path>.old`, once the new one lies beside it complete with its header.
    ///
    /// # Errors
    /// If something other than a recording has that name, if the earlier one is still open
    /// elsewhere, or if the file cannot be made; nothing has changed then.
    pub fn create(path: &Path, header: &Header) -> Result<Self, RecordingError> {
        let draft = Draft::beside(path)?;
        initialise(draft.path(), header).map_err(in_file(path))?;
        let replaces = draft.publish()?;
        let mut names = Names::default();
        names.learn_all(&header.devices);
        let connection = open_for_ticks(path).map_err(|error| {
            file::take_back(path, replaces);
            in_file(path)(error)
        })?;
        Ok(Self {
            path: path.to_owned(),
            connection,
            names,
            replaces,
        })
    }

    /// Takes the recording back before anything was recorded: the file goes away, and an earlier
    /// one has its name again.
    pub fn discard(self) {
        let Self {
            path,
            connection,
            replaces,
            ..
        } = self;
        drop(connection);
        file::take_back(&path, replaces);
    }

    /// Replaces the header; for what is known only once the window opens, so before the first
    /// tick.
    ///
    /// # Errors
    /// If SQLite cannot write.
    pub fn header(&mut self, header: &Header) -> Result<(), RecordingError> {
        let failed = in_file(&self.path);
        self.names.learn_all(&header.devices);
        let transaction = self.connection.transaction().map_err(&failed)?;
        write_header(&transaction, header, &self.names)
            .and_then(|()| transaction.commit())
            .map_err(&failed)
    }

    /// Appends a tick. The reader gives back the same, if event arguments are as many as
    /// [`EventKind::args`](cil_trace_common::event::EventKind::args) names.
    ///
    /// # Errors
    /// If SQLite cannot write, or has this tick's index already; nothing of the tick is in the
    /// recording then.
    pub fn tick(&mut self, tick: &Tick) -> Result<(), RecordingError> {
        self.names.learn_all(&tick.devices);
        write_tick(&mut self.connection, tick, &self.names).map_err(in_file(&self.path))
    }

    /// Stores how it ended and makes the recording one file.
    ///
    /// # Errors
    /// If SQLite cannot write; [`RecordingError::StillOpen`] if all is written but another program
    /// that has the file open keeps it from becoming one.
    pub fn finish(self, footer: &Footer) -> Result<(), RecordingError> {
        let Self {
            path,
            mut connection,
            ..
        } = self;
        let failed = in_file(&path);
        let transaction = connection.transaction().map_err(&failed)?;
        session::write_footer(&transaction, footer)
            .and_then(|()| transaction.commit())
            .map_err(&failed)?;
        // Leaving WAL mode checkpoints, and removes the `-wal`.
        match journal(&connection, "DELETE") {
            Ok(()) => connection.close().map_err(|(_, error)| failed(error)),
            Err(error) if file::is_busy(&error) => {
                Err(RecordingError::StillOpen { path: path.clone() })
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn journal(connection: &Connection, mode: &str) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", mode)
}

/// Opens a recording in write-ahead mode.
fn open_for_ticks(path: &Path) -> rusqlite::Result<Connection> {
    let connection = file::open_for_writing(path)?;
    journal(&connection, "WAL")?;
    // The first transaction makes the `-wal`, by which others know that the file is in use.
    connection.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
    Ok(connection)
}

/// Fills a new file with tables and header.
fn initialise(path: &Path, header: &Header) -> rusqlite::Result<()> {
    let connection = file::open_for_writing(path)?;
    // Nobody else knows the file yet, and a failure here removes it.
    journal(&connection, "OFF")?;
    connection.pragma_update(None, "application_id", tables::APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", SCHEMA)?;
    connection.execute_batch(tables::CREATE)?;
    let mut names = Names::default();
    names.learn_all(&header.devices);
    write_header(&connection, header, &names)?;
    connection.close().map_err(|(_, error)| error)
}

fn write_header(connection: &Connection, header: &Header, names: &Names) -> rusqlite::Result<()> {
    session::write_header(connection, header)?;
    connection.execute("DELETE FROM devices WHERE tick IS NULL", [])?;
    rows::write(connection, None, &header.devices, names)
}

fn write_tick(connection: &mut Connection, tick: &Tick, names: &Names) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let index = Some(tick.index);
    let under_way = tick.in_flight.as_deref();
    let in_flight = under_way.map(|rows| {
        rows.iter()
            .map(|row| row.flushes)
            .fold(0, u64::wrapping_add)
    });
    transaction
        .prepare_cached(
            "INSERT INTO ticks (tick, start_ns, end_ns, in_flight, bpf_run_ns, own_ns, sampled_1_in)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(
            [
                Some(tick.index),
                Some(tick.start_ns),
                Some(tick.end_ns),
                in_flight,
                tick.cost.map(|cost| cost.bpf_run_ns),
                tick.cost.map(|cost| cost.own_ns),
                Some(u64::from(tick.sampled_1_in)),
            ]
            .map(|value| value.map(|value| value as i64)),
        )?;
    rows::write(&transaction, index, &tick.devices, names)?;
    rows::write(&transaction, index, &tick.probes, names)?;
    rows::write(&transaction, index, &tick.counters, names)?;
    rows::write(&transaction, index, &tick.histograms, names)?;
    rows::write(&transaction, index, &tick.events, names)?;
    rows::write(&transaction, index, &tick.events_seen, names)?;
    rows::write(&transaction, index, &tick.processes, names)?;
    rows::write(&transaction, index, &tick.losses, names)?;
    rows::write(&transaction, index, &tick.stacks, names)?;
    rows::write(&transaction, index, &tick.stack_rows, names)?;
    rows::write(&transaction, index, under_way.unwrap_or_default(), names)?;
    rows::write(&transaction, index, &tick.lock_callers, names)?;
    rows::write(&transaction, index, &tick.blocked, names)?;
    transaction.commit()
}
