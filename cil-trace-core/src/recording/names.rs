//! Device numbers to names and back.
//!
//! Columns hold a device's bare name. A device without a known name, or whose name was another
//! device's earlier in the same recording, stands there as `major:minor`, so that no two are ever
//! taken for one.

use crate::device::{Dev, Device};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Names {
    by_dev: HashMap<Dev, String>,
    by_name: HashMap<String, Dev>,
}

impl Names {
    /// Takes in a name. Writer and reader must do so in the same order.
    pub(super) fn learn(&mut self, dev: Dev, name: &str) {
        if name.is_empty() || *self.by_name.entry(name.to_owned()).or_insert(dev) != dev {
            return;
        }
        self.by_dev.insert(dev, name.to_owned());
    }

    pub(super) fn learn_all(&mut self, devices: &[Device]) {
        for device in devices {
            self.learn(device.dev, &device.name);
        }
    }

    /// What a column holds; `None` for no device.
    pub(super) fn text(&self, dev: Dev) -> Option<String> {
        (dev != Dev::NONE).then(|| {
            self.by_dev
                .get(&dev)
                .cloned()
                .unwrap_or_else(|| dev.to_string())
        })
    }

    /// The device that a column's text means.
    pub(super) fn dev(&self, text: &str) -> Option<Dev> {
        self.by_name.get(text).copied().or_else(|| {
            let (major, minor) = text.split_once(':')?;
            Some(Dev::new(major.parse().ok()?, minor.parse().ok()?))
        })
    }
}
