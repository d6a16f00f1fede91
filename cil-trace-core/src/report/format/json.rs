//! The report as JSON: whole, or the keys that were asked for.

use super::RenderError;
use crate::report::HEAD;
use crate::report::schema::Report;
use crate::report::sections::Section;
use crate::report::summary;
use serde_json::{Map, Value};

/// One object on one line.
///
/// # Errors
/// [`RenderError::Json`].
pub fn render(report: &Report, sections: &[&Section]) -> Result<String, RenderError> {
    if sections.is_empty() {
        return Ok(serde_json::to_string(report)? + "\n");
    }
    let mut whole = serde_json::to_value(report)?;
    let mut part = Map::new();
    // A part of a report must still say what it is a part of.
    for key in HEAD.iter().copied().chain(sections.iter().map(|s| s.name)) {
        let value = match key {
            summary::NAME => summary::lines(report).into(),
            // A section that is absent was asked for by name: null says that it is known.
            _ => whole.get_mut(key).map(Value::take).unwrap_or_default(),
        };
        // The first wins: a section named twice, or one that is always there, was taken already.
        part.entry(key).or_insert(value);
    }
    Ok(serde_json::to_string(&part)? + "\n")
}
