//! A comparison for programs: JSON, and one flat table for CSV and Markdown.

use super::change::{Scale, Size, Test};
use super::names::{Better, better};
use super::{Cell, Change, Circumstances, Comparison, Of, Row};
use crate::histogram::Histogram;
use crate::report::schema::Hist;
use crate::report::table::{self, Builder, Table, Unit};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Version of the JSON's layout; fields may be added, never renamed.
const SCHEMA: u32 = 1;

impl Comparison {
    /// Everything, on one line.
    #[must_use]
    pub fn json(&self) -> String {
        let changed: Vec<_> = self.shown().map(|row| self.row(row)).collect();
        let explanations: Vec<_> = self
            .explanations
            .iter()
            .map(|e| json!({"side": e.side, "case": e.case, "differences": e.lines}))
            .collect();
        let document = json!({
            "schema": SCHEMA,
            "sides": self.sides.iter().map(side).collect::<Vec<_>>(),
            "cases": self.cases,
            "primary": self.options.primary,
            "tests": self.tests,
            "rows": changed,
            "histograms": self.histograms(),
            "differences": self.differences,
            "warnings": self.warnings,
            "explanations": explanations,
        });
        format!("{document}\n")
    }

    fn case(&self, of: Of) -> Option<&str> {
        match of {
            Of::Cases => None,
            Of::Case(case) => self.cases.get(case).map(String::as_str),
        }
    }

    fn row(&self, row: &Row) -> Value {
        let changes = row.changes.iter().zip(self.sides.iter().skip(1));
        json!({
            "case": self.case(row.of),
            "geo_mean": row.of == Of::Cases,
            "metric": row.metric,
            "failure": row.is_failure(),
            "better": match better(&row.metric, &self.options.lower_is_better) {
                Better::Higher => "higher",
                Better::Lower => "lower",
            },
            "sides": row.cells.iter().map(cell).collect::<Vec<_>>(),
            "changes": changes.map(|(change, side)| self::change(change, side)).collect::<Vec<_>>(),
        })
    }

    /// Those of all runs of a side in one, by test case and name.
    fn histograms(&self) -> Vec<Value> {
        type Named<'a> = BTreeMap<&'a (String, String), Vec<Option<&'a Histogram>>>;
        let mut named: Named<'_> = BTreeMap::new();
        for (index, side) in self.sides.iter().enumerate() {
            for (name, histogram) in &side.histograms {
                let sides = named
                    .entry(name)
                    .or_insert_with(|| vec![None; self.sides.len()]);
                sides[index] = Some(histogram);
            }
        }
        let chosen = |name: &str| {
            let metrics = &self.options.metrics;
            metrics.is_empty() || self.rows.iter().any(|row| row.metric.starts_with(name))
        };
        let named = named.into_iter().filter(|((_, name), _)| chosen(name));
        named
            .map(|((case, name), sides)| {
                let sides: Vec<_> = sides.iter().map(|side| side.map(Hist::from)).collect();
                json!({"case": case, "metric": name, "sides": sides})
            })
            .collect()
    }

    /// A row per metric, test case and side.
    #[must_use]
    pub fn table(&self) -> Table {
        struct Line<'a> {
            case: &'a str,
            metric: &'a str,
            side: &'a str,
            base: &'a Cell,
            cell: &'a Cell,
            change: &'a Change,
        }
        let lines: Vec<Line<'_>> = self
            .shown()
            .flat_map(|row| {
                row.changes
                    .iter()
                    .enumerate()
                    .map(move |(index, change)| Line {
                        case: self.case(row.of).unwrap_or("GEO-MEAN"),
                        metric: &row.metric,
                        side: &self.sides[index + 1].label,
                        base: &row.cells[0],
                        cell: &row.cells[index + 1],
                        change,
                    })
            })
            .collect();
        let number = |value: Option<f64>| value.map_or(table::Cell::Blank, table::Cell::Ratio);
        let tested = |get: fn(&Test) -> Option<f64>| {
            move |line: &Line<'_>| number(line.change.test.as_ref().and_then(get))
        };
        let size = |wanted: fn(Size) -> Option<f64>| {
            move |line: &Line<'_>| number(wanted(line.change.size))
        };
        let label = self.sides.first().map_or("", |side| side.label.as_str());
        let several = self.cases.len() > 1;
        let mut builder = Builder::new("compare", &format!("Against {label}"), &lines);
        if several {
            builder = builder.key("case", |line| line.case);
        }
        builder
            .key("metric", |line| line.metric)
            .key("side", |line| line.side)
            .column("base", Unit::Ratio, |line| mean(line.base))
            .column("value", Unit::Ratio, |line| mean(line.cell))
            .column(
                "change_pct",
                Unit::Ratio,
                size(|size| match size {
                    Size::Percent(percent) => Some(percent),
                    _ => None,
                }),
            )
            .column(
                "change_points",
                Unit::Ratio,
                size(|size| match size {
                    Size::Points(points) => Some(points),
                    _ => None,
                }),
            )
            .text("scale", |line| {
                line.change.test.as_ref().map(|test| scale(test))
            })
            .column("effect", Unit::Ratio, tested(|test| Some(test.effect())))
            .column("low", Unit::Ratio, tested(|test| Some(test.interval()?.0)))
            .column("high", Unit::Ratio, tested(|test| Some(test.interval()?.1)))
            .column("p", Unit::Ratio, tested(|test| Some(test.p.p)))
            .column(
                "p_ranks",
                Unit::Ratio,
                tested(|test| Some(test.mann_whitney()?.p)),
            )
            .column("q", Unit::Ratio, tested(|test| Some(test.q)))
            .count("base_runs", |line| line.base.values.len() as u64)
            .count("runs", |line| line.cell.values.len() as u64)
            .text("verdict", |line| {
                line.change.verdict().map(|verdict| verdict.name())
            })
            .column("detectable_pct", Unit::Ratio, tested(Test::detectable_pct))
            .build()
    }
}

fn mean(cell: &Cell) -> table::Cell {
    cell.mean.map_or(table::Cell::Missing, table::Cell::Ratio)
}

fn scale(test: &Test) -> &'static str {
    match test.scale {
        Scale::Log => "ratio",
        Scale::Linear => "difference",
    }
}

fn side(side: &Circumstances) -> Value {
    json!({
        "label": side.label,
        "description": side.description,
        "runs": [side.runs.0, side.runs.1],
        "loss": side.loss,
        "overhead_pct": side.overhead_pct.map(|(low, high)| [low, high]),
    })
}

fn cell(cell: &Cell) -> Value {
    json!({"values": cell.values, "mean": cell.mean, "stddev_pct": cell.deviation_pct()})
}

fn change(change: &Change, side: &Circumstances) -> Value {
    let mut value = json!({"side": side.label});
    match change.size {
        Size::Percent(percent) => value["change_pct"] = json!(percent),
        Size::Points(points) => value["change_points"] = json!(points),
        Size::New => value["new"] = json!(true),
        Size::Unknown => {}
    }
    if let Some(test) = &change.test {
        let (low, high) = test.interval().unzip();
        value["scale"] = json!(scale(test));
        value["effect"] = json!(test.effect());
        value["interval"] = json!([low, high]);
        value["p"] = json!(test.p.p);
        value["p_exact"] = json!(test.p.exact);
        value["p_ranks"] = json!(test.mann_whitney().map(|ranks| ranks.p));
        value["q"] = json!(test.q);
        value["paired"] = json!(test.paired);
        value["runs"] = json!([test.runs().0, test.runs().1]);
        value["verdict"] = json!(test.verdict.name());
        value["detectable_pct"] = json!(test.detectable_pct());
        value["runs_needed"] = json!(test.runs_needed());
    }
    value
}
