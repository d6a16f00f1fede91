//! What is known of a lock beyond its row in a table: who waits for it, and which stacks are its.

use super::Row;
use cil_trace_common::lock::Lock;
use cil_trace_core::model::Model;
use cil_trace_core::model::stacks::StackEntry;
use cil_trace_core::report::schema::{Hist, Report};
use cil_trace_core::report::table::{Chart, Unit};
use cil_trace_core::report::units;

/// Widest name of a function.
const FUNCTION: usize = 40;

/// Which lock a row is of.
pub struct Subject<'a> {
    lock: &'a str,
    /// `None` where the table has locks of one kind only.
    kind: Option<&'a str>,
    mode: &'a str,
    device: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// Of a row of `locks` or `ilock`; `None` if it is of another table.
    pub fn of(row: Row<'a>) -> Option<Self> {
        let lock = row.text("lock")?;
        let (kind, mode) = match row.text("kind") {
            Some(kind) => match kind.split_once(' ') {
                Some((kind, mode)) => (Some(kind), mode),
                None => (Some(kind), "exclusive"),
            },
            None => (None, row.text("mode")?),
        };
        Some(Self {
            lock,
            kind,
            mode,
            device: row.text("device"),
        })
    }

    fn is(&self, lock: &str, mode: &str, device: Option<&str>) -> bool {
        self.lock == lock && self.mode == mode && self.device == device
    }

    /// Who called for it or waited for it, the longest wait first; and the histograms that its table
    /// does not have.
    pub fn known(&self, report: &Report) -> (Vec<String>, Vec<Chart>) {
        let callers = |rows: &mut dyn Iterator<Item = (&str, u64, u64)>| {
            let rows = rows.map(|(function, count, wait_ns)| {
                format!(
                    "  {function:<FUNCTION$} {:>10} {:>10}",
                    units::count(count.into()),
                    units::duration(wait_ns)
                )
            });
            rows.collect::<Vec<_>>()
        };
        let (what, rows, hists) = if self.kind.is_none() {
            let mut rows = report.ilock.iter();
            let row = rows.find(|row| self.is(&row.lock, &row.mode, row.device.as_deref()));
            let named = row.into_iter().flat_map(|row| &row.callers);
            let mut named =
                named.map(|caller| (caller.function.as_str(), caller.count, caller.wait_ns));
            ("calls", callers(&mut named), [None, None])
        } else {
            let mut rows = report.locks.iter();
            let row = rows.find(|row| {
                self.kind == Some(&row.kind) && self.is(&row.lock, &row.mode, row.device.as_deref())
            });
            let named = row.into_iter().flat_map(|row| &row.callers);
            let mut named =
                named.map(|caller| (caller.function.as_str(), caller.waits, caller.wait_ns));
            let hist = |name, hist: Option<&'_ Hist>| Some((name, hist?.clone()));
            let hists = [
                hist("wait", row.and_then(|row| row.wait.as_ref())),
                hist("hold", row.and_then(|row| row.hold.as_ref())),
            ];
            ("waits", callers(&mut named), hists)
        };
        let mut lines = Vec::new();
        if !rows.is_empty() {
            lines.push(String::new());
            lines.push(format!("{:<42} {what:>10} {:>10}", "callers", "waited"));
            lines.extend(rows);
        }
        let charts = hists.into_iter().flatten();
        let charts = charts
            .filter(|(_, hist)| hist.count > 0)
            .map(|(name, hist)| Chart {
                label: format!("{} {}", self.lock, self.mode),
                quantity: name.to_owned(),
                unit: Unit::Ns,
                hist,
            });
        (lines, charts.collect())
    }

    /// Whether a stack is one of a wait for it.
    pub fn owns(&self, model: &Model, entry: &StackEntry<'_>) -> bool {
        let table = model.stacks();
        let Some(lock) = Lock::from_name(table.text(entry.label)) else {
            return false;
        };
        let name = match self.lock.strip_prefix("other@") {
            Some(function) => {
                !lock.is_named()
                    && entry
                        .kernel
                        .iter()
                        .any(|&frame| table.text(frame) == function)
            }
            None => lock.is_named() && lock.lock() == self.lock,
        };
        let device = self
            .device
            .is_none_or(|device| model.name(entry.dev) == device);
        let kind = self.kind.is_none_or(|kind| lock.kind().name() == kind);
        name && device && kind && lock.mode().name() == self.mode
    }
}
