//! Comparison of recordings and matrices.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod explain;
mod lkp;
mod metrics;
mod ragged;
mod rounds;
mod sample;
mod statistics;
mod styles;
