//! The two lines below every tab: the tabs with their keys; what there is to say or to type.

use super::{Areas, cut};
use crate::top::state::State;
use crate::top::tabs::TABS;
use ratatui::Frame;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

const HINT: &str = "q quit  ? help  Enter more  / filter  <> sort  w stretch  d device  p hold";

/// Draws them.
pub fn draw(state: &State, frame: &mut Frame<'_>, areas: &Areas) {
    frame.render_widget(Paragraph::new(tabs(state)), areas.tabs);
    frame.render_widget(Paragraph::new(hint(state, areas.hint.width)), areas.hint);
}

fn tabs<'a>(state: &State) -> Line<'a> {
    let mut spans = Vec::new();
    for (index, tab) in TABS.iter().enumerate() {
        let chosen = index == state.tab;
        // Without colour or reversed video brackets tell.
        let text = match chosen {
            true => format!("[{} {}]", tab.key, tab.name),
            false => format!(" {} {}", tab.key, tab.name),
        };
        let style = match chosen {
            true => state.theme.chosen(),
            false => state.theme.strong(),
        };
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

fn hint<'a>(state: &State, width: u16) -> Line<'a> {
    let cut = |text: &str| cut(text, usize::from(width), state.theme.ellipsis());
    if state.filtering {
        let text = format!("/{}_  (Enter keeps it, Esc takes it away)", state.filter);
        return Line::styled(cut(&text), state.theme.strong());
    }
    match &state.message {
        Some(message) if message.failed => Line::styled(
            cut(&format!("failed: {}", message.text)),
            state.theme.alarm(),
        ),
        Some(message) => Line::styled(cut(&message.text), state.theme.strong()),
        None => Line::raw(cut(HINT)),
    }
}
