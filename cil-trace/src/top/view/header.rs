//! The lines that every tab has above it: what is shown and when, rates with curves, health.

use super::{Areas, cut};
use crate::top::state::{S, SPANS, Source, State};
use crate::top::text;
use crate::top::theme::Theme;
use cil_trace_core::history::Rate;
use cil_trace_core::report::units;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// How far back curves go, nanoseconds.
const CURVE_NS: u64 = 120 * S;

/// Room of one rate with its curve, and of what is between two.
const CELL: u16 = 40;

/// Space between two of them.
const BETWEEN: u16 = 2;

/// Width of a rate's name and its number.
const NAME: usize = 18;
const NUMBER: usize = 9;

/// Rows that the rates take on a screen of that width.
#[must_use]
pub fn rows(width: u16) -> u16 {
    count().div_ceil(columns(width))
}

fn columns(width: u16) -> u16 {
    ((width + BETWEEN) / CELL).clamp(1, count())
}

fn count() -> u16 {
    u16::try_from(Rate::ALL.len()).unwrap_or(1)
}

/// Draws them.
pub fn draw(state: &State, frame: &mut Frame<'_>, areas: &Areas) {
    frame.render_widget(title(state, areas.title.width), areas.title);
    rates(state, frame, areas.rates);
    facts(state, frame, areas.facts);
}

/// On the left what is shown, on the right the moment.
fn title<'a>(state: &State, width: u16) -> Paragraph<'a> {
    let width = usize::from(width);
    let right = format!(" {}", clock(state));
    let model = state.history.total();
    // Devices may be many, so they come last.
    let name = match &state.source {
        Source::Live(_) => "cil-trace",
        Source::Replay { file, .. } => file,
    };
    let left = format!(
        "{}  Linux {}  {}",
        units::printable(name),
        model.header().machine.kernel,
        text::scope(state.view()),
    );
    let room = width.saturating_sub(right.chars().count());
    let left = cut(&left, room, state.theme.ellipsis());
    Paragraph::new(Line::from(vec![
        Span::styled(format!("{left:<room$}"), state.theme.strong()),
        Span::styled(right, state.theme.strong()),
    ]))
}

/// The moment, and whether time goes on.
fn clock(state: &State) -> String {
    let history = &state.history;
    let end = |index: u64| history.tick(index).map_or(0, |tick| tick.end_ns);
    let header = history.total().header();
    let at = text::wall_clock(header, end(state.moment), &state.zone, "%H:%M:%S");
    match &state.source {
        Source::Live(interval) if state.paused => {
            let last = history.bounds().map_or(state.moment, |(_, last)| last);
            let behind = text::behind(end(last), end(state.moment));
            format!(
                "PAUSED {at} {behind} every {}",
                humantime::format_duration(*interval)
            )
        }
        Source::Live(interval) => {
            format!("live {at} every {}", humantime::format_duration(*interval))
        }
        Source::Replay { last, speed, .. } => {
            let word = match (state.target, state.paused) {
                (Some(_), _) => "reading",
                (None, true) => "PAUSED",
                (None, false) => "replay",
            };
            format!("{word} {at} tick {}/{last} x{speed}", state.moment)
        }
    }
}

/// Each rate in a cell of its own: name, number, curve.
fn rates(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let columns = columns(area.width);
    let width = (area.width + BETWEEN) / columns;
    for (place, rate) in (0..).zip(&Rate::ALL) {
        let cell = Rect {
            x: area.x + place % columns * width,
            y: area.y + place / columns,
            width: width - BETWEEN,
            height: 1,
        };
        frame.render_widget(Paragraph::new(one_rate(state, rate, cell.width)), cell);
    }
}

fn one_rate<'a>(state: &State, rate: &Rate, width: u16) -> Line<'a> {
    let view = state.view();
    let per_s = rate.per_s(view.history, view.dev, view.span, view.index);
    let number = per_s.map_or("-".to_owned(), units::rate);
    let room = usize::from(width).saturating_sub(NAME + NUMBER + 1);
    Line::from(vec![
        Span::raw(format!("{:<NAME$}", rate.name)),
        Span::styled(format!("{number:>NUMBER$} "), state.theme.strong()),
        Span::styled(curve(state, rate, room), state.theme.curve()),
    ])
}

/// The rate of the last two minutes, the latest on the right.
fn curve(state: &State, rate: &Rate, room: usize) -> String {
    let (history, moment) = (&state.history, state.moment);
    let end = |index: u64| history.tick(index).map(|tick| tick.end_ns);
    let values: Vec<f64> = rate.each(history, state.dev, moment).collect();
    let Some((now, (first, _))) = end(moment).zip(history.bounds()) else {
        return String::new();
    };
    let recent = (first..=moment)
        .filter(|index| end(*index).is_some_and(|end| now.saturating_sub(end) < CURVE_NS))
        .count();
    let values = &values[values.len().saturating_sub(recent)..];
    let text = curve_of(values, room, state.theme);
    format!("{text:>room$}")
}

/// One character for each value, or for as many as it takes to fit, of which the largest counts.
fn curve_of(values: &[f64], room: usize, theme: Theme) -> String {
    if room == 0 || values.is_empty() {
        return String::new();
    }
    let each = values.len().div_ceil(room);
    let most = values.iter().copied().fold(0.0, f64::max);
    let levels = theme.levels();
    let level = |value: f64| {
        let steps = levels.len() - 1;
        // Anything but nothing is seen.
        let level = if most > 0.0 {
            (value / most * steps as f64).ceil() as usize
        } else {
            0
        };
        levels[level.min(steps)]
    };
    // From the right, so that the latest stands alone no longer than it must.
    let mut drawn: Vec<char> = values
        .rchunks(each)
        .map(|values| level(values.iter().copied().fold(0.0, f64::max)))
        .collect();
    drawn.reverse();
    drawn.into_iter().collect()
}

/// Quantiles and the stretch; loss, cost, and what is stuck.
fn facts(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let stretch = &state.shown.stretch;
    let losses = state.history.losses(state.moment);
    let lost = losses.lost > 0;
    let loss_style = if lost {
        state.theme.alarm()
    } else {
        state.theme.strong()
    };
    let quantiles = Line::from(vec![
        Span::raw(text::quantiles(stretch.quantiles)),
        Span::raw("; shown: "),
        Span::styled(shown(state), state.theme.strong()),
    ]);
    let health = Line::from(vec![
        Span::styled(text::loss(losses), loss_style),
        Span::raw(format!("; {}", text::cost(stretch.cost))),
    ]);
    let stuck = state.shown.stuck.iter().max_by_key(|(_, age)| *age);
    let alarm = stuck.map(|(device, age)| {
        let age = units::duration(*age);
        let text = format!(
            "{} a flush on {device} has been under way for {age}",
            Theme::MARK
        );
        Line::styled(text, state.theme.alarm())
    });
    let lines: Vec<_> = alarm.into_iter().chain([quantiles, health]).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// The stretch, and the filesystem if it is one of several.
fn shown(state: &State) -> String {
    let span = SPANS[state.span].1;
    match state.device() {
        Some(device) => format!("{span} of {device}"),
        None => span.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: Theme = Theme {
        colour: false,
        unicode: true,
    };

    #[test]
    fn a_curve_shows_the_highest_and_loses_no_peak() {
        assert_eq!(curve_of(&[0.0, 1.0, 4.0, 8.0], 10, UNICODE), " ▁▄█");
        let mut values = vec![0.0; 100];
        values[37] = 5.0;
        let curve = curve_of(&values, 10, UNICODE);
        assert_eq!(curve.chars().filter(|c| *c == '█').count(), 1, "{curve}");
        assert_eq!(curve.chars().count(), 10);
        assert_eq!(curve_of(&[], 10, UNICODE), "");
        assert_eq!(curve_of(&[0.0], 10, UNICODE), " ");
    }
}
