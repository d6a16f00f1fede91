//! The pure part of cil-trace: everything between a snapshot of the kernel side and a report.
//!
//! Data flows one way: [`tick::Tick`]s go into a [`recording`] or straight into the [`model`], the
//! model becomes a [`report`], and formats render it. Nothing here touches the kernel, a clock, the
//! environment, /proc or /sys, so a replayed recording gives the numbers that were seen live.

pub mod code;
pub mod compare;
pub mod debuginfo;
pub mod decode;
pub mod device;
pub mod export;
pub mod flame;
pub mod histogram;
pub mod history;
pub mod model;
pub mod offsets;
pub mod probes;
pub mod processes;
pub mod profile;
pub mod recording;
pub mod report;
pub mod results;
pub mod sample;
pub mod series;
pub mod session;
pub mod tick;
