//! A table that is wider than the screen: keys stay, the columns that fit follow.

use super::cut;
use crate::top::state::State;
use crate::top::theme::Theme;
use cil_trace_core::report::table::{Align, Cell, Column, Table};
use cil_trace_core::report::units;
use cil_trace_core::report::wrap::wrap;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Space between columns.
const GAP: usize = 2;

/// Widest column of words, unless it is the last.
const WORDS: usize = 36;

/// From so many characters on, a column of words that does not fit is worth cutting.
const WORTH: usize = 12;

/// A column that is seen.
struct Seen<'a> {
    column: &'a Column,
    index: usize,
    width: usize,
    heading: Vec<String>,
}

/// Rows that fit below the title and the headings, with room for the notes.
#[must_use]
pub fn rows_that_fit(table: &Table, area: Rect) -> usize {
    let notes = notes(table, area).len();
    let headings = table.columns.iter().map(|column| heading(column).len());
    let above = 1 + headings.max().unwrap_or(0);
    usize::from(area.height)
        .saturating_sub(above + notes)
        .max(1)
}

/// Draws it.
pub fn draw(state: &State, table: &Table, frame: &mut Frame<'_>, area: Rect) {
    let buffer = frame.buffer_mut();
    let mut page = Page {
        buffer,
        area,
        next: 0,
    };
    page.line(&title(state, table), state.theme.strong());
    let notes = notes(table, area);
    let unmeasured = || notes.iter().any(|note| note.contains("not measured:"));
    if table.rows.is_empty() && state.shown.hidden == 0 && unmeasured() {
        // The notes say why there is nothing.
    } else if table.rows.is_empty() {
        let text = match state.shown.hidden {
            0 => "  nothing was seen".to_owned(),
            hidden => format!("  the filter hides {hidden} rows; Esc takes it away"),
        };
        page.line(&text, Style::new());
    } else {
        rows(state, table, &mut page);
    }
    page.next = page
        .next
        .max(usize::from(area.height).saturating_sub(notes.len()));
    for note in notes {
        page.line(&note, Style::new());
    }
}

fn rows(state: &State, table: &Table, page: &mut Page<'_>) {
    let seen = seen(state, table, usize::from(page.area.width));
    let height = seen
        .iter()
        .map(|seen| seen.heading.len())
        .max()
        .unwrap_or(0);
    for line in 0..height {
        let mut text = String::new();
        for seen in &seen {
            // They stand on the line.
            let above = height - seen.heading.len();
            let word = line
                .checked_sub(above)
                .and_then(|line| seen.heading.get(line));
            pad(&mut text, word.map_or("", |word| word), seen, state.theme);
        }
        page.line(&text, state.theme.strong());
    }
    let place = state.place();
    let fit = rows_that_fit(table, page.area);
    let visible = table.rows.iter().enumerate().skip(place.top).take(fit);
    for (index, row) in visible {
        let chosen = index == place.row;
        let mut text = String::new();
        let mut alarms = Vec::new();
        for seen in &seen {
            let Some(cell) = row.get(seen.index) else {
                continue;
            };
            let before = text.chars().count();
            let alarm = seen.column.alarms(cell);
            pad(&mut text, &shown(seen.column, cell), seen, state.theme);
            if alarm {
                alarms.push(before..text.chars().count());
            }
        }
        let style = if chosen {
            state.theme.chosen()
        } else {
            Style::new()
        };
        let y = page.line(
            &format!("{text:<width$}", width = usize::from(page.area.width)),
            style,
        );
        for alarm in alarms {
            page.style(y, alarm, state.theme.alarm());
        }
    }
}

/// A cell's text; what calls for attention is marked.
fn shown(column: &Column, cell: &Cell) -> String {
    match column.alarms(cell) {
        true => format!("{} {}", cell.human(), Theme::MARK),
        false => cell.human(),
    }
}

/// The title, and what is done to the rows.
fn title(state: &State, table: &Table) -> String {
    let mut text = table.title.clone();
    if let Some(sort) = state.sort()
        && let Some(place) = sort.place(table)
    {
        let name = table.columns[place].heading();
        text += &format!(", by {name} {}", state.theme.arrow(sort.descending));
    }
    if !state.filter.is_empty() {
        text += &format!(", with \"{}\"", units::printable(&state.filter));
    }
    let rows = table.rows.len();
    if rows > 0 {
        text += &format!("  ({} of {rows})", state.place().row + 1);
    }
    text
}

/// The notes, wrapped, and no more of them than a third of the screen.
fn notes(table: &Table, area: Rect) -> Vec<String> {
    let width = usize::from(area.width);
    let lines = table
        .notes
        .iter()
        .flat_map(|note| wrap(&format!("  {}", units::printable(note)), width, 4));
    lines.take(usize::from(area.height / 3)).collect()
}

/// The columns that are seen: those that identify a row, then as many as fit, so that the one that
/// rows are sorted by is among them.
fn seen<'a>(state: &State, table: &'a Table, width: usize) -> Vec<Seen<'a>> {
    let used: Vec<Seen<'a>> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(index, _)| {
            let blank = |row: &Vec<Cell>| row.get(*index) == Some(&Cell::Blank);
            !table.rows.iter().all(blank)
        })
        .map(|(index, column)| measured(table, index, column))
        .collect();
    let keys = table.keys.max(1);
    let (mut fixed, others): (Vec<_>, Vec<_>) =
        used.into_iter().partition(|seen| seen.index < keys);
    let room = |columns: &[Seen<'_>]| {
        let taken: usize = columns.iter().map(|seen| seen.width + GAP).sum();
        (width + GAP).saturating_sub(taken)
    };
    let sorted = state.sort().and_then(|sort| sort.place(table));
    let wanted = others.iter().position(|seen| Some(seen.index) == sorted);
    let free = room(&fixed);
    let fits = |first: usize, last: usize| {
        let taken: usize = others[first..=last]
            .iter()
            .map(|seen| seen.width + GAP)
            .sum();
        taken <= free
    };
    let first = wanted.map_or(0, |wanted| {
        (0..wanted)
            .find(|first| fits(*first, wanted))
            .unwrap_or(wanted)
    });
    for mut seen in others.into_iter().skip(first) {
        let free = room(&fixed);
        if seen.width + GAP > free {
            let words = seen.column.align == Align::Left && free >= WORTH + GAP;
            if !words {
                break;
            }
            seen.width = free - GAP;
        }
        fixed.push(seen);
    }
    // Words that were cut may have what is left.
    if let Some(last) = fixed.last()
        && last.column.align == Align::Left
    {
        let free = room(&fixed);
        if let Some(last) = fixed.last_mut() {
            last.width += free;
        }
    }
    fixed
}

fn measured<'a>(table: &Table, index: usize, column: &'a Column) -> Seen<'a> {
    let heading = heading(column);
    let cells = table.rows.iter().filter_map(|row| row.get(index));
    let widths = cells
        .map(|cell| shown(column, cell).chars().count())
        .chain(heading.iter().map(|word| word.chars().count()));
    let widest = widths.max().unwrap_or(0);
    Seen {
        width: match column.align {
            Align::Left => widest.min(WORDS),
            Align::Right => widest,
        },
        column,
        index,
        heading,
    }
}

/// Of numbers, which are narrower than their heading, one word on each line.
fn heading(column: &Column) -> Vec<String> {
    let heading = column.heading();
    match column.align {
        Align::Left => vec![heading],
        Align::Right => heading.split(' ').map(str::to_owned).collect(),
    }
}

/// Appends a cell in the width of its column.
fn pad(text: &mut String, cell: &str, seen: &Seen<'_>, theme: Theme) {
    if !text.is_empty() {
        text.push_str(&" ".repeat(GAP));
    }
    let width = seen.width;
    let cell = cut(cell, width, theme.ellipsis());
    *text += &match seen.column.align {
        Align::Left => format!("{cell:<width$}"),
        Align::Right => format!("{cell:>width$}"),
    };
}

/// Lines from the top of an area on.
struct Page<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    next: usize,
}

impl Page<'_> {
    /// Writes a line and returns its number; what is below the area is not there.
    fn line(&mut self, text: &str, style: Style) -> usize {
        let line = self.next;
        self.next += 1;
        if let Some(y) = self.y(line) {
            let Rect { x, width, .. } = self.area;
            self.buffer
                .set_stringn(x, y, text, usize::from(width), style);
        }
        line
    }

    /// Gives characters of a line another style, over the one that they have.
    fn style(&mut self, line: usize, characters: std::ops::Range<usize>, style: Style) {
        let Some(y) = self.y(line) else {
            return;
        };
        for x in characters {
            let x = u16::try_from(x)
                .ok()
                .and_then(|x| self.area.x.checked_add(x));
            if let Some(x) = x.filter(|x| *x < self.area.right()) {
                self.buffer[(x, y)].set_style(style);
            }
        }
    }

    fn y(&self, line: usize) -> Option<u16> {
        let line = u16::try_from(line)
            .ok()
            .filter(|line| *line < self.area.height)?;
        Some(self.area.y + line)
    }
}
