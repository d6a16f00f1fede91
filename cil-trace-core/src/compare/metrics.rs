//! Every number of a report under a name of its own: `cil-trace.flushes.sda.cil-push`,
//! `cil-trace.locks.xc_cil_lock.wait_ns.p99`.
//!
//! Derived from the report's JSON, so that a field or section that is added there is a metric here
//! without an edit; [`tables`] only says what the JSON cannot. Results of the workload keep
//! the names that LKP gave them.

mod tables;

use crate::histogram::Histogram;
use crate::report::schema::Report;
use cil_trace_common::hist::bucket_of;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use tables::{FACTS, IDENTITY, List, NOT_TIMES, QUANTILES};

/// In front of our own names, where LKP has the test's.
pub const PREFIX: &str = "cil-trace";

/// The numbers of one run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Metrics {
    /// Name to value; always finite.
    pub values: BTreeMap<String, f64>,
    /// The histograms behind the quantiles, by name.
    pub histograms: BTreeMap<String, Histogram>,
    /// Of a metric that may be absent because nothing happened: what must have been measured for
    /// its absence to mean zero.
    counts: BTreeMap<String, String>,
    /// What was measured in this run.
    measured: BTreeSet<String>,
}

impl Metrics {
    /// Of a report; devices under the names that `alias` gives them.
    #[must_use]
    pub fn of(report: &Report, alias: &BTreeMap<String, String>) -> Self {
        let mut metrics = Self::default();
        // Of plain data with text keys: it always is an object.
        if let Ok(Value::Object(sections)) = serde_json::to_value(report) {
            let mut walk = Walk {
                metrics: &mut metrics,
                alias,
            };
            for (name, section) in &sections {
                if tables::is_measured(name) {
                    walk.value(&At::section(name), section);
                }
            }
        }
        metrics.summarise();
        metrics.note_measured(report, alias);
        if let Some(workload) = &report.workload {
            metrics.values.extend(workload.metrics.clone());
        }
        metrics.values.retain(|_, value| value.is_finite());
        metrics
    }

    /// What the value of `name` is in this run, `like` being another that has it: its own, or zero
    /// if it would have been counted here.
    #[must_use]
    pub fn value(&self, name: &str, like: &Self) -> Option<f64> {
        self.values.get(name).copied().or_else(|| {
            let needed = like.counts.get(name)?;
            self.measured.contains(needed).then_some(0.0)
        })
    }

    /// Whether the absence of a metric may mean zero.
    #[must_use]
    pub fn is_count(&self, name: &str) -> bool {
        self.counts.contains_key(name)
    }

    /// Adds what is read off the merged histograms.
    fn summarise(&mut self) {
        for (name, histogram) in &self.histograms {
            let mut put = |part: &str, value: Option<f64>| {
                if let Some(value) = value {
                    self.values.insert(format!("{name}.{part}"), value);
                }
            };
            put("count", Some(histogram.count as f64));
            put("sum", Some(histogram.sum as f64));
            let some = histogram.count > 0;
            put("min", some.then_some(histogram.min as f64));
            put("max", some.then_some(histogram.max as f64));
            put("mean", histogram.mean());
            for (part, q) in QUANTILES {
                put(part, histogram.quantile(*q).map(|value| value as f64));
            }
            if let Some(needed) = self.counts.get(name).cloned() {
                for part in ["count", "sum"] {
                    self.counts.insert(format!("{name}.{part}"), needed.clone());
                }
            }
        }
    }

    /// Where there is no row at all, the probes tell.
    fn note_measured(&mut self, report: &Report, alias: &BTreeMap<String, String>) {
        let devices = report.devices.iter().map(|row| {
            let name = &row.device;
            alias.get(name).unwrap_or(name)
        });
        for List { path, count, .. } in List::measured(report) {
            let of_list = match count {
                Some(count) => format!("{path}.{count}"),
                None => (*path).to_owned(),
            };
            let of_devices = devices.clone().map(|device| format!("{of_list}@{device}"));
            self.measured.extend(of_devices);
            self.measured.insert(of_list);
        }
    }
}

/// A place in the report.
struct At {
    /// Field names from the section on, without the names of rows.
    path: String,
    /// The metric's name.
    name: String,
    /// The device of the row.
    device: Option<String>,
    /// Inside a list whose rows may be absent.
    sparse: bool,
}

impl At {
    fn section(name: &str) -> Self {
        Self {
            path: name.to_owned(),
            name: format!("{PREFIX}.{name}"),
            device: None,
            sparse: false,
        }
    }

    fn field(&self, field: &str) -> Self {
        let list = List::at(&self.path);
        // The keys of a map are rows, of which nothing but a number is to be said.
        let is_row = list.is_some_and(|list| list.count.is_none());
        let is_count = list.is_some_and(|list| list.count == Some(field));
        Self {
            name: if is_count {
                self.name.clone()
            } else {
                format!("{}.{field}", self.name)
            },
            path: if is_row {
                self.path.clone()
            } else {
                format!("{}.{field}", self.path)
            },
            device: self.device.clone(),
            sparse: self.sparse || is_row,
        }
    }

    /// What must have been measured for the absence of this to mean zero.
    fn needed(&self) -> String {
        match &self.device {
            Some(device) => format!("{}@{device}", self.path),
            None => self.path.clone(),
        }
    }
}

struct Walk<'a> {
    metrics: &'a mut Metrics,
    alias: &'a BTreeMap<String, String>,
}

impl Walk<'_> {
    fn value(&mut self, at: &At, value: &Value) {
        match value {
            Value::Number(number) => {
                // Rows that nothing tells apart are one.
                *self.metrics.values.entry(at.name.clone()).or_default() +=
                    number.as_f64().unwrap_or(f64::NAN);
                self.count(at);
            }
            Value::Object(fields) => match histogram(fields) {
                Some(histogram) => self.histogram(at, &histogram),
                None => self.fields(at, fields),
            },
            Value::Array(rows) => self.rows(at, rows),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    fn fields(&mut self, at: &At, fields: &Map<String, Value>) {
        for (field, value) in fields {
            // The results of the workload have names of their own.
            let results = at.path == "workload" && field == "metrics";
            if !FACTS.contains(&field.as_str()) && !results {
                self.value(&at.field(field), value);
            }
        }
    }

    fn histogram(&mut self, at: &At, histogram: &Histogram) {
        let field = at.path.rsplit('.').next().unwrap_or_default();
        let has_unit = ["_ns", "_bytes", "_pct"]
            .iter()
            .any(|unit| field.ends_with(unit));
        let at = At {
            name: if has_unit || NOT_TIMES.contains(&field) {
                at.name.clone()
            } else {
                format!("{}_ns", at.name)
            },
            path: at.path.clone(),
            device: at.device.clone(),
            sparse: at.sparse,
        };
        self.metrics
            .histograms
            .entry(at.name.clone())
            .or_default()
            .merge(histogram);
        self.count(&at);
    }

    fn count(&mut self, at: &At) {
        if at.sparse {
            self.metrics.counts.insert(at.name.clone(), at.needed());
            self.metrics.measured.insert(at.needed());
        }
    }

    fn rows(&mut self, at: &At, rows: &[Value]) {
        let rows: Vec<&Map<String, Value>> = rows.iter().filter_map(Value::as_object).collect();
        // One device alone is the total.
        if at.path.ends_with(".by_device") && rows.len() == 1 {
            return;
        }
        let list = List::at(&at.path);
        let sparse = at.sparse || list.is_some();
        let total = list.and_then(|list| list.total);
        let row = |identity: &[String], device: Option<String>| At {
            path: at.path.clone(),
            name: [std::slice::from_ref(&at.name), identity]
                .concat()
                .join("."),
            device,
            sparse,
        };
        for fields in &rows {
            let (mut identity, device) = self.identity(fields);
            let device = device.or_else(|| at.device.clone());
            if let Some(total) = total {
                let key = fields
                    .get(total)
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                self.fields(&row(&[key.to_owned()], None), fields);
                if rows
                    .iter()
                    .filter(|row| row.get(total) == fields.get(total))
                    .count()
                    == 1
                {
                    continue;
                }
                // What kind of lock it is, its name says.
                identity.retain(|part| fields.get("kind").and_then(Value::as_str) != Some(part));
            }
            self.fields(&row(&identity, device), fields);
        }
    }

    /// The parts of a row's name in the order of its fields, and its device.
    fn identity(&self, fields: &Map<String, Value>) -> (Vec<String>, Option<String>) {
        let mut device = None;
        let mut parts = Vec::new();
        for (field, value) in fields {
            let (true, Some(text)) = (IDENTITY.contains(&field.as_str()), value.as_str()) else {
                continue;
            };
            let text = match field.as_str() {
                "device" | "via" => self.alias.get(text).map_or(text, String::as_str),
                // Of `kworker/u8:1` and `xfsaild/sda` what is the same in every run.
                "comm" | "waiter" | "holder" => text.split('/').next().unwrap_or(text),
                _ => text,
            };
            if field == "device" {
                device = Some(text.to_owned());
            }
            if !text.is_empty() {
                parts.push(text.to_owned());
            }
        }
        (parts, device)
    }
}

/// The histogram that these fields are, if they are one.
fn histogram(fields: &Map<String, Value>) -> Option<Histogram> {
    let number = |field: &str| fields.get(field).and_then(Value::as_u64);
    let buckets = fields.get("buckets")?.as_array()?;
    Some(Histogram {
        count: number("count")?,
        sum: number("sum")?,
        min: number("min").unwrap_or(0),
        max: number("max").unwrap_or(0),
        buckets: buckets
            .iter()
            .filter_map(|bucket| {
                let low = bucket.get(0)?.as_u64()?;
                Some((
                    u16::try_from(bucket_of(low)).ok()?,
                    bucket.get(2)?.as_u64()?,
                ))
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::schema::Hist;
    use serde_json::json;

    fn walked(sections: &Value) -> Metrics {
        let mut metrics = Metrics::default();
        let alias = BTreeMap::new();
        let mut walk = Walk {
            metrics: &mut metrics,
            alias: &alias,
        };
        for (name, section) in sections.as_object().into_iter().flatten() {
            walk.value(&At::section(name), section);
        }
        metrics.summarise();
        metrics
    }

    fn hist(values: &[u64]) -> Value {
        let histogram: Histogram = values.iter().copied().collect();
        json!(Hist::from(&histogram))
    }

    #[test]
    fn locks_are_added_up_over_modes_and_devices() {
        let row = |lock: &str, mode: Option<&str>, waits: u64, wait: &[u64]| {
            json!({"lock": lock, "kind": "rwsem", "mode": mode, "device": "sda", "waits": waits,
                   "wait": hist(wait), "callers": [{"function": "f", "waits": waits, "wait_ns": 7}]})
        };
        let metrics = walked(&json!({"locks": [
            row("xc_cil_lock", None, 2, &[10, 20]),
            row("ILOCK", Some("shared"), 1, &[5]),
            row("ILOCK", Some("exclusive"), 3, &[6, 7, 1000]),
        ]}));
        let values = &metrics.values;
        assert_eq!(values["cil-trace.locks.xc_cil_lock"], 2.0);
        assert_eq!(values["cil-trace.locks.xc_cil_lock.wait_ns.sum"], 30.0);
        assert!(values.contains_key("cil-trace.locks.xc_cil_lock.wait_ns.p99"));
        assert!(!values.contains_key("cil-trace.locks.xc_cil_lock.sda"));
        assert_eq!(values["cil-trace.locks.xc_cil_lock.callers.f.wait_ns"], 7.0);
        assert_eq!(values["cil-trace.locks.ILOCK"], 4.0);
        assert_eq!(values["cil-trace.locks.ILOCK.wait_ns.max"], 1000.0);
        assert_eq!(values["cil-trace.locks.ILOCK.shared.sda"], 1.0);
        assert_eq!(
            values["cil-trace.locks.ILOCK.exclusive.sda.wait_ns.count"],
            3.0
        );
    }

    #[test]
    fn a_section_of_a_later_version_is_read() {
        let metrics = walked(
            &json!({"readahead": {"hits": 3, "size_bytes": hist(&[8]), "late": null},
            "zones": [{"device": "sda", "kind": "open", "count": 4}]}),
        );
        let names: Vec<_> = metrics.values.keys().map(String::as_str).collect();
        assert!(names.contains(&"cil-trace.readahead.hits"));
        assert!(names.contains(&"cil-trace.readahead.size_bytes.p50"));
        assert!(names.contains(&"cil-trace.zones.sda.open.count"));
        assert!(!names.iter().any(|name| name.contains("late")));
    }
}
