//! The filesystems and devices that a recording follows, also those that are mounted later.

use crate::options::{Filter as Wanted, RecordOptions};
use crate::system::devices::{Filter, Topology, xfs_stats};
use crate::system::mounts::MountWatch;
use crate::trace::Maps;
use anyhow::{Context as _, Result};
use cil_trace_core::device::{Dev, Device};
use cil_trace_core::session::XfsStats;
use std::collections::BTreeMap;

/// What is followed.
pub struct Followed {
    filtered: bool,
    topology: Topology,
    mounts: MountWatch,
    /// As the recording has them.
    recorded: BTreeMap<Dev, Device>,
    statistics: BTreeMap<String, XfsStats>,
}

impl Followed {
    /// What the options ask for, as it is mounted now. Needs tokio's I/O driver.
    ///
    /// # Errors
    ///
    /// If nothing is there to be followed, or not what was asked for.
    pub fn new(options: &RecordOptions) -> Result<Self> {
        // Before the mounts are read, so that no change falls in between.
        let mounts = MountWatch::new().context("cannot watch /proc/self/mountinfo")?;
        let mut filter = Filter::default();
        for wanted in &options.filters {
            match wanted {
                Wanted::Mount(path) => filter.mounts.push(path.clone()),
                Wanted::Device(name) => filter.devices.push(name.clone()),
            }
        }
        let topology = Topology::read()?.select(&filter)?;
        for note in &topology.notes {
            log::info!("{note}");
        }
        let recorded = topology
            .devices
            .iter()
            .map(|device| (device.dev, device.clone()))
            .collect();
        Ok(Self {
            filtered: !options.filters.is_empty(),
            topology,
            mounts,
            recorded,
            statistics: BTreeMap::new(),
        })
    }

    /// The devices, as they are known now.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        self.recorded.values().cloned().collect()
    }

    /// Tells the kernel side.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn announce(&self, maps: &mut Maps) -> Result<()> {
        self.topology
            .scope_entries()
            .iter()
            .try_for_each(|(dev, scope)| maps.set_device(dev.0, *scope))
    }

    /// Waits until something is mounted or unmounted. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the I/O driver is gone.
    pub async fn changed(&self) -> Result<()> {
        self.mounts
            .changed()
            .await
            .context("cannot watch /proc/self/mountinfo")
    }

    /// Takes in what has been mounted meanwhile, unless the user has named what to follow.
    ///
    /// # Errors
    ///
    /// If the mounts cannot be read.
    pub fn refresh(&mut self, maps: &mut Maps) -> Result<()> {
        if self.filtered {
            return Ok(());
        }
        self.topology = Topology::read()?;
        self.announce(maps)
    }

    /// Devices of which the recording does not know what is known now. What has been unmounted
    /// keeps what was known of it.
    pub fn news(&mut self) -> Vec<Device> {
        let mut news = Vec::new();
        for device in &self.topology.devices {
            if self.recorded.get(&device.dev) != Some(device) {
                self.recorded.insert(device.dev, device.clone());
                news.push(device.clone());
            }
        }
        news
    }

    /// Reads XFS's own statistics of every filesystem; an unmounted one keeps its last.
    pub fn read_statistics(&mut self, now: u64) {
        for filesystem in &self.topology.filesystems {
            let Some(text) = xfs_stats(&filesystem.name) else {
                continue;
            };
            let entry = self
                .statistics
                .entry(filesystem.name.clone())
                .or_insert_with(|| XfsStats {
                    device: filesystem.name.clone(),
                    start: text.clone(),
                    ..XfsStats::default()
                });
            entry.end = text;
            entry.end_ns = now;
        }
    }

    /// The statistics at both ends of the window.
    #[must_use]
    pub fn statistics(&self) -> Vec<XfsStats> {
        self.statistics.values().cloned().collect()
    }
}
