//! Stacks as speedscope's own file format, version 0.0.1 (speedscope's `file-format-spec.ts`).

use super::ExportError;
use crate::model::stacks::Name;
use crate::profile::frames::{Frames, Layer, Numbered};
use crate::profile::{Profile, Weight};
use serde::Serialize;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'a str,
    name: &'a str,
    exporter: &'a str,
    shared: Shared<'a>,
    profiles: [Sampled<'a>; 1],
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

#[derive(Serialize)]
struct Sampled<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    name: String,
    unit: &'a str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// The stacks of a profile, one sample for each.
///
/// # Errors
/// [`ExportError::Json`].
pub fn speedscope(profile: &Profile<'_>) -> Result<String, ExportError> {
    let mut frames = Frames::default();
    let numbered = Numbered::new(profile, &mut frames);
    let lost = frames.id(Layer::Group, profile.names().text(Name::STACK_LOST));
    let (mut samples, mut weights): (Vec<_>, Vec<_>) = numbered
        .paths()
        .map(|(path, weight)| (path.to_vec(), weight))
        .unzip();
    if profile.missing > 0 {
        samples.push(vec![lost]);
        weights.push(profile.missing);
    }
    let end = weights.iter().copied().fold(0, u64::saturating_add);
    let file = File {
        schema: SCHEMA,
        name: profile.words.title,
        exporter: &profile.model().header().tool,
        shared: Shared {
            frames: frames
                .iter()
                .map(|(layer, name)| Frame {
                    name,
                    file: match layer {
                        Layer::Kernel => Some("[kernel]"),
                        Layer::Group | Layer::User => None,
                    },
                })
                .collect(),
        },
        profiles: [Sampled {
            kind: "sampled",
            name: format!("{} by {}", profile.words.title, profile.weight.name()),
            unit: match profile.weight {
                Weight::Count => "none",
                Weight::Time => "nanoseconds",
                Weight::Bytes => "bytes",
            },
            start: 0,
            end,
            samples,
            weights,
        }],
    };
    Ok(serde_json::to_string(&file)? + "\n")
}
