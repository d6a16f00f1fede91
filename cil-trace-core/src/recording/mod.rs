//! The recording: one SQLite file that holds everything a report needs.
//!
//! This is the only module that knows SQL. It must not sum, interpret or format: what goes in as
//! [`Tick`](crate::tick::Tick)s comes out as the same ticks. Decoding is total: rows that this
//! build does not understand are skipped and counted. The tables are described, with units, in
//! `docs/recording.md`; columns are only ever added.

mod error;
mod file;
mod names;
mod reader;
mod rows;
mod session;
mod stacks;
mod tables;
mod writer;

pub use error::RecordingError;
pub use reader::Recording;
pub use writer::Writer;
