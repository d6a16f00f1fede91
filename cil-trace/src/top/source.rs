//! Where the ticks of `top` come from: the kernel, or a recording.

use super::state::{KEPT, REPLAYED, Source, State};
use super::theme::Theme;
use crate::collect::{Collector, Window};
use crate::options::TopOptions;
use anyhow::{Context as _, Result};
use cil_trace_core::history::{History, Keep};
use cil_trace_core::recording::Recording;
use cil_trace_core::session::Header;
use cil_trace_core::tick::Tick;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::sleep_until;

/// For how long ticks of a recording are read before keys are looked at again.
const PATIENCE: Duration = Duration::from_millis(50);

/// A source of ticks.
pub enum Ticks {
    /// The kernel, with its window open.
    Live(Box<Window>),
    /// A recording.
    Replay(Box<Recording>),
}

/// What a source has to say next.
pub enum News {
    /// The next ticks; none if there are no more.
    Ticks(Vec<Tick>),
    /// It is time for the next.
    Beat,
}

/// A source that was opened, and what it says of itself.
pub struct Opened {
    /// The ticks.
    pub ticks: Ticks,
    /// What is known once.
    pub header: Header,
    /// The same for the screen.
    pub source: Source,
}

impl Opened {
    /// Opens what is asked for. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// If this machine cannot be traced, or the recording not be read; the text names the remedy.
    pub fn new(options: &TopOptions) -> Result<Self> {
        match &options.replay {
            Some(path) => Self::replay(path),
            None => Self::live(options),
        }
    }

    fn live(options: &TopOptions) -> Result<Self> {
        let mut collector = Collector::load(&options.tracing)?;
        if let Some(pid) = options.pid {
            // That it lives is asked here; that it ends later ends nothing.
            drop(crate::workload::Subject::process(pid)?);
            collector.add_workload(pid)?;
        }
        let mut header = collector.header().clone();
        header.scope.pid = options.pid;
        let window = collector.open()?;
        header.window_start_ns = window.start_ns;
        Ok(Self {
            ticks: Ticks::Live(Box::new(window)),
            header,
            source: Source::Live(options.tracing.interval),
        })
    }

    fn replay(path: &Path) -> Result<Self> {
        let recording = Recording::open(path)?;
        if let Some(hint) = recording.hint() {
            log::warn!("{hint}");
        }
        let last = recording
            .last_tick()?
            .with_context(|| format!("{}: nothing was recorded: it has no tick", path.display()))?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        Ok(Self {
            header: recording.header().clone(),
            source: Source::Replay {
                file: name.to_string_lossy().into_owned(),
                last,
                speed: 1.0,
            },
            ticks: Ticks::Replay(Box::new(recording)),
        })
    }

    /// How much is kept of it.
    #[must_use]
    pub fn keep(&self) -> Keep {
        match self.ticks {
            Ticks::Live(_) => KEPT,
            Ticks::Replay(_) => REPLAYED,
        }
    }

    /// The first screen, and the ticks that belong on it.
    #[must_use]
    pub fn screen(self, theme: Theme) -> (State, Ticks) {
        let history = History::new(self.header.clone(), self.keep());
        let mut state = State::new(history, self.source, theme);
        state.zone = jiff::tz::TimeZone::system();
        (state, self.ticks)
    }
}

impl Ticks {
    /// The tick with the index `from`, when its time has come; that of a recording is there at once,
    /// or `None` behind its end. Cancel safe.
    ///
    /// # Errors
    ///
    /// As [`Ticks::next`].
    pub async fn tick(&mut self, from: u64) -> Result<Option<Tick>> {
        match self {
            Self::Live(window) => window.tick().await.map(Some),
            Self::Replay(recording) => Ok(recording.ticks_from(from, 1)?.pop()),
        }
    }

    /// What comes next on a screen. Cancel safe.
    ///
    /// # Errors
    ///
    /// If a map or the recording cannot be read; of the kernel it may be called again.
    pub async fn next(&mut self, state: &State, since: Instant) -> Result<News> {
        let recording = match self {
            Self::Live(window) => return Ok(News::Ticks(vec![window.tick().await?])),
            Self::Replay(recording) => recording,
        };
        let Some((from, to)) = state.wanted() else {
            let at = since + state.beat_after();
            sleep_until(at.into()).await;
            return Ok(News::Beat);
        };
        Ok(News::Ticks(read(recording, from, to)?))
    }
}

/// The ticks from one to another, as many as can be read in a moment and at least one.
fn read(recording: &Recording, from: u64, to: u64) -> Result<Vec<Tick>> {
    let begun = Instant::now();
    let mut ticks: Vec<Tick> = Vec::new();
    loop {
        let next = ticks
            .last()
            .map_or(from, |tick| tick.index.saturating_add(1));
        if next > to || begun.elapsed() > PATIENCE && !ticks.is_empty() {
            return Ok(ticks);
        }
        let more = recording.ticks_from(next, 1)?;
        if more.is_empty() {
            return Ok(ticks);
        }
        ticks.extend(more);
    }
}
