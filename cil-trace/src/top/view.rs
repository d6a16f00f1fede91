//! The screen: where everything stands. Draws what the state says and decides nothing.

mod footer;
mod header;
mod lines;
pub mod table;

use super::state::{Overlay, State};
use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// The smallest screen on which everything fits.
pub const SMALLEST: (u16, u16) = (80, 24);

/// Where the parts of a screen are.
#[derive(Clone, Copy, Debug)]
pub struct Areas {
    /// What is shown, and when.
    pub title: Rect,
    /// The rates with their curves.
    pub rates: Rect,
    /// Quantiles and health.
    pub facts: Rect,
    /// The tab, or what lies over it.
    pub body: Rect,
    /// The tabs.
    pub tabs: Rect,
    /// Keys, or what there is to say.
    pub hint: Rect,
}

impl Areas {
    /// Of a screen with so many columns and rows; an alarm takes a row of its own.
    #[must_use]
    pub fn of(area: Rect, alarm: bool) -> Self {
        let mut top = area.y;
        let mut rows = |height: u16| {
            let height = height.min(area.bottom().saturating_sub(top));
            let rows = Rect {
                y: top,
                height,
                ..area
            };
            top += height;
            rows
        };
        let title = rows(1);
        let rates = rows(header::rows(area.width));
        let facts = rows(if alarm { 3 } else { 2 });
        let above = title.height + rates.height + facts.height;
        let body = rows(area.height.saturating_sub(above + 2));
        Self {
            title,
            rates,
            facts,
            body,
            tabs: rows(1),
            hint: rows(1),
        }
    }
}

/// Draws the screen.
pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(frame, area);
        return;
    }
    let areas = Areas::of(area, !state.shown.stuck.is_empty());
    header::draw(state, frame, &areas);
    match state.overlay {
        Some(Overlay::Help) => lines::overlay(state, frame, areas.body, "Keys"),
        Some(Overlay::Detail) => {
            let title = state.shown.table.as_ref().map_or("", |table| &table.title);
            lines::overlay(state, frame, areas.body, title);
        }
        None => match &state.shown.table {
            Some(table) => table::draw(state, table, frame, areas.body),
            None => lines::text(state, frame, areas.body),
        },
    }
    footer::draw(state, frame, &areas);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let (columns, rows) = SMALLEST;
    let text = [
        format!("{} x {}: too small", area.width, area.height),
        format!("at least {columns} x {rows}, please"),
        "q quits".to_owned(),
    ];
    let lines: Vec<_> = text.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).alignment(Alignment::Center), area);
}

/// At most `width` characters of a text; where some are cut off, `ellipsis` says so.
fn cut(text: &str, width: usize, ellipsis: char) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain((width > 0).then_some(ellipsis)).collect()
}
