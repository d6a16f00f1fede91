//! Who holds a lock of an inode since when: pairs of taking and giving back, without a map update.
//!
//! A shared array of small sets. Each hold has its place by inode, lock and thread, so that shared
//! holders, and waiters beside the holder, do not meet. Writers on other CPUs are not locked out:
//! two of them in one set at the same moment may lose a hold, which then shows as an unpaired end.

/// Sets in the array; a power of two.
pub const SETS: u32 = 1 << 13;
/// Holds in a set.
pub const WAYS: usize = 2;

/// A lock that is held, or that a trylock may have got. All zero is a free place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Hold {
    /// Address of the inode, which is aligned to 8 bytes, and the bit number of the lock; 0 for
    /// none.
    pub tag: u64,
    /// When it was taken, CLOCK_MONOTONIC nanoseconds.
    pub start: u64,
    /// The thread.
    pub tid: u32,
    /// 1 if a trylock asked for it, whose outcome is not known.
    pub tried: u32,
}

/// The places among which a hold is looked for.
pub type Set = [Hold; WAYS];

/// What was found where a hold was put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A free place, or one where only a trylock's guess stood.
    Free,
    /// A trylock of the same lock by the same thread, from then.
    Tried(u64),
    /// The same hold, begun then, whose end was not seen.
    Open(u64),
    /// No room: another hold had to go, so that its end will be unpaired.
    Displaced,
}

/// The tag of a lock.
#[must_use]
#[inline(always)]
pub const fn tag(inode: u64, bit: u32) -> u64 {
    inode | bit as u64
}

/// The set of a lock that a thread holds.
#[must_use]
#[inline(always)]
pub const fn set_of(tag: u64, tid: u32) -> u32 {
    let mixed = (tag ^ (tid as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u32 & (SETS - 1)
}

/// Puts a hold into its set.
#[inline(always)]
pub fn begin(set: &mut Set, hold: Hold) -> Found {
    for place in &mut *set {
        if place.tag == hold.tag && place.tid == hold.tid {
            if place.tried != 0 {
                let found = Found::Tried(place.start);
                *place = hold;
                return found;
            }
            // A trylock of what the thread holds already has failed.
            if hold.tried != 0 {
                return Found::Free;
            }
            let found = Found::Open(place.start);
            *place = hold;
            return found;
        }
    }
    for place in &mut *set {
        if place.tag == 0 || place.tried != 0 {
            *place = hold;
            return Found::Free;
        }
    }
    // The older one has more likely been left behind.
    let [first, second] = set;
    *(if first.start <= second.start {
        first
    } else {
        second
    }) = hold;
    Found::Displaced
}

/// The hold of a thread.
#[inline(always)]
pub fn find(set: &mut Set, tag: u64, tid: u32) -> Option<&mut Hold> {
    set.iter_mut()
        .find(|place| place.tag == tag && place.tid == tid)
}

/// Takes a hold out; when it was taken.
#[inline(always)]
pub fn end(set: &mut Set, tag: u64, tid: u32) -> Option<u64> {
    let hold = find(set, tag, tid)?;
    hold.tag = 0;
    Some(hold.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const INODE: u64 = 0xffff_8881_0234_5678;

    fn hold(tid: u32, start: u64, tried: u32) -> Hold {
        Hold {
            tag: tag(INODE, 2),
            start,
            tid,
            tried,
        }
    }

    #[test]
    fn a_waiter_and_the_holder_do_not_meet() {
        let mut set = Set::default();
        assert_eq!(begin(&mut set, hold(1, 10, 0)), Found::Free);
        assert_eq!(begin(&mut set, hold(2, 20, 0)), Found::Free);
        assert_eq!(end(&mut set, tag(INODE, 2), 1), Some(10));
        assert_eq!(end(&mut set, tag(INODE, 2), 2), Some(20));
        assert_eq!(end(&mut set, tag(INODE, 2), 2), None);
    }

    #[test]
    fn a_lock_after_a_trylock_tells_when_that_was() {
        let mut set = Set::default();
        begin(&mut set, hold(1, 10, 1));
        assert_eq!(begin(&mut set, hold(1, 30, 0)), Found::Tried(10));
        assert_eq!(end(&mut set, tag(INODE, 2), 1), Some(30));
    }

    #[test]
    fn a_trylock_gives_way_and_a_hold_is_displaced_last() {
        let mut set = Set::default();
        begin(&mut set, hold(1, 10, 1));
        begin(&mut set, hold(2, 20, 0));
        assert_eq!(begin(&mut set, hold(3, 30, 0)), Found::Free);
        assert_eq!(begin(&mut set, hold(4, 40, 0)), Found::Displaced);
        assert_eq!(end(&mut set, tag(INODE, 2), 2), None);
        assert_eq!(end(&mut set, tag(INODE, 2), 3), Some(30));
    }

    #[test]
    fn an_inode_freed_while_held_and_used_again_is_an_open_hold() {
        let mut set = Set::default();
        begin(&mut set, hold(1, 10, 0));
        assert_eq!(begin(&mut set, hold(1, 50, 0)), Found::Open(10));
        assert_eq!(end(&mut set, tag(INODE, 2), 1), Some(50));
    }

    #[test]
    fn a_trylock_of_what_is_held_changes_nothing() {
        let mut set = Set::default();
        begin(&mut set, hold(1, 10, 0));
        begin(&mut set, hold(1, 20, 1));
        assert_eq!(end(&mut set, tag(INODE, 2), 1), Some(10));
    }

    #[test]
    fn locks_of_one_inode_and_its_neighbours_lie_apart() {
        let sets: std::collections::HashSet<_> = (0..64)
            .flat_map(|index| (0..6).map(move |bit| set_of(tag(INODE + index * 984, bit), 77)))
            .collect();
        assert!(sets.len() > 350, "{} sets for 384 locks", sets.len());
    }

    proptest! {
        /// Against a map: a hold that is found is the one that was put there.
        #[test]
        fn what_is_found_is_what_was_put(
            steps in proptest::collection::vec((0u32..4, 0u32..6, any::<bool>()), 1..200)
        ) {
            let mut set = Set::default();
            let mut held: HashMap<(u64, u32), u64> = HashMap::new();
            for (at, (tid, bit, take)) in (1u64..).zip(steps) {
                let tag = tag(INODE, bit);
                if take {
                    let hold = Hold { tag, start: at, tid, tried: 0 };
                    begin(&mut set, hold);
                    held.insert((tag, tid), at);
                } else if let Some(start) = end(&mut set, tag, tid) {
                    prop_assert_eq!(held.remove(&(tag, tid)), Some(start));
                }
            }
        }
    }
}
