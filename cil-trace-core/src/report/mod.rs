//! Reports: the model's numbers under the names of the JSON contract, and tables made of them.
//!
//! A [`schema::Report`] is data. [`sections`] turn it into [`table::Table`]s, [`format`] turns
//! tables into text; neither knows the other's business.

pub mod build;
pub mod format;
pub mod histogram;
pub mod schema;
pub mod sections;
pub mod summary;
pub mod table;
pub mod units;
pub mod wrap;

/// Keys of the JSON that say what a report is of.
pub const HEAD: &[&str] = &[
    "schema",
    "tool",
    "kernel",
    "command",
    "scope",
    "started_at",
    "duration_ns",
    "interrupted",
    "window",
];
