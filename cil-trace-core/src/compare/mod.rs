//! Comparing recordings: which metrics differ between kernels, by how much, and how surely.

pub mod statistics;
