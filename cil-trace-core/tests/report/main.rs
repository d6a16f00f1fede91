//! Reports made by hand, printed in every format.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod formats;
mod golden;
mod properties;
mod sample;
mod summary;
