//! A bounded sample of single objects per kind and tick: the slowest, and a uniform one.

use crate::tick::SampledEvent;
use cil_trace_common::event::EventKind;
use std::cmp::Reverse;

/// Objects kept per kind and tick: so many of the slowest, and as many drawn uniformly.
pub const HALF: usize = 25;

/// Collects the objects of one tick.
#[derive(Debug)]
pub struct Sampler {
    kinds: Vec<Kind>,
    random: fastrand::Rng,
}

#[derive(Debug, Default)]
struct Kind {
    seen: u64,
    /// Sorted, slowest first.
    slowest: Vec<SampledEvent>,
    /// Objects that were not among the slowest when they came, or have been pushed out since.
    others: u64,
    /// A uniform sample of them (Vitter's algorithm R).
    uniform: Vec<SampledEvent>,
}

impl Sampler {
    /// An empty sample; `seed` decides what the uniform part draws.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let kinds = EventKind::ALL.iter().map(|_| Kind::default()).collect();
        Self {
            kinds,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Takes one object.
    pub fn add(&mut self, event: SampledEvent) {
        let Some(kind) = self.kinds.get_mut(event.kind as usize) else {
            return;
        };
        kind.seen += 1;
        let place = kind
            .slowest
            .partition_point(|slower| slower.duration_ns >= event.duration_ns);
        if place < HALF {
            kind.slowest.insert(place, event);
            if kind.slowest.len() > HALF
                && let Some(pushed_out) = kind.slowest.pop()
            {
                kind.draw(pushed_out, &mut self.random);
            }
        } else {
            kind.draw(event, &mut self.random);
        }
    }

    /// The sample in order of time, and how many objects it stands for per kind; empties it.
    pub fn take(&mut self) -> (Vec<SampledEvent>, Vec<(EventKind, u64)>) {
        let mut events = Vec::new();
        let mut seen = Vec::new();
        for (&name, kind) in EventKind::ALL.iter().zip(&mut self.kinds) {
            let kind = std::mem::take(kind);
            if kind.seen > 0 {
                seen.push((name, kind.seen));
            }
            let weight = kind.others as f64 / kind.uniform.len().max(1) as f64;
            events.extend(kind.slowest);
            events.extend(
                kind.uniform
                    .into_iter()
                    .map(|event| SampledEvent { weight, ..event }),
            );
        }
        events.sort_by_key(|event| (event.start_ns, Reverse(event.duration_ns)));
        (events, seen)
    }
}

impl Kind {
    fn draw(&mut self, event: SampledEvent, random: &mut fastrand::Rng) {
        self.others += 1;
        if self.uniform.len() < HALF {
            self.uniform.push(event);
        } else if let Ok(place) = usize::try_from(random.u64(0..self.others))
            && let Some(kept) = self.uniform.get_mut(place)
        {
            *kept = event;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Dev;

    fn event(duration_ns: u64) -> SampledEvent {
        SampledEvent {
            kind: EventKind::Force,
            label: 1,
            dev: Dev::new(7, 0),
            via: Dev::NONE,
            pid: 1,
            tid: 1,
            comm: "x".into(),
            workload: true,
            start_ns: duration_ns,
            duration_ns,
            args: vec![],
            weight: 1.0,
        }
    }

    #[test]
    fn keeps_the_slowest_and_weights_add_up() {
        let mut sampler = Sampler::new(1);
        for duration in 0..10_000 {
            sampler.add(event(duration));
        }
        let (events, seen) = sampler.take();
        assert_eq!(seen, [(EventKind::Force, 10_000)]);
        assert_eq!(events.len(), 2 * HALF);
        let slowest = events.iter().filter(|event| event.weight == 1.0);
        assert!(
            slowest
                .map(|event| event.duration_ns)
                .eq(10_000 - HALF as u64..10_000)
        );
        let total: f64 = events.iter().map(|event| event.weight).sum();
        assert!((total - 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn few_objects_are_all_kept() {
        let mut sampler = Sampler::new(1);
        for duration in [5, 3, 9] {
            sampler.add(event(duration));
        }
        assert_eq!(sampler.take().0.len(), 3);
        assert!(sampler.take().0.is_empty());
    }
}
