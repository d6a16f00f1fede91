//! The program on this machine's kernel, held against ftrace and XFS's own statistics.
//!
//! Knows the command line and the JSON of reports, and nothing of the program's inside. Needs
//! root; `cargo xtask test --level kernel` builds the program and runs this.
#![expect(clippy::unwrap_used, reason = "a failure is the test's")]

mod blocked;
mod cause;
mod clock;
mod contended;
mod count;
mod dbench;
mod disk;
mod eventually;
mod exports;
mod ilock;
mod killed;
mod mapped;
mod matrix;
mod modules;
mod own;
mod programs;
mod refused;
mod screen;
mod sequence;
mod series;
mod shell;
mod stacked;
mod stacks;
mod symbols;
#[path = "../terminal/tmux.rs"]
mod tmux;
mod tool;
mod trace;
mod witness;
mod xfs;
