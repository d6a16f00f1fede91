//! The small number of a device, by which arrays are indexed.

use crate::device::filesystem_in_scope;
use crate::maps::{CLAIMS, SLOTS, armed};
use crate::stat::{EEXIST, lose, lose_update};
use aya_ebpf::bindings::BPF_NOEXIST;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::slot::{MOST, NONE, OUT, STEPS, Slot, place};

/// The number that a device has, as far as it is known: [`OUT`] if it is out of scope, `None` if it
/// has none yet. Only look-ups: safe wherever a lock is waited for.
#[inline(always)]
pub fn find(dev: u32) -> Option<u32> {
    for step in 0..STEPS {
        let slot = SLOTS.get(place(dev, step))?;
        if slot.dev == dev {
            return Some(slot.number);
        }
    }
    None
}

/// The number of an XFS, claimed if need be; [`OUT`] if it is out of scope. Not where a lock is
/// waited for.
#[inline(always)]
pub fn of_filesystem(probe: Probe, dev: u32) -> u32 {
    match find(dev) {
        Some(number) => number,
        None => claim(probe, dev),
    }
}

#[inline(never)]
fn claim(probe: Probe, dev: u32) -> u32 {
    let number = if filesystem_in_scope(dev).is_none() {
        OUT
    } else {
        free(probe, dev)
    };
    let mut step = 0;
    while step < STEPS {
        if let Some(slot) = SLOTS.get_ptr_mut(place(dev, step)) {
            // SAFETY: a map value that outlives the program. Where two CPUs take one place, the
            // device that has lost it comes here again.
            unsafe {
                if (*slot).dev == 0 || (*slot).dev == dev {
                    *slot = Slot { dev, number };
                    return number;
                }
            }
        }
        step += 1;
    }
    lose(probe, LossCause::MapFull);
    OUT
}

/// The first number that is free or has been claimed for this device; the claims are a hash map
/// because its insertion decides between two CPUs.
#[inline(always)]
fn free(probe: Probe, dev: u32) -> u32 {
    let count = armed().map_or(0, |state| state.slots);
    let mut number = NONE + 1;
    while number < MOST {
        if number >= count {
            break;
        }
        match CLAIMS.insert(number, dev, u64::from(BPF_NOEXIST)) {
            Ok(()) => return number,
            Err(EEXIST) => {
                // SAFETY: a claim is never changed once it is made.
                if unsafe { CLAIMS.get(number) } == Some(&dev) {
                    return number;
                }
            }
            Err(error) => {
                lose_update(probe, error);
                return OUT;
            }
        }
        number += 1;
    }
    lose(probe, LossCause::MapFull);
    OUT
}
