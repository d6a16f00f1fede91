//! The report as one page that needs no network and no JavaScript.
//!
//! Every text that comes from the traced machine is escaped; colours follow the reader's light or
//! dark preference.

use crate::report::histogram::bars;
use crate::report::schema::Report;
use crate::report::sections::SECTIONS;
use crate::report::table::{Align, Cell, Chart, Table};
use crate::report::units;
use std::fmt::Write;

const STYLE: &str = include_str!("report.css");

/// Size of a histogram.
const BAR_WIDTH: u128 = 8;
const CHART_HEIGHT: u128 = 60;

/// The page. `flamegraph` is an SVG document that this crate made.
#[must_use]
pub fn page(report: &Report, flamegraph: Option<&str>) -> String {
    let command = report.command.join(" ");
    let command = if command.is_empty() {
        "system-wide"
    } else {
        &command
    };
    let mut body = String::new();
    let mut contents = String::new();
    // The picture comes first: its own script takes the page's first SVG for itself.
    if let Some(svg) = flamegraph.and_then(|svg| Some(&svg[svg.find("<svg")?..])) {
        contents.push_str("<a href=\"#flamegraph\">flamegraph</a>\n");
        let _ = write!(
            body,
            "<section id=\"flamegraph\">\n<h2>Flamegraph</h2>\n<div class=\"wide paper\">{svg}</div>\n\
             </section>\n"
        );
    }
    for section in SECTIONS {
        let table = section.table(report);
        if table.rows.is_empty() && table.notes.is_empty() {
            continue;
        }
        let name = escape(&table.name);
        let _ = writeln!(
            contents,
            "<a href=\"#{name}\">{}</a>",
            name.replace('_', " ")
        );
        let part = format!(
            "<section id=\"{name}\">\n<h2>{}</h2>\n{}</section>\n",
            escape(&table.title),
            content(&table)
        );
        if table.prose.is_some() {
            body.insert_str(0, &part);
        } else {
            body.push_str(&part);
        }
    }
    let title = escape(&format!("cil-trace: {command}"));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n<p>{} on Linux {}, {}, {}</p>\n</header>\n\
         <nav>\n{contents}</nav>\n{body}</body>\n</html>\n",
        escape(&report.tool),
        escape(&report.kernel),
        escape(&report.started_at),
        units::duration(report.duration_ns),
    )
}

fn content(table: &Table) -> String {
    let mut html = String::new();
    if let Some(prose) = &table.prose {
        return format!("<pre>{}</pre>\n", escape(prose));
    }
    if table.rows.is_empty() {
        html.push_str("<p class=\"note\">nothing was seen</p>\n");
    } else {
        html.push_str("<div class=\"wide\"><table>\n<thead><tr>");
        for column in &table.columns {
            let _ = write!(
                html,
                "<th{}>{}</th>",
                class(column.align),
                escape(&column.heading())
            );
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &table.rows {
            html.push_str("<tr>");
            for (cell, column) in row.iter().zip(&table.columns) {
                let _ = write!(
                    html,
                    "<td{}>{}</td>",
                    class(column.align),
                    escape(&Cell::human(cell))
                );
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table></div>\n");
    }
    for note in &table.notes {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(note));
    }
    if !table.charts.is_empty() {
        html.push_str("<div class=\"charts\">\n");
        html.extend(table.charts.iter().map(chart));
        html.push_str("</div>\n");
    }
    html
}

const fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"number\"",
    }
}

fn chart(chart: &Chart) -> String {
    let bars = bars(&chart.hist, chart.unit);
    let highest = u128::from(bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1));
    let name = |value| chart.unit.cell(value).human();
    let mut rects = String::new();
    for (x, bar) in (0_u128..).step_by(BAR_WIDTH as usize).zip(&bars) {
        // The smallest of counts must be seen.
        let height = (u128::from(bar.count) * CHART_HEIGHT).div_ceil(highest);
        let _ = write!(
            rects,
            "<rect x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{height}\"><title>{} to {}: {}</title>\
             </rect>",
            CHART_HEIGHT - height,
            BAR_WIDTH - 1,
            name(bar.lo),
            name(bar.hi),
            units::count(bar.count.into())
        );
    }
    let width = BAR_WIDTH * bars.len() as u128;
    let label = escape(&format!("{}: {}", chart.label, chart.quantity));
    let edges = bars
        .first()
        .zip(bars.last())
        .map(|(first, last)| format!("{} to {}", name(first.lo), name(last.hi)));
    format!(
        "<figure><svg role=\"img\" aria-label=\"{label}\" width=\"{width}\" \
         height=\"{CHART_HEIGHT}\" viewBox=\"0 0 {width} {CHART_HEIGHT}\">{rects}</svg>\
         <figcaption>{label}<br>{}; {} values</figcaption></figure>\n",
        edges.unwrap_or_default(),
        units::count(chart.hist.count.into())
    )
}

/// Text as HTML, in elements and in quoted attributes; control characters are replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
