//! What the screen shows and why: everything that a key can change, and what follows from it.
//!
//! Pure: it knows neither terminal nor kernel nor clock. [`State::update`] takes what happens, the
//! view draws what is there.

use super::sort::Sort;
use super::tabs::{TABS, Tab};
use super::text::{Frame, Stretch};
use super::theme::Theme;
use super::view::Areas;
use super::view::table::rows_that_fit;
use super::{detail, help};
use cil_trace_core::device::Dev;
use cil_trace_core::history::tables::View;
use cil_trace_core::history::{History, Keep, Span};
use cil_trace_core::report::table::{Cell, Table};
use ratatui::layout::Rect;
use std::time::Duration;

/// A second, in nanoseconds.
pub const S: u64 = 1_000_000_000;

/// What is kept of a live session, and drawn as curves.
pub const KEPT: Keep = Keep {
    ns: 120 * S,
    ticks: 600,
};

/// The same while the picture is held, so that it does not slide away under the eye.
pub const HELD: Keep = Keep {
    ns: 600 * S,
    ticks: 600,
};

/// What is kept of a recording; going back further reads it again.
pub const REPLAYED: Keep = Keep {
    ns: u64::MAX,
    ticks: 3_600,
};

/// The stretches that one can look at, each under its name.
pub const SPANS: [(Span, &str); 4] = [
    (Span::Tick, "1 tick"),
    (Span::Last(10 * S), "10 s"),
    (Span::Last(120 * S), "2 min"),
    (Span::All, "since start"),
];

/// Where ticks come from.
#[derive(Clone, PartialEq, Debug)]
pub enum Source {
    /// From the kernel, in this distance.
    Live(Duration),
    /// From a recording.
    Replay {
        /// Its name.
        file: String,
        /// The index of its last tick.
        last: u64,
        /// How many times as fast as it was recorded.
        speed: f64,
    },
}

impl Source {
    /// Whether it is a recording.
    #[must_use]
    pub const fn is_replay(&self) -> bool {
        matches!(self, Self::Replay { .. })
    }
}

/// What lies over the tab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overlay {
    /// The keys.
    Help,
    /// All that is known of the chosen row.
    Detail,
}

/// Where one is in a tab.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Place {
    /// As chosen; `None` for the tab's own.
    pub sort: Option<Sort>,
    /// The chosen row.
    pub row: usize,
    /// What identifies it, so that it is found again when rows move.
    pub key: Option<String>,
    /// The first row, or line, that is seen.
    pub top: usize,
}

/// A line for the eye, in the place of the hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// What it says.
    pub text: String,
    /// It is about something that failed.
    pub failed: bool,
}

/// Everything.
#[derive(Clone, Debug)]
pub struct State {
    /// The ticks.
    pub history: History,
    /// Where they come from.
    pub source: Source,
    /// The index of the tick that is shown.
    pub moment: u64,
    /// The tick of a recording that is wanted and has not been read.
    pub target: Option<u64>,
    /// The picture is held.
    pub paused: bool,
    /// Which of [`SPANS`] is shown.
    pub span: usize,
    /// The filesystem that is shown; `None` for all.
    pub dev: Option<Dev>,
    /// Rows must contain this.
    pub filter: String,
    /// Keys go to the filter.
    pub filtering: bool,
    /// Which of [`TABS`] is shown.
    pub tab: usize,
    /// One for each tab.
    pub places: Vec<Place>,
    /// What lies over the tab.
    pub overlay: Option<Overlay>,
    /// The first line of the overlay that is seen.
    pub overlay_top: usize,
    /// What there is to say.
    pub message: Option<Message>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// How things look.
    pub theme: Theme,
    /// Where the clock's time is shown.
    pub zone: jiff::tz::TimeZone,
    /// What follows from all that.
    pub shown: Shown,
}

/// What follows from the state, made once per change and not once per drawing.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The stretch.
    pub stretch: Stretch,
    /// What it was made of: the last tick, and what of the state chooses it.
    of: Option<(Option<u64>, u64, usize, Option<Dev>)>,
    /// The width of the overview, if that is what the lines are.
    overview: Option<u16>,
    /// The tab's table, filtered and sorted.
    pub table: Option<Table>,
    /// Rows that the filter hides.
    pub hidden: usize,
    /// The tab's text, if it has no table; or the overlay's.
    pub lines: Vec<String>,
    /// Flushes that have been under way for longer than is good, as device and age.
    pub stuck: Vec<(String, u64)>,
}

impl State {
    /// The first screen.
    #[must_use]
    pub fn new(history: History, source: Source, theme: Theme) -> Self {
        let mut state = Self {
            target: source.is_replay().then_some(0),
            history,
            source,
            moment: 0,
            paused: false,
            span: 0,
            dev: None,
            filter: String::new(),
            filtering: false,
            tab: 0,
            places: vec![Place::default(); TABS.len()],
            overlay: None,
            overlay_top: 0,
            message: None,
            size: (80, 24),
            theme,
            zone: jiff::tz::TimeZone::UTC,
            shown: Shown::default(),
        };
        state.refresh();
        state
    }

    /// The tab that is shown.
    #[must_use]
    pub fn tab(&self) -> &'static Tab {
        // Keys choose among those that there are.
        &TABS[self.tab]
    }

    /// Where one is in it.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.places[self.tab]
    }

    /// The same, to change it.
    pub fn place_mut(&mut self) -> &mut Place {
        &mut self.places[self.tab]
    }

    /// How the tab's rows are sorted.
    #[must_use]
    pub fn sort(&self) -> Option<&Sort> {
        self.place().sort.as_ref().or(self.tab().sort.as_ref())
    }

    /// What is looked at.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View {
            history: &self.history,
            dev: self.dev,
            span: SPANS[self.span].0,
            index: self.moment,
        }
    }

    /// The name of the filesystem that is shown.
    #[must_use]
    pub fn device(&self) -> Option<String> {
        self.dev.map(|dev| self.history.total().name(dev))
    }

    /// Makes what follows from the state. After every change.
    pub(super) fn refresh(&mut self) {
        let last = self.history.bounds().map(|(_, last)| last);
        let of = (last, self.moment, self.span, self.dev);
        let same = self.shown.of == Some(of);
        let stretch = match same {
            true => std::mem::take(&mut self.shown.stretch),
            false => Stretch::of(self.view()),
        };
        let mut table = self.tab().table(self.view(), &stretch.report);
        let mut hidden = 0;
        if let Some(table) = &mut table {
            let all = table.rows.len();
            let wanted = self.filter.to_lowercase();
            table.rows.retain(|row| matches(row, &wanted));
            hidden = all - table.rows.len();
            if let Some(sort) = self.sort() {
                sort.apply(table);
            }
        }
        let devices = stretch.report.devices.iter();
        let ages = devices.filter_map(|row| Some((row.device.clone(), row.oldest_in_flight_ns?)));
        self.shown.stuck = ages.filter(|(_, age)| *age > STUCK_NS).collect();
        self.find_row(table.as_ref());
        self.keep_in_view(table.as_ref());
        let overview = (self.overlay.is_none() && table.is_none()).then_some(self.size.0);
        let lines = match same && overview.is_some() && self.shown.overview == overview {
            true => std::mem::take(&mut self.shown.lines),
            false => self.lines(table.as_ref(), &stretch),
        };
        self.shown = Shown {
            stuck: std::mem::take(&mut self.shown.stuck),
            of: Some(of),
            overview,
            stretch,
            table,
            hidden,
            lines,
        };
    }

    /// The text of the overlay, or of a tab without a table.
    fn lines(&self, table: Option<&Table>, stretch: &Stretch) -> Vec<String> {
        let (width, _) = self.size;
        let view = self.view();
        match (self.overlay, table) {
            (Some(Overlay::Help), _) => help::lines(self.source.is_replay()),
            (Some(Overlay::Detail), Some(table)) => match table.rows.get(self.place().row) {
                Some(cells) => {
                    let row = detail::Row { table, cells };
                    let model = view.history.model(view.span, view.index);
                    let width = usize::from(width);
                    detail::lines(self.tab(), row, &stretch.report, &model, width)
                }
                None => vec!["this row has gone".to_owned()],
            },
            (None, None) => Frame { view, stretch }.overview(width),
            _ => Vec::new(),
        }
    }

    /// Finds the chosen row again, or the one in its place.
    fn find_row(&mut self, table: Option<&Table>) {
        let place = self.place_mut();
        let rows = table.map_or(0, |table| table.rows.len());
        let is = |row: usize, key: &String| {
            let found = table.and_then(|table| identity(table, row));
            found.as_ref() == Some(key)
        };
        // Where rows look alike, such as two pushes, the place tells which is meant.
        if let Some(key) = &place.key
            && !is(place.row, key)
            && let Some(found) = (0..rows).find(|row| is(*row, key))
        {
            place.row = found;
        }
        place.row = place.row.min(rows.saturating_sub(1));
        if place.key.is_some() {
            place.key = table.and_then(|table| identity(table, place.row));
        }
    }

    /// Scrolls as little as it takes for the chosen row to be seen.
    fn keep_in_view(&mut self, table: Option<&Table>) {
        let Some(table) = table else {
            return;
        };
        let (columns, rows) = self.size;
        let alarm = !self.shown.stuck.is_empty();
        let body = Areas::of(Rect::new(0, 0, columns, rows), alarm).body;
        let fit = rows_that_fit(table, body);
        let place = self.place_mut();
        let last = table.rows.len().saturating_sub(fit);
        let least = (place.row + 1).saturating_sub(fit);
        place.top = place.top.clamp(least, place.row.max(least)).min(last);
    }

    /// Chooses a row by its number.
    pub(super) fn choose(&mut self, row: usize) {
        let Some(table) = &self.shown.table else {
            return;
        };
        let row = row.min(table.rows.len().saturating_sub(1));
        let key = identity(table, row);
        let place = self.place_mut();
        place.row = row;
        place.key = key;
    }
}

/// Columns that tell rows apart, beside a table's keys.
const IDENTITY: &[&str] = &[
    "device", "cause", "via", "lock", "kind", "mode", "pid", "comm", "workload", "trigger", "probe",
];

/// What tells a row from the others of its table; `None` without such a row.
fn identity(table: &Table, row: usize) -> Option<String> {
    let columns = table.columns.iter().enumerate();
    let cells = columns.zip(table.rows.get(row)?);
    let own = cells.filter(|((place, column), _)| {
        *place < table.keys || IDENTITY.contains(&column.name.as_str())
    });
    let own: Vec<_> = own.map(|(_, cell)| cell.human()).collect();
    Some(own.join("\u{1f}"))
}

/// Whether a row contains what is wanted, which is in lower case.
fn matches(row: &[Cell], wanted: &str) -> bool {
    wanted.is_empty()
        || row
            .iter()
            .any(|cell| cell.human().to_lowercase().contains(wanted))
}

/// A flush that has been under way for longer is worth a look; see the section `devices`.
const STUCK_NS: u64 = S;
