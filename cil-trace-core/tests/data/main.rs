//! A hand-built session through recording, model and report.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod documentation;
mod files;
mod golden;
mod history;
mod locks;
mod round_trip;
mod sample;
