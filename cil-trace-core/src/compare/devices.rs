//! Which device of one recording is which of another: a loop device has another number after every
//! mount, and another machine has other disks.

use crate::device::{Dev, Device};
use crate::model::Model;
use std::collections::BTreeMap;

/// The devices of a recording by the part that each plays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// The XFS filesystems by mount point: its device, and what lies beneath from top to bottom.
    filesystems: BTreeMap<String, Vec<String>>,
}

impl Layout {
    /// Of the devices that a recording knows.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let xfs = model
            .devices()
            .filter(|device| device.filesystem.as_deref() == Some("xfs"));
        Self {
            filesystems: xfs
                .map(|device| {
                    let place = device.mountpoint.clone().unwrap_or_default();
                    (place, stack(model, device))
                })
                .collect(),
        }
    }

    /// The names that `self`, the base, has for the devices of `other`. Filesystems are the same if
    /// they are mounted at the same place; if places differ, in the order of their places if there
    /// are as many. Devices without a counterpart keep their names.
    #[must_use]
    pub fn aliases(&self, other: &Self) -> BTreeMap<String, String> {
        let places = self
            .filesystems
            .keys()
            .all(|place| other.filesystems.contains_key(place));
        let pairs: Vec<_> = if places {
            let of = |(place, stack)| Some((stack, other.filesystems.get(place)?));
            self.filesystems.iter().filter_map(of).collect()
        } else if self.filesystems.len() == other.filesystems.len() {
            self.filesystems
                .values()
                .zip(other.filesystems.values())
                .collect()
        } else {
            Vec::new()
        };
        let names = pairs
            .into_iter()
            .flat_map(|(base, other)| other.iter().zip(base));
        // Filesystems may share a disk: what is found first stays.
        names.fold(BTreeMap::new(), |mut aliases, (other, base)| {
            aliases.entry(other.clone()).or_insert_with(|| base.clone());
            aliases
        })
    }

    /// The filesystems' devices and what they stand on: `loop2 on vda1 on vda`.
    #[must_use]
    pub fn text(&self) -> String {
        let stacks: Vec<_> = self
            .filesystems
            .values()
            .map(|stack| stack.join(" on "))
            .collect();
        stacks.join(", ")
    }
}

/// A device and all beneath it, each once.
fn stack(model: &Model, top: &Device) -> Vec<String> {
    let mut seen: Vec<Dev> = vec![top.dev];
    let mut next = 0;
    while let Some(&dev) = seen.get(next) {
        next += 1;
        let Some(device) = model.device(dev) else {
            continue;
        };
        let others = [
            device.partition_of,
            device.log_device,
            device.realtime_device,
        ];
        let beneath = device
            .stacked_on
            .iter()
            .copied()
            .chain(others.into_iter().flatten());
        let new: Vec<_> = beneath.filter(|dev| !seen.contains(dev)).collect();
        seen.extend(new);
    }
    seen.into_iter().map(|dev| model.name(dev)).collect()
}
