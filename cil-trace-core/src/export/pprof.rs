//! Stacks as a pprof profile (`proto/profile.proto` of github.com/google/pprof), gzipped.

use super::ExportError;
use crate::model::Model;
use crate::model::stacks::Name;
use crate::profile::frames::{Layer, without_module};
use crate::profile::{Profile, Weight};
use cil_trace_common::stack::StackKind;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::Write;

/// The messages, with the numbers of their fields; those that are never written are left out.
mod messages {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub(super) sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub(super) sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub(super) mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub(super) location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub(super) function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub(super) string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub(super) time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub(super) duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub(super) period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub(super) period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub(super) comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub(super) default_sample_type: i64,
    }

    #[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
    pub(super) struct ValueType {
        #[prost(int64, tag = "1")]
        pub(super) kind: i64,
        #[prost(int64, tag = "2")]
        pub(super) unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub(super) location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub(super) value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub(super) label: Vec<Label>,
    }

    #[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
    pub(super) struct Label {
        #[prost(int64, tag = "1")]
        pub(super) key: i64,
        #[prost(int64, tag = "2")]
        pub(super) text: i64,
        #[prost(int64, tag = "3")]
        pub(super) number: i64,
    }

    #[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
    pub(super) struct Mapping {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(int64, tag = "5")]
        pub(super) filename: i64,
        #[prost(bool, tag = "7")]
        pub(super) has_functions: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Location {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(uint64, tag = "2")]
        pub(super) mapping_id: u64,
        #[prost(message, repeated, tag = "4")]
        pub(super) line: Vec<Line>,
    }

    #[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
    pub(super) struct Line {
        #[prost(uint64, tag = "1")]
        pub(super) function_id: u64,
    }

    #[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
    pub(super) struct Function {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(int64, tag = "2")]
        pub(super) name: i64,
        #[prost(int64, tag = "3")]
        pub(super) system_name: i64,
    }
}
use messages::{Function, Label, Line, Location, Mapping, Sample, ValueType};

/// The stacks of a kind with every weight that was measured; a viewer shows `shown` first.
///
/// # Errors
/// [`ExportError::Profile`] if `shown` was not, and [`ExportError::Compress`].
pub fn pprof(model: &Model, kind: StackKind, shown: Weight) -> Result<Vec<u8>, ExportError> {
    let profile = Profile::of(model, kind, shown)?;
    let profiles: Vec<_> = Weight::ALL
        .into_iter()
        .filter_map(|weight| Profile::of(model, kind, weight).ok())
        .collect();
    compress(&build(&profile, &profiles).encode_to_vec())
}

fn compress(bytes: &[u8]) -> Result<Vec<u8>, ExportError> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

fn build(profile: &Profile<'_>, profiles: &[Profile<'_>]) -> messages::Profile {
    let model = profile.model();
    let words = profile.words;
    let mut out = Builder::new();
    let mut value_type = |weight| {
        let [kind, unit] = match weight {
            Weight::Count => words.pprof_count,
            Weight::Time => [words.pprof_time, "nanoseconds"],
            Weight::Bytes => ["space", "bytes"],
        };
        ValueType {
            kind: out.text(kind),
            unit: out.text(unit),
        }
    };
    let sample_type: Vec<_> = profiles.iter().map(|p| value_type(p.weight)).collect();
    let default_sample_type = value_type(profile.weight).kind;
    let period_type = value_type(Weight::Time);
    let period = profile
        .hz
        .map_or(0, |hz| 1_000_000_000 / i64::from(hz.max(1)));

    let mut sample = Vec::new();
    let mut locations = HashMap::new();
    for (index, entry) in profile.entries.iter().enumerate() {
        let value = profiles.iter().map(|p| {
            let entry = p.entries.get(index);
            signed(entry.map_or(0, |entry| p.weight_of(entry)))
        });
        let mut label = Vec::new();
        let mut texts = Vec::new();
        if entry.dev != crate::device::Dev::NONE {
            texts.push(("device", profile.device(entry)));
        }
        if entry.label != Name::EMPTY {
            let label = profile.names().text(entry.label);
            texts.push((words.label_is, label.to_owned()));
        }
        if let Some(who) = entry.who {
            texts.push(("comm", profile.names().text(who.comm).to_owned()));
            let of = if who.workload { "workload" } else { "others" };
            texts.push(("of", of.to_owned()));
            label.push(Label {
                key: out.text("pid"),
                text: 0,
                number: i64::from(who.pid),
            });
        }
        label.extend(texts.iter().map(|(key, text)| Label {
            key: out.text(key),
            text: out.text(text),
            number: 0,
        }));
        let kernel = entry.kernel.iter().map(|&name| (Layer::Kernel, name));
        let user = entry.user.iter().map(|&name| (Layer::User, name));
        sample.push(Sample {
            value: value.collect(),
            location_id: kernel
                .chain(user)
                .map(|(layer, name)| {
                    let known = locations.entry((layer, name));
                    *known.or_insert_with(|| out.location(layer, profile.names().text(name)))
                })
                .collect(),
            label,
        });
    }
    if profiles.iter().any(|p| p.missing > 0) {
        let lost = profile.names().text(Name::STACK_LOST);
        sample.push(Sample {
            location_id: vec![out.location(Layer::Kernel, lost)],
            value: profiles.iter().map(|p| signed(p.missing)).collect(),
            label: Vec::new(),
        });
    }
    let title = out.text(words.title);
    let command = out.text(&model.header().command.join(" "));
    messages::Profile {
        sample_type,
        sample,
        mapping: vec![
            Mapping {
                id: 1,
                filename: out.text("[kernel.kallsyms]"),
                has_functions: true,
            },
            Mapping {
                id: 2,
                filename: out.text("[user code]"),
                has_functions: true,
            },
        ],
        time_nanos: started_ns(&model.header().started_at),
        duration_nanos: signed(profile.window_ns),
        period_type: (period > 0).then_some(period_type),
        period,
        comment: vec![title, command],
        default_sample_type,
        location: out.locations,
        function: out.functions,
        string_table: out.texts,
    }
}

/// Nanoseconds since 1970; 0 for what is no time.
fn started_ns(started_at: &str) -> i64 {
    let time: Option<jiff::Timestamp> = started_at.parse().ok();
    time.and_then(|time| time.as_nanosecond().try_into().ok())
        .unwrap_or(0)
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The tables that samples point into.
struct Builder {
    texts: Vec<String>,
    by_text: HashMap<String, i64>,
    by_function: HashMap<(Layer, String), u64>,
    locations: Vec<Location>,
    functions: Vec<Function>,
}

impl Builder {
    fn new() -> Self {
        let mut new = Self {
            texts: Vec::new(),
            by_text: HashMap::new(),
            by_function: HashMap::new(),
            locations: Vec::new(),
            functions: Vec::new(),
        };
        // The first text must be empty.
        new.text("");
        new
    }

    fn text(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.by_text.get(text) {
            return index;
        }
        let index = self.texts.len() as i64;
        self.texts.push(text.to_owned());
        self.by_text.insert(text.to_owned(), index);
        index
    }

    fn location(&mut self, layer: Layer, name: &str) -> u64 {
        let name = without_module(name);
        if let Some(&id) = self.by_function.get(&(layer, name.to_owned())) {
            return id;
        }
        let id = self.functions.len() as u64 + 1;
        let name_index = self.text(name);
        self.functions.push(Function {
            id,
            name: name_index,
            system_name: name_index,
        });
        self.locations.push(Location {
            id,
            mapping_id: if layer == Layer::User { 2 } else { 1 },
            line: vec![Line { function_id: id }],
        });
        self.by_function.insert((layer, name.to_owned()), id);
        id
    }
}
