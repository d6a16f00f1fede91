//! The kernel side as it is loaded for the modules of one time, and its succession.

use super::followed::Followed;
use super::reach::Reach;
use crate::options::Tracing;
use crate::trace::{Options, RunningKernel, Tracer};
use anyhow::Result;

/// The kernel side, attached to what is there.
pub struct Generation {
    /// The kernel, as it was then.
    pub kernel: RunningKernel,
    /// The programs, with their window closed.
    pub tracer: Tracer,
    /// The modules that they reach into.
    pub reach: Reach,
}

impl Generation {
    /// Loads and attaches what is asked for.
    ///
    /// # Errors
    ///
    /// If the kernel cannot be read, or refuses the programs as a whole.
    pub fn load(tracing: &Tracing, followed: &Followed, reach: Reach) -> Result<Self> {
        let kernel = RunningKernel::read_without(reach.left_alone(), tracing.debuginfo.as_deref())?;
        let mut tracer = Tracer::load(
            &kernel,
            &Options {
                sets: tracing.probes.clone(),
                filtered: !tracing.filters.is_empty(),
                diagnostics: log::log_enabled!(log::Level::Debug),
                filesystems: followed.filesystems(),
                sampling_hz: tracing.sampling_hz,
                sampling: tracing.sampling,
            },
        )?;
        followed.announce(&mut tracer.maps)?;
        Ok(Self {
            kernel,
            tracer,
            reach,
        })
    }
}
