//! Comparison of recordings and matrices.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod statistics;
