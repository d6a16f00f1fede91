//! Reading a recording: finished, cut short, or still growing.

use super::error::{RecordingError, in_file};
use super::file;
use super::names::Names;
use super::rows::{self, Columns, FlushStack};
use super::session::{self, Problem};
use super::stacks;
use crate::model::Model;
use crate::session::{Footer, Header};
use crate::tick::{Cost, StackRow, Tick};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// A recording, open for reading. It is never changed.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    connection: Connection,
    columns: Columns,
    names: Names,
    header: Header,
    footer: Option<Footer>,
}

impl Recording {
    /// Opens a recording; one that is still being made as it is at this moment.
    ///
    /// # Errors
    /// [`RecordingError`] tells apart what is missing, not a recording, written by a later
    /// version, unreadable or damaged, each with the remedy.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let connection = file::open_for_reading(path)?;
        let failed = in_file(path);
        // One transaction from here on, so that header, ticks and footer belong together.
        connection.execute_batch("BEGIN").map_err(&failed)?;
        let columns = Columns::of(&connection).map_err(&failed)?;
        let names = names(&connection).map_err(&failed)?;
        let problem = |problem| match problem {
            Problem::Sql(source) => failed(source),
            Problem::Json(source) => {
                let path = path.to_owned();
                RecordingError::Damaged { path, source }
            }
        };
        let mut header = session::read_header(&connection).map_err(problem)?;
        header.devices =
            rows::read(&connection, &columns, None, &names, &mut 0).map_err(&failed)?;
        let footer = session::read_footer(&connection).map_err(problem)?;
        Ok(Self {
            path: path.to_owned(),
            connection,
            columns,
            names,
            header,
            footer,
        })
    }

    /// What was known when the window opened.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was known when the window had closed; `None` if it was cut short.
    #[must_use]
    pub fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// Whether it has no end: cil-trace was killed, or is still recording.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.footer.is_none()
    }

    /// What to know before moving an interrupted recording; `None` for a finished one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.interrupted().then(|| {
            let path = self.path.display();
            if file::has_wal(&self.path) {
                format!(
                    "{path} has no end: cil-trace was killed, or is still recording. {path}-wal \
                     and {path}-shm belong to it: move or copy the three together"
                )
            } else {
                format!(
                    "{path} has no end, and no {path}-wal lies beside it: if it was moved, the \
                     last ticks may have stayed in the {path}-wal where it was recorded"
                )
            }
        })
    }

    /// Hands over the ticks, one by one and in order. Returns how many rows were left out because
    /// they hold names that this build does not know.
    ///
    /// # Errors
    /// If SQLite cannot read; the ticks before were handed over.
    pub fn for_each_tick(&self, mut take: impl FnMut(&Tick)) -> Result<u64, RecordingError> {
        let mut skipped = 0;
        self.ticks(Wanted::ALL, &mut |tick| take(&tick), &mut skipped)
            .map_err(in_file(&self.path))?;
        Ok(skipped)
    }

    /// At most `most` ticks from the one with the index `from` on, in order.
    ///
    /// # Errors
    /// If SQLite cannot read.
    pub fn ticks_from(&self, from: u64, most: usize) -> Result<Vec<Tick>, RecordingError> {
        let mut ticks = Vec::new();
        let wanted = Wanted {
            from,
            most: Some(most),
            ..Wanted::ALL
        };
        self.ticks(wanted, &mut |tick| ticks.push(tick), &mut 0)
            .map_err(in_file(&self.path))?;
        Ok(ticks)
    }

    /// The index of the last tick; `None` without any.
    ///
    /// # Errors
    /// If SQLite cannot read.
    pub fn last_tick(&self) -> Result<Option<u64>, RecordingError> {
        let last = "SELECT max(tick) FROM ticks";
        let last = self.connection.query_row(last, [], |row| row.get(0));
        let last: Option<i64> = last.map_err(in_file(&self.path))?;
        Ok(last.map(|bits| bits as u64))
    }

    /// The model of the whole recording.
    ///
    /// # Errors
    /// If SQLite cannot read.
    pub fn model(&self) -> Result<Model, RecordingError> {
        let mut model = Model::new(self.header.clone());
        let mut skipped = 0;
        let wanted = Wanted {
            stacks: false,
            ..Wanted::ALL
        };
        self.ticks(wanted, &mut |tick| model.apply(&tick), &mut skipped)
            .and_then(|()| {
                stacks::read(
                    &self.connection,
                    self.helper()?,
                    &self.columns,
                    &self.names,
                    model.stacks_mut(),
                    &mut skipped,
                )
            })
            .map_err(in_file(&self.path))?;
        model.skipped(skipped);
        if let Some(footer) = self.footer.clone() {
            model.finish(footer);
        }
        Ok(model)
    }

    /// A second connection that reads the same; `None` if it would not, or is not worth it.
    fn helper(&self) -> rusqlite::Result<Option<Connection>> {
        // One that is still growing has grown since, and another may lie at its path by now.
        if self.interrupted() || !stacks::are_many(&self.connection)? {
            return Ok(None);
        }
        let helper = file::open_for_reading(&self.path).ok();
        Ok(helper.filter(|helper| {
            session::read_footer(helper).is_ok_and(|footer| footer == self.footer)
        }))
    }

    fn ticks(
        &self,
        wanted: Wanted,
        take: &mut impl FnMut(Tick),
        skipped: &mut u64,
    ) -> rusqlite::Result<()> {
        let with_stacks = wanted.stacks;
        let columns = self.columns.list(
            "ticks",
            &[
                "tick",
                "start_ns",
                "end_ns",
                "in_flight",
                "bpf_run_ns",
                "own_ns",
                "sampled_1_in",
            ],
        );
        let select = format!("SELECT {columns} FROM ticks WHERE tick >= ? ORDER BY tick LIMIT ?");
        let mut select = self.connection.prepare(&select)?;
        // SQLite takes a negative limit for none.
        let most = wanted
            .most
            .map_or(-1, |most| i64::try_from(most).unwrap_or(i64::MAX));
        let mut ticks = select.query([wanted.from as i64, most])?;
        while let Some(row) = ticks.next()? {
            let [index, start_ns, end_ns] =
                [row.get(0)?, row.get(1)?, row.get(2)?].map(|bits: i64| bits as u64);
            let [in_flight, bpf_run_ns, own_ns] = [row.get(3)?, row.get(4)?, row.get(5)?]
                .map(|bits: Option<i64>| bits.map(|b| b as u64));
            take(Tick {
                index,
                start_ns,
                end_ns,
                counters: self.rows(index, skipped)?,
                histograms: self.rows(index, skipped)?,
                events: self.rows(index, skipped)?,
                events_seen: self.rows(index, skipped)?,
                processes: self.rows(index, skipped)?,
                losses: self.rows(index, skipped)?,
                stacks: if with_stacks {
                    self.rows(index, skipped)?
                } else {
                    Vec::new()
                },
                stack_rows: if with_stacks {
                    self.stack_rows(index, skipped)?
                } else {
                    Vec::new()
                },
                // Earlier builds sampled nothing.
                sampled_1_in: row.get::<_, Option<u32>>(6)?.unwrap_or(1),
                lock_callers: self.rows(index, skipped)?,
                blocked: self.rows(index, skipped)?,
                devices: self.rows(index, skipped)?,
                probes: self.rows(index, skipped)?,
                in_flight: match in_flight {
                    Some(_) => Some(self.rows(index, skipped)?),
                    None => None,
                },
                cost: bpf_run_ns
                    .zip(own_ns)
                    .map(|(bpf_run_ns, own_ns)| Cost { bpf_run_ns, own_ns }),
            });
        }
        Ok(())
    }

    fn rows<R: rows::Row>(&self, tick: u64, skipped: &mut u64) -> rusqlite::Result<Vec<R>> {
        rows::read(
            &self.connection,
            &self.columns,
            Some(tick),
            &self.names,
            skipped,
        )
    }

    fn stack_rows(&self, tick: u64, skipped: &mut u64) -> rusqlite::Result<Vec<StackRow>> {
        let mut rows: Vec<StackRow> = self.rows(tick, skipped)?;
        let of_first_version = self.rows::<FlushStack>(tick, skipped)?;
        rows.extend(of_first_version.into_iter().map(|FlushStack(row)| row));
        Ok(rows)
    }
}

/// What is read of the ticks.
#[derive(Clone, Copy)]
struct Wanted {
    /// Index of the first.
    from: u64,
    /// How many at most.
    most: Option<usize>,
    /// Whether their stacks too.
    stacks: bool,
}

impl Wanted {
    const ALL: Self = Self {
        from: 0,
        most: None,
        stacks: true,
    };
}

/// All names that devices ever had in the recording.
fn names(connection: &Connection) -> rusqlite::Result<Names> {
    let mut names = Names::default();
    let mut select =
        connection.prepare("SELECT major, minor, device FROM devices ORDER BY rowid")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let dev = crate::device::Dev::new(row.get(0)?, row.get(1)?);
        names.learn(dev, &row.get::<_, String>(2)?);
    }
    Ok(names)
}
