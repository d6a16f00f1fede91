//! The filesystems and devices that are followed, also those that are mounted later.

use crate::options::Filter as Wanted;
use crate::system::devices::{Filter, Topology, named, xfs_names, xfs_stats as read_stats};
use crate::system::mounts::MountWatch;
use crate::trace::Maps;
use anyhow::{Context as _, Result};
use cil_trace_core::device::{Dev, Device};
use cil_trace_core::model::xfs_stats;
use cil_trace_core::session::XfsStats;
use cil_trace_core::tick::Tick;
use std::collections::{BTreeMap, BTreeSet};

/// A counter that has grown by more than this between two ticks has fallen instead: they wrap at
/// 32 bits, and no log writes two billion iclogs in a second.
const FALLEN: u64 = 1 << 31;

/// What is followed.
pub struct Followed {
    filtered: bool,
    topology: Topology,
    mounts: MountWatch,
    /// As whoever takes the ticks knows them.
    recorded: BTreeMap<Dev, Device>,
    statistics: BTreeMap<String, XfsStats>,
}

impl Followed {
    /// What is wanted, as it is mounted now; with `wait` that may be nothing yet. Needs tokio's I/O
    /// driver.
    ///
    /// # Errors
    ///
    /// If nothing is there to be followed, or not what was asked for.
    pub fn new(filters: &[Wanted], wait: bool) -> Result<Self> {
        // Before the mounts are read, so that no change falls in between.
        let mounts = MountWatch::new().context("cannot watch /proc/self/mountinfo")?;
        let mut filter = Filter::default();
        for wanted in filters {
            match wanted {
                Wanted::Mount(path) => filter.mounts.push(path.clone()),
                Wanted::Device(name) => filter.devices.push(name.clone()),
            }
        }
        let mut topology = Topology::read()?;
        if wait && filters.is_empty() && topology.filesystems.is_empty() {
            log::warn!("no XFS is mounted; waiting for one");
        } else {
            topology = topology.select(&filter)?;
        }
        for note in &topology.notes {
            log::info!("{note}");
        }
        let recorded = topology
            .devices
            .iter()
            .map(|device| (device.dev, device.clone()))
            .collect();
        Ok(Self {
            filtered: !filters.is_empty(),
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

    /// Whether an XFS is mounted anywhere, followed or not.
    #[must_use]
    pub fn is_xfs_mounted(&self) -> bool {
        !xfs_names().is_empty()
    }

    /// Whether anything that is followed lies on a loop device.
    #[must_use]
    pub fn is_on_loop(&self) -> bool {
        let mut devices = self.topology.devices.iter();
        devices.any(|device| device.name.starts_with("loop"))
    }

    /// Forces and iclog writes of the filesystems that are followed, since they were mounted, by
    /// XFS's own count.
    #[must_use]
    pub fn since_mounted(&self) -> (u64, u64) {
        let each = self.topology.filesystems.iter().filter_map(|filesystem| {
            let text = read_stats(&filesystem.name)?;
            Some((
                xfs_stats::log_forces("", &text)?,
                xfs_stats::log_writes("", &text)?,
            ))
        });
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// How many filesystems are followed.
    #[must_use]
    pub fn filesystems(&self) -> usize {
        self.topology.filesystems.len()
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

    /// The same if the kernel lists another XFS than before: mounts in other namespaces do not wake
    /// [`Followed::changed`].
    ///
    /// # Errors
    ///
    /// If the mounts cannot be read.
    pub fn look_around(&mut self, maps: &mut Maps) -> Result<()> {
        let known = |name: &String| {
            self.topology
                .filesystems
                .iter()
                .any(|known| known.name == *name)
        };
        if self.filtered || xfs_names().iter().all(known) {
            return Ok(());
        }
        self.refresh(maps)
    }

    /// Devices of which no tick has said what is known now, and those that `tick` names
    /// for the first time. What has been unmounted keeps what was known of it.
    pub fn news(&mut self, tick: &Tick) -> Vec<Device> {
        let counted = tick
            .counters
            .iter()
            .flat_map(|(series, _)| [series.dev, series.via]);
        let strangers: BTreeSet<Dev> = counted
            .filter(|dev| *dev != Dev::NONE && !self.recorded.contains_key(dev))
            .collect();
        let strangers = strangers.into_iter().filter_map(named);
        let mut news = Vec::new();
        for device in self.topology.devices.iter().cloned().chain(strangers) {
            if self.recorded.get(&device.dev) != Some(&device) {
                self.recorded.insert(device.dev, device.clone());
                news.push(device);
            }
        }
        news
    }

    /// Reads XFS's own statistics of every filesystem; an unmounted one keeps its last. The first
    /// call is the window's start.
    pub fn read_statistics(&mut self, now: u64) {
        let at_start = self.statistics.is_empty();
        for filesystem in &self.topology.filesystems {
            let Some(text) = read_stats(&filesystem.name) else {
                continue;
            };
            let entry = self
                .statistics
                .entry(filesystem.name.clone())
                .or_insert_with(|| XfsStats {
                    device: filesystem.name.clone(),
                    start: if at_start {
                        text.clone()
                    } else {
                        String::new()
                    },
                    ..XfsStats::default()
                });
            // Counters that fall are those of a new mount.
            if xfs_stats::log_writes(&entry.end, &text).is_some_and(|writes| writes > FALLEN) {
                entry.start = String::new();
            }
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
