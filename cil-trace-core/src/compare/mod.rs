//! Comparing runs: which metrics differ between kernels, by how much, and how surely.
//!
//! A [`Side`] is read once ([`run::Run`] of a recording, [`matrix::Matrix`] of LKP's files), then
//! [`Comparison::of`] holds every metric against the first side, and a [`style`] prints it. One run
//! is one observation. Reading files is the binary's business.

pub mod change;
mod comparison;
pub mod devices;
pub mod explain;
mod export;
pub mod facts;
pub mod matrix;
pub mod metrics;
pub mod names;
mod rows;
pub mod run;
pub mod samples;
pub mod statistics;
pub mod style;

pub use comparison::{Circumstances, CompareError, Comparison, Explanation, Options, Side};
pub use rows::{Cell, Change, Of, Row};
