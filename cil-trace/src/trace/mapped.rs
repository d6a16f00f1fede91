//! A map of the kernel side in this process's memory, so that reading it takes no system call.

use anyhow::{Context as _, Result, bail};
use aya::Pod;
use aya::maps::{Map, MapData};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::AsFd as _;
use std::ptr::{NonNull, null_mut};

/// An array made with `BPF_F_MMAPABLE`.
pub struct Mapped<T> {
    base: NonNull<T>,
    entries: usize,
    /// Keeps the map in the kernel.
    _map: MapData,
}

impl<T: Pod> Mapped<T> {
    /// Maps an array of `T`.
    ///
    /// # Errors
    ///
    /// If it is no such array, or the kernel refuses.
    pub fn new(map: Map) -> Result<Self> {
        let Map::Array(map) = map else {
            bail!("it is no array");
        };
        let info = map.info().context("cannot ask the kernel for it")?;
        // The kernel lays values out at multiples of 8 bytes (kernel/bpf/arraymap.c).
        if info.value_size() as usize != size_of::<T>() || !size_of::<T>().is_multiple_of(8) {
            bail!("its values have {} bytes", info.value_size());
        }
        let entries = info.max_entries() as usize;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base = unsafe {
            mmap(
                null_mut(),
                entries * size_of::<T>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map.fd().as_fd(),
                0,
            )
        }
        .context("cannot map it into memory")?;
        Ok(Self {
            base: NonNull::new(base.cast()).context("it is mapped at no address")?,
            entries,
            _map: map,
        })
    }

    /// The entries as they are now; the kernel side may be changing one while it is read.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        // SAFETY: inside the mapping, aligned, and any bytes are a `T`.
        (0..self.entries).map(|index| unsafe { self.base.add(index).read_volatile() })
    }

    /// Replaces an entry; nothing happens past the last one.
    pub fn set(&mut self, index: usize, value: T) {
        if index < self.entries {
            // SAFETY: as above.
            unsafe { self.base.add(index).write_volatile(value) };
        }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        let base: *mut c_void = self.base.as_ptr().cast();
        // SAFETY: the mapping that `new` has made; nothing borrows from it.
        if let Err(error) = unsafe { munmap(base, self.entries * size_of::<T>()) } {
            log::debug!("munmap: {error}");
        }
    }
}
