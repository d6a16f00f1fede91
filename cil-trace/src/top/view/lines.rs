//! Text that scrolls: the overview, the help, all of a row.

use super::cut;
use crate::top::state::State;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

/// The tab's text. The first line of each paragraph is its title.
pub fn text(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let top = top(state.place().top, state.shown.lines.len(), area.height);
    let mut begins = true;
    let (seen, more) = page(state.shown.lines.len(), top, area.height);
    let lines = state
        .shown
        .lines
        .iter()
        .map(|line| {
            let is_title = begins && !line.starts_with(' ');
            begins = line.is_empty();
            let style = if is_title {
                state.theme.strong()
            } else {
                ratatui::style::Style::new()
            };
            Line::styled(
                cut(line, usize::from(area.width), state.theme.ellipsis()),
                style,
            )
        })
        .skip(top)
        .take(seen);
    let lines: Vec<_> = lines.chain(further(more, state)).collect();
    frame.render_widget(Paragraph::new(Text::from(lines)), area);
}

/// How many of so many lines are seen from `top` on, and how many are below, for which the last row
/// is needed then.
fn page(lines: usize, top: usize, height: u16) -> (usize, usize) {
    let height = usize::from(height);
    let left = lines.saturating_sub(top);
    if left <= height {
        return (left, 0);
    }
    let seen = height.saturating_sub(1);
    (seen, left - seen)
}

fn further<'a>(more: usize, state: &State) -> Option<Line<'a>> {
    let text = format!("  {more} more lines below: j, PgDn, G");
    (more > 0).then(|| Line::styled(text, state.theme.strong()))
}

/// The overlay, in place of the tab.
pub fn overlay(state: &State, frame: &mut Frame<'_>, area: Rect, title: &str) {
    frame.render_widget(Clear, area);
    let all = &state.shown.lines;
    let block = Block::new()
        .borders(Borders::TOP)
        .border_set(border(state))
        .title(format!(" {title} (Esc goes back) "))
        .title_style(state.theme.strong());
    let inner = block.inner(area);
    let top = top(state.overlay_top, all.len(), inner.height);
    let (seen, more) = page(all.len(), top, inner.height);
    let lines = all
        .iter()
        .skip(top)
        .take(seen)
        .map(|line| Line::raw(cut(line, usize::from(inner.width), state.theme.ellipsis())));
    let lines: Vec<_> = lines.chain(further(more, state)).collect();
    frame.render_widget(block, area);
    frame.render_widget(Paragraph::new(Text::from(lines)), inner);
}

fn border(state: &State) -> ratatui::symbols::border::Set<'static> {
    match state.theme.unicode {
        true => ratatui::symbols::border::PLAIN,
        false => ratatui::symbols::border::Set {
            horizontal_top: "-",
            ..ratatui::symbols::border::PLAIN
        },
    }
}

/// The first line that is seen, so that no more than the last page is.
fn top(wanted: usize, lines: usize, height: u16) -> usize {
    wanted.min(lines.saturating_sub(usize::from(height)))
}
