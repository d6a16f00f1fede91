//! A recording in the formats of other tools.
//!
//! Stacks go out with all that is known of them; timelines are made of the sampled events, and say
//! so.

mod folded;
mod perfetto;
mod pprof;
mod speedscope;
mod tables;

pub use folded::folded;
pub use perfetto::perfetto;

pub use pprof::pprof;
pub use speedscope::speedscope;
pub use tables::{everything_json, stacks_csv, stacks_json, ticks_csv};

use crate::profile::ProfileError;
use std::io;

/// A format that other tools read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// The report with all ticks, sampled events and stacks; or stacks of one kind.
    Json,
    /// Every counter and histogram by tick; or stacks of one kind.
    Csv,
    /// Tables for data lakes.
    Parquet,
    /// Stacks of one kind, one a line.
    Folded,
    /// Stacks of one kind for `go tool pprof` and its like, gzipped.
    Pprof,
    /// Stacks of one kind for speedscope.
    Speedscope,
    /// A timeline of the sampled events for ui.perfetto.dev.
    Perfetto,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 7] = [
        Self::Json,
        Self::Csv,
        Self::Parquet,
        Self::Folded,
        Self::Pprof,
        Self::Speedscope,
        Self::Perfetto,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Folded => "folded",
            Self::Pprof => "pprof",
            Self::Speedscope => "speedscope",
            Self::Perfetto => "perfetto",
        }
    }

    /// What it holds, for help texts.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Json => {
                "The report with all ticks, sampled events and stacks; with --kind, stacks"
            }
            Self::Csv => "Counters and histograms by tick; with --kind, stacks",
            Self::Parquet => "Not in this version",
            Self::Folded => "Stacks, one a line, as flamegraph tools read them",
            Self::Pprof => "Stacks for `go tool pprof`",
            Self::Speedscope => "Stacks for speedscope.app",
            Self::Perfetto => "Timeline of the sampled events for ui.perfetto.dev",
        }
    }

    /// The format with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The recording has no such stacks.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A value that the format cannot hold.
    #[error("the recording cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// Likewise.
    #[error("the recording cannot be written as CSV")]
    Csv(#[from] csv::Error),
    /// Compressing failed.
    #[error("the profile cannot be compressed")]
    Compress(#[from] io::Error),
}
