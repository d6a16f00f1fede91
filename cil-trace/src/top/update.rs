//! What happens to the state: keys, ticks, resizes.

use super::state::{HELD, KEPT, Message, Overlay, REPLAYED, S, SPANS, Source, State};
use super::tabs::{Content, TABS};
use cil_trace_core::history::History;
use cil_trace_core::tick::Tick;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Duration;

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key.
    Key(KeyEvent),
    /// The next ticks, as many as there are.
    Ticks(Vec<Tick>),
    /// It is time for the next tick of a recording.
    Beat,
    /// The terminal has so many columns and rows now.
    Resize(u16, u16),
    /// Something to say.
    Message(Message),
}

/// Something that the state cannot do by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// End.
    Quit,
    /// Stop the process, as Ctrl-Z does.
    Suspend,
    /// Ticks in another distance.
    Interval(Duration),
    /// Write a recording of what is kept up to the moment.
    Save,
    /// Write a flamegraph of the stretch that is shown.
    Flamegraph,
    /// Draw everything anew.
    Redraw,
}

/// Distances of ticks that `+` and `-` go through.
const INTERVALS: [Duration; 6] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// Speeds of a replay that `+` and `-` go through.
const SPEEDS: [f64; 7] = [0.25, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0];

/// Ticks that `[` and `]` go over.
const LEAP: u64 = 10;

/// Longest filter.
const FILTER: usize = 40;

impl State {
    /// Takes what happens.
    pub fn update(&mut self, input: Input) -> Option<Effect> {
        let effect = match input {
            Input::Key(key) => self.key(key),
            Input::Ticks(ticks) => {
                self.ticks(ticks);
                None
            }
            Input::Beat => {
                self.beat();
                None
            }
            Input::Resize(columns, rows) => {
                self.size = (columns, rows);
                None
            }
            Input::Message(message) => {
                self.message = Some(message);
                None
            }
        };
        self.refresh();
        effect
    }

    /// The ticks of a recording that are wanted next: the first and the last.
    #[must_use]
    pub fn wanted(&self) -> Option<(u64, u64)> {
        let next = self
            .history
            .bounds()
            .map_or(0, |(_, last)| last.saturating_add(1));
        self.target
            .filter(|target| *target >= next)
            .map(|target| (next, target))
    }

    fn ticks(&mut self, ticks: Vec<Tick>) {
        // A recording that has fewer than it says leaves nothing to wait for.
        let came = !ticks.is_empty();
        for tick in ticks {
            self.history.push(tick);
        }
        let Some((first, last)) = self.history.bounds() else {
            self.target = None;
            return;
        };
        // Ticks of a recording come only when they were asked for.
        if !self.paused || self.source.is_replay() {
            self.moment = last;
        } else if self.moment < first {
            self.moment = first;
            self.say("what was held is older than what can be kept: this is the oldest that is");
        }
        self.target = self.target.filter(|target| came && *target > last);
    }

    fn beat(&mut self) {
        if self.paused || self.target.is_some() {
            return;
        }
        self.step(1);
        if let Source::Replay { last, .. } = self.source
            && self.moment >= last
        {
            self.paused = true;
            if self.message.is_none() {
                self.say(
                    "the recording ends here: Home goes back to its start, p plays from there",
                );
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.message = Some(Message {
            text: text.to_owned(),
            failed: false,
        });
    }

    fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.message = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Effect::Quit),
                KeyCode::Char('z') => Some(Effect::Suspend),
                KeyCode::Char('l') => Some(Effect::Redraw),
                _ => None,
            };
        }
        if self.filtering {
            self.filter_key(key.code);
            return None;
        }
        if let Some(overlay) = self.overlay
            && self.overlay_key(overlay, key.code)
        {
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Effect::Quit),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.cover(Some(Overlay::Help)),
            KeyCode::Enter if self.shown.table.is_some() => {
                let row = self.place().row;
                self.choose(row);
                self.cover(Some(Overlay::Detail));
            }
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => self.filtering = true,
            KeyCode::Char('p' | ' ') => self.pause(),
            KeyCode::Char('w') => self.span = (self.span + 1) % SPANS.len(),
            KeyCode::Char('d') => self.next_device(),
            KeyCode::Char('+' | '=') => return self.pace(true),
            KeyCode::Char('-') => return self.pace(false),
            KeyCode::Char('s') => return Some(Effect::Save),
            KeyCode::Char('f') => return Some(Effect::Flamegraph),
            KeyCode::Char('>' | '.') => self.sort_by(1),
            KeyCode::Char('<' | ',') => self.sort_by(-1),
            KeyCode::Char('r') => self.reverse(),
            KeyCode::Left => self.hold(1),
            KeyCode::Char('[') => self.hold(LEAP),
            KeyCode::Right => self.step(1),
            KeyCode::Char(']') => self.step(LEAP),
            KeyCode::Home => self.hold(u64::MAX),
            KeyCode::End => self.end(),
            KeyCode::Tab => self.show_tab((self.tab + 1) % TABS.len()),
            KeyCode::BackTab => self.show_tab((self.tab + TABS.len() - 1) % TABS.len()),
            KeyCode::Char(key) if TABS.iter().any(|tab| tab.key == key) => {
                let chosen = TABS.iter().position(|tab| tab.key == key);
                self.show_tab(chosen.unwrap_or(self.tab));
            }
            code => self.scroll(code),
        }
        None
    }

    fn filter_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.filtering = false,
            KeyCode::Esc => {
                self.filtering = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if !c.is_control() && self.filter.chars().count() < FILTER => {
                self.filter.push(c);
            }
            _ => {}
        }
    }

    /// Whether the key was for the overlay.
    fn overlay_key(&mut self, overlay: Overlay, code: KeyCode) -> bool {
        match code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => self.cover(None),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) if overlay == Overlay::Help => {
                self.cover(None);
            }
            _ => return self.scroll_lines(code),
        }
        true
    }

    fn cover(&mut self, overlay: Option<Overlay>) {
        self.overlay = overlay;
        self.overlay_top = 0;
    }

    fn show_tab(&mut self, tab: usize) {
        self.tab = tab;
        self.cover(None);
    }

    /// Rows that fit on the screen, more or less: a page.
    fn page(&self) -> usize {
        usize::from(self.size.1).saturating_sub(12).max(1)
    }

    fn scroll(&mut self, code: KeyCode) {
        if self.tab().content == Content::Overview {
            self.scroll_lines(code);
            return;
        }
        let row = self.place().row;
        let row = match code {
            KeyCode::Up | KeyCode::Char('k') => row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => row + 1,
            KeyCode::PageUp => row.saturating_sub(self.page()),
            KeyCode::PageDown => row.saturating_add(self.page()),
            KeyCode::Char('g') => 0,
            KeyCode::Char('G') => usize::MAX,
            _ => return,
        };
        self.choose(row);
    }

    /// Whether the key moves lines.
    fn scroll_lines(&mut self, code: KeyCode) -> bool {
        let page = self.page();
        let last = self.shown.lines.len().saturating_sub(page);
        let covered = self.overlay.is_some();
        let top = match covered {
            true => &mut self.overlay_top,
            false => &mut self.place_mut().top,
        };
        *top = match code {
            KeyCode::Up | KeyCode::Char('k') => top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (*top + 1).min(last),
            KeyCode::PageUp => top.saturating_sub(page),
            KeyCode::PageDown => top.saturating_add(page).min(last),
            KeyCode::Char('g') => 0,
            KeyCode::Char('G') => last,
            _ => return false,
        };
        true
    }

    fn pause(&mut self) {
        match (self.paused, &self.source) {
            (false, _) => self.set_paused(true),
            (true, Source::Live(_)) => self.end(),
            (true, Source::Replay { .. }) => self.set_paused(false),
        }
    }

    fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
        if let Source::Live(_) = self.source {
            self.history.keep(if paused { HELD } else { KEPT });
        }
    }

    /// Goes back so many ticks and stays there.
    fn hold(&mut self, ticks: u64) {
        let Some((first, _)) = self.history.bounds() else {
            return;
        };
        self.set_paused(true);
        self.target = None;
        let wanted = self.moment.saturating_sub(ticks);
        if wanted >= first {
            self.moment = wanted;
        } else if self.source.is_replay() {
            // What is no longer kept is summed up, and only the recording can tell it apart.
            let header = self.history.total().header().clone();
            self.history = History::new(header, REPLAYED);
            self.moment = 0;
            self.target = Some(wanted);
        } else {
            self.moment = first;
            self.say("nothing older is kept");
        }
    }

    /// Goes on by so many ticks, as far as there are any.
    fn step(&mut self, ticks: u64) {
        let kept = self.history.bounds().map(|(_, last)| last);
        let end = match self.source {
            Source::Live(_) => kept.unwrap_or(0),
            Source::Replay { last, .. } => last,
        };
        let wanted = self.moment.saturating_add(ticks).min(end);
        match kept {
            Some(kept) if wanted <= kept => self.moment = wanted,
            _ => self.target = Some(wanted),
        }
    }

    fn end(&mut self) {
        if let Source::Live(_) = self.source {
            self.set_paused(false);
        }
        self.step(u64::MAX);
    }

    fn next_device(&mut self) {
        let all: Vec<_> = self.history.filesystems().map(|(dev, _)| dev).collect();
        let next = match self.dev {
            None => 0,
            Some(dev) => all
                .iter()
                .position(|one| *one == dev)
                .map_or(0, |at| at + 1),
        };
        self.dev = all.get(next).copied();
    }

    /// Ticks in a longer distance; a replay faster. Or the other way round.
    fn pace(&mut self, more: bool) -> Option<Effect> {
        match &mut self.source {
            Source::Live(interval) => {
                *interval = beside(&INTERVALS, *interval, more);
                Some(Effect::Interval(*interval))
            }
            Source::Replay { speed, .. } => {
                *speed = beside(&SPEEDS, *speed, more);
                None
            }
        }
    }

    /// Sorts by the next column, or the one before.
    fn sort_by(&mut self, step: isize) {
        let Some(table) = &self.shown.table else {
            return;
        };
        let columns = table.columns.len();
        let now = self.sort().and_then(|sort| sort.place(table));
        let next = match now {
            None if step > 0 => 0,
            None => columns.saturating_sub(1),
            Some(now) => match now.checked_add_signed(step) {
                Some(next) if next < columns => next,
                _ => return,
            },
        };
        let Some(column) = table.columns.get(next) else {
            return;
        };
        let sort = super::sort::Sort {
            column: column.name.clone().into(),
            // Of numbers the largest are looked for, of words the first.
            descending: column.align == cil_trace_core::report::table::Align::Right,
        };
        self.place_mut().sort = Some(sort);
    }

    fn reverse(&mut self) {
        let Some(mut sort) = self.sort().cloned() else {
            return;
        };
        sort.descending = !sort.descending;
        self.place_mut().sort = Some(sort);
    }

    /// For how long a replay waits before its next tick.
    #[must_use]
    pub fn beat_after(&self) -> Duration {
        let speed = match self.source {
            Source::Live(interval) => return interval,
            Source::Replay { speed, .. } => speed,
        };
        let next = self.moment.saturating_add(1);
        let tick = self
            .history
            .tick(next)
            .or_else(|| self.history.tick(self.moment));
        let ns = tick.map_or(S, |tick| tick.end_ns.saturating_sub(tick.start_ns));
        // A recording may have lain in a machine that slept.
        Duration::from_nanos(ns.min(10 * S)).div_f64(speed)
    }
}

/// The value next to `now` in a list that rises.
fn beside<T: Copy + PartialOrd>(list: &[T], now: T, more: bool) -> T {
    let found = match more {
        true => list.iter().find(|value| **value > now),
        false => list.iter().rev().find(|value| **value < now),
    };
    found.copied().unwrap_or(now)
}
