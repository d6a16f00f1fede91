//! The decoded form of a map key.

use crate::device::Dev;
use cil_trace_common::cause::{Cause, FsyncKind};
use cil_trace_common::key::Key;
use cil_trace_common::lock::Lock;
use cil_trace_common::metric::{Label, Metric};

/// Identifies one counter or histogram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Series {
    /// Which quantity.
    pub metric: Metric,
    /// The device: a filesystem's, or a whole disk, as the metric says.
    pub dev: Dev,
    /// The number of a [`Cause`], [`FsyncKind`] or [`Lock`]; see [`Series::cause`],
    /// [`Series::fsync`] and [`Series::lock`].
    pub label: u16,
    /// The device above, or [`Dev::NONE`].
    pub via: Dev,
    /// Id of the stack of a flush that nothing explains, or of a stack that holds only the function
    /// by which a lock is named.
    pub stack: Option<u32>,
}

impl Series {
    /// A series without label, device above or stack.
    #[must_use]
    pub const fn of(metric: Metric, dev: Dev) -> Self {
        Self {
            metric,
            dev,
            label: 0,
            via: Dev::NONE,
            stack: None,
        }
    }

    /// Decodes a map key; `None` if its metric or label is unknown.
    #[must_use]
    pub fn decode(key: &Key) -> Option<Self> {
        let metric = Metric::from_u16(key.metric)?;
        let known = match metric.label() {
            Label::None => true,
            Label::Cause => Cause::from_u16(key.label).is_some(),
            Label::Fsync => FsyncKind::from_u16(key.label).is_some(),
            Label::Lock => Lock::from_u16(key.label).is_some(),
        };
        known.then_some(Self {
            metric,
            dev: Dev(key.dev),
            label: key.label,
            via: Dev(key.via),
            stack: key.stack.checked_sub(1),
        })
    }

    /// The cause, if the metric has one.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        (self.metric.label() == Label::Cause)
            .then(|| Cause::from_u16(self.label))
            .flatten()
    }

    /// The lock, if the metric has one.
    #[must_use]
    pub fn lock(&self) -> Option<Lock> {
        (self.metric.label() == Label::Lock)
            .then(|| Lock::from_u16(self.label))
            .flatten()
    }

    /// The kind of fsync, if the metric has one.
    #[must_use]
    pub fn fsync(&self) -> Option<FsyncKind> {
        (self.metric.label() == Label::Fsync)
            .then(|| FsyncKind::from_u16(self.label))
            .flatten()
    }
}
