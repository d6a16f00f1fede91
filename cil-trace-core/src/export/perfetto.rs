//! The sampled events as a timeline for Perfetto (`protos/perfetto/trace` of its repository).
//!
//! A device has a group of tracks: its pushes, iclog writes, forces, flushes and fsyncs, those that
//! overlap on tracks beside each other, and exact counters by tick. A sample is a sample: the group
//! says how many of how many it shows.

use super::tables::label;
use crate::device::Dev;
use crate::model::Model;
use crate::series::Series;
use crate::tick::{SampledEvent, Tick};
use cil_trace_common::event::EventKind;
use cil_trace_common::metric::Metric;
use prost::Message;
use std::collections::BTreeMap;

/// The messages, with the numbers of their fields; those that are never written are left out.
mod messages {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub(super) packet: Vec<TracePacket>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TracePacket {
        #[prost(uint64, optional, tag = "8")]
        pub(super) timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "58")]
        pub(super) timestamp_clock_id: Option<u32>,
        #[prost(uint32, optional, tag = "10")]
        pub(super) trusted_packet_sequence_id: Option<u32>,
        #[prost(uint32, optional, tag = "13")]
        pub(super) sequence_flags: Option<u32>,
        #[prost(message, optional, tag = "6")]
        pub(super) clock_snapshot: Option<ClockSnapshot>,
        #[prost(message, optional, tag = "11")]
        pub(super) track_event: Option<TrackEvent>,
        #[prost(message, optional, tag = "60")]
        pub(super) track_descriptor: Option<TrackDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ClockSnapshot {
        #[prost(message, repeated, tag = "1")]
        pub(super) clocks: Vec<Clock>,
        #[prost(uint32, optional, tag = "2")]
        pub(super) primary_trace_clock: Option<u32>,
    }

    #[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
    pub(super) struct Clock {
        #[prost(uint32, optional, tag = "1")]
        pub(super) clock_id: Option<u32>,
        #[prost(uint64, optional, tag = "2")]
        pub(super) timestamp: Option<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TrackDescriptor {
        #[prost(uint64, optional, tag = "1")]
        pub(super) uuid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub(super) name: Option<String>,
        #[prost(uint64, optional, tag = "5")]
        pub(super) parent_uuid: Option<u64>,
        #[prost(message, optional, tag = "8")]
        pub(super) counter: Option<CounterDescriptor>,
        #[prost(string, optional, tag = "14")]
        pub(super) description: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct CounterDescriptor {
        #[prost(string, optional, tag = "6")]
        pub(super) unit_name: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TrackEvent {
        #[prost(message, repeated, tag = "4")]
        pub(super) debug_annotations: Vec<DebugAnnotation>,
        #[prost(uint32, optional, tag = "9")]
        pub(super) kind: Option<u32>,
        #[prost(uint64, optional, tag = "11")]
        pub(super) track_uuid: Option<u64>,
        #[prost(string, repeated, tag = "22")]
        pub(super) categories: Vec<String>,
        #[prost(string, optional, tag = "23")]
        pub(super) name: Option<String>,
        #[prost(double, optional, tag = "44")]
        pub(super) double_counter_value: Option<f64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct DebugAnnotation {
        #[prost(uint64, optional, tag = "3")]
        pub(super) uint_value: Option<u64>,
        #[prost(double, optional, tag = "5")]
        pub(super) double_value: Option<f64>,
        #[prost(string, optional, tag = "6")]
        pub(super) string_value: Option<String>,
        #[prost(string, optional, tag = "10")]
        pub(super) name: Option<String>,
    }
}
use messages::{
    Clock, ClockSnapshot, CounterDescriptor, DebugAnnotation, Trace, TracePacket, TrackDescriptor,
    TrackEvent,
};

/// `perfetto.protos.BuiltinClock`.
const MONOTONIC: u32 = 3;
/// `TracePacket.SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED`.
const FIRST: u32 = 1;
/// Every packet is of one sequence.
const SEQUENCE: u32 = 1;

/// Counters that a device's group shows, in numbers a second.
const COUNTERS: &[Metric] = &[
    Metric::Commits,
    Metric::Pushes,
    Metric::Forces,
    Metric::IclogWrites,
    Metric::FlushRequested,
];

/// The timeline.
#[must_use]
pub fn perfetto(model: &Model, ticks: &[Tick]) -> Vec<u8> {
    let mut out = Builder::default();
    out.clock(model);
    let mut events: BTreeMap<(Dev, EventKind), Vec<&SampledEvent>> = BTreeMap::new();
    for event in ticks.iter().flat_map(|tick| &tick.events) {
        let of_kind = events.entry((event.dev, event.kind)).or_default();
        of_kind.push(event);
    }
    let counted = ticks.iter().flat_map(|tick| &tick.counters);
    let counted = counted
        .filter(|(series, _)| COUNTERS.contains(&series.metric))
        .map(|(series, _)| series.dev);
    let mut devices: Vec<_> = events.keys().map(|(dev, _)| *dev).chain(counted).collect();
    devices.sort_unstable();
    devices.dedup();
    for dev in devices {
        let group = out.group(&model.name(dev), &sample(model));
        for &metric in COUNTERS {
            out.counter(group, metric, dev, ticks);
        }
        for ((_, kind), events) in events.range_mut((dev, EventKind::ALL[0])..) {
            let is_of_device = events.first().is_some_and(|event| event.dev == dev);
            if is_of_device {
                events.sort_by_key(|event| (event.start_ns, event.duration_ns));
                out.events(group, *kind, events);
            }
        }
    }
    out.trace.encode_to_vec()
}

/// How much of what happened the timeline shows.
fn sample(model: &Model) -> String {
    let seen: Vec<_> = model
        .events_seen()
        .map(|(kind, seen)| format!("{seen} {}", plural(kind)))
        .collect();
    format!(
        "A sample: {} events of {}; of each tick the slowest and a uniform choice of the rest, each \
         with the number that it stands for (weight). The counters are exact.",
        model.events_kept(),
        if seen.is_empty() {
            "none".to_owned()
        } else {
            seen.join(", ")
        },
    )
}

const fn plural(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Push => "pushes",
        EventKind::Iclog => "iclog writes",
        EventKind::Force => "forces",
        EventKind::Flush => "flushes",
        EventKind::Fsync => "fsyncs",
    }
}

#[derive(Default)]
struct Builder {
    trace: Trace,
    tracks: u64,
}

impl Builder {
    fn packet(&mut self, packet: TracePacket) {
        let first = self.trace.packet.is_empty();
        self.trace.packet.push(TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: first.then_some(FIRST),
            ..packet
        });
    }

    /// Times are those of CLOCK_MONOTONIC, as in the recording.
    fn clock(&mut self, model: &Model) {
        let start = model.window().0;
        self.packet(TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![Clock {
                    clock_id: Some(MONOTONIC),
                    timestamp: Some(start),
                }],
                primary_trace_clock: Some(MONOTONIC),
            }),
            ..TracePacket::default()
        });
    }

    fn track(&mut self, track: TrackDescriptor) -> u64 {
        self.tracks += 1;
        let uuid = self.tracks;
        self.packet(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(uuid),
                ..track
            }),
            ..TracePacket::default()
        });
        uuid
    }

    fn group(&mut self, device: &str, description: &str) -> u64 {
        self.track(TrackDescriptor {
            name: Some(format!("{device} (sampled events)")),
            description: Some(description.to_owned()),
            ..TrackDescriptor::default()
        })
    }

    fn event(&mut self, at_ns: u64, event: TrackEvent) {
        self.packet(TracePacket {
            timestamp: Some(at_ns),
            timestamp_clock_id: Some(MONOTONIC),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    /// A counter by tick; none if it never counted.
    fn counter(&mut self, group: u64, metric: Metric, dev: Dev, ticks: &[Tick]) {
        let is_it = |series: &Series| series.metric == metric && series.dev == dev;
        let mut rates = Vec::new();
        for tick in ticks {
            let counters = tick.counters.iter().filter(|(series, _)| is_it(series));
            let count = counters
                .map(|(_, count)| *count)
                .fold(0, u64::saturating_add);
            let seconds = tick.end_ns.saturating_sub(tick.start_ns) as f64 / 1e9;
            if seconds > 0.0 {
                rates.push((tick.start_ns, count as f64 / seconds));
            }
        }
        if rates.iter().all(|(_, rate)| *rate == 0.0) {
            return;
        }
        let end = ticks.last().map_or(0, |tick| tick.end_ns);
        rates.push((end, 0.0));
        let track = self.track(TrackDescriptor {
            name: Some(format!("{} per second (exact)", metric.name())),
            parent_uuid: Some(group),
            counter: Some(CounterDescriptor {
                unit_name: Some("1/s".to_owned()),
            }),
            ..TrackDescriptor::default()
        });
        for (at_ns, rate) in rates {
            self.event(
                at_ns,
                TrackEvent {
                    kind: Some(TrackEvent::COUNTER),
                    track_uuid: Some(track),
                    double_counter_value: Some(rate),
                    ..TrackEvent::default()
                },
            );
        }
    }

    /// Events of one kind in order of their beginning, on as many tracks as overlap.
    fn events(&mut self, group: u64, kind: EventKind, events: &[&SampledEvent]) {
        /// A track and when its last event ends.
        struct Lane {
            track: u64,
            end_ns: u64,
        }
        let mut lanes: Vec<Lane> = Vec::new();
        for event in events {
            let end_ns = event.start_ns.saturating_add(event.duration_ns);
            let free = lanes.iter_mut().find(|lane| lane.end_ns <= event.start_ns);
            let track = if let Some(lane) = free {
                lane.end_ns = end_ns;
                lane.track
            } else {
                let number = lanes.len() + 1;
                let track = self.track(TrackDescriptor {
                    // Tracks of one name would be drawn as one.
                    name: Some(format!("{} {number}", plural(kind))),
                    parent_uuid: Some(group),
                    ..TrackDescriptor::default()
                });
                lanes.push(Lane { track, end_ns });
                track
            };
            self.event(
                event.start_ns,
                TrackEvent {
                    kind: Some(TrackEvent::BEGIN),
                    track_uuid: Some(track),
                    name: Some(label(event).to_owned()),
                    categories: vec![kind.name().to_owned()],
                    debug_annotations: annotations(event),
                    ..TrackEvent::default()
                },
            );
            self.event(
                end_ns,
                TrackEvent {
                    kind: Some(TrackEvent::END),
                    track_uuid: Some(track),
                    ..TrackEvent::default()
                },
            );
        }
    }
}

impl TrackEvent {
    /// `TrackEvent.Type`.
    const BEGIN: u32 = 1;
    const END: u32 = 2;
    const COUNTER: u32 = 4;
}

fn annotations(event: &SampledEvent) -> Vec<DebugAnnotation> {
    let number = |name: &str, value: u64| DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    };
    let mut all = vec![
        number("pid", event.pid.into()),
        number("tid", event.tid.into()),
        DebugAnnotation {
            name: Some("comm".to_owned()),
            string_value: Some(event.comm.clone()),
            ..DebugAnnotation::default()
        },
        DebugAnnotation {
            name: Some("weight".to_owned()),
            double_value: Some(event.weight),
            ..DebugAnnotation::default()
        },
        number("workload", event.workload.into()),
    ];
    let args = event.kind.args().iter().zip(&event.args);
    all.extend(args.map(|(&name, &value)| number(name, value)));
    all
}
