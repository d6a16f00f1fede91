//! A profile as a flamegraph.
//!
//! Resolves no symbols: frames come with names, or as hexadecimal addresses where there was none.

mod diff;
mod subsystem;
mod text;
mod tree;

pub use diff::{DiffError, Per, difference};
pub use text::folded_name;

use crate::profile::frames::{Frames, Layer, Numbered};
use crate::profile::{Profile, Weight};
use inferno::flamegraph::color::{BackgroundColor, PaletteMap};
use inferno::flamegraph::{Options, TextTruncateDirection, from_lines};
use subsystem::{colour, legend, rgb};
use tree::{Entry, Node};

/// From this share of unresolved frames on, percent, a picture misleads more than it tells.
pub const UNRESOLVED_WARNING: f64 = 20.0;

/// Frames narrower than this share of the picture are not drawn: half a pixel. Needles of deep
/// stacks would make it several screens high.
const NARROWEST: u64 = 2_400;

/// A graph, and how far it is to be trusted.
#[derive(Clone, PartialEq, Debug)]
pub struct Flamegraph {
    /// An SVG document.
    pub svg: String,
    /// Share of frames without a name, by weight, percent.
    pub unresolved_pct: f64,
    /// Why there is nothing to see, if there is nothing.
    pub empty: Option<String>,
}

/// Why there is no graph.
#[derive(Debug, thiserror::Error)]
pub enum FlameError {
    /// The library refused the stacks.
    #[error("the flamegraph cannot be drawn; `cil-trace export --format folded` gives its stacks")]
    Draw(#[from] std::io::Error),
}

/// Whether a picture carries the script that zooms and searches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Script {
    /// A picture of its own has it.
    With,
    /// In a page a script has no place.
    Without,
}

/// Draws a graph; without a stack that weighs anything, a picture that says so.
///
/// # Errors
/// [`FlameError::Draw`] if the library cannot draw.
pub fn flamegraph(profile: &Profile<'_>, script: Script) -> Result<Flamegraph, FlameError> {
    let unresolved_pct = profile.unresolved_pct();
    // The library adds all weights up in a u64.
    let most = u64::MAX / (profile.entries.len() as u64 + 2);
    let missing = profile.missing.min(most);
    if profile.total() == 0 && missing == 0 {
        let why = profile.why_empty();
        return Ok(Flamegraph {
            svg: nothing(profile.words.title, &why),
            unresolved_pct,
            empty: Some(why),
        });
    }
    let mut frames = Frames::default();
    let numbered = Numbered::new(profile, &mut frames);
    let entries: Vec<_> = numbered
        .paths()
        .map(|(path, weight)| Entry {
            path,
            run: 0,
            weight: weight.min(most),
        })
        .collect();
    let drawn: u64 = entries.iter().map(|entry| entry.weight).sum();
    let total = drawn + missing;
    let tree = tree::grow(entries, &frames, &[floor(total)]);
    let mut drawing = Drawing::new(&frames);
    drawing.lost(missing);
    drawing.add(&tree, drawn);
    let unit = Unit::of(profile.words.unit, profile.weight, total);
    let words = [
        title(profile.words.title, unresolved_pct),
        subtitle(profile, &unit, unresolved_pct),
    ];
    let svg = drawing.draw(words, &unit, script)?;
    Ok(Flamegraph {
        svg,
        unresolved_pct,
        empty: None,
    })
}

/// What a frame must weigh to be seen.
fn floor(total: u64) -> u64 {
    (total / NARROWEST).max(1)
}

/// In what numbers are shown: the library knows integers only.
struct Unit {
    name: String,
    /// How many of the weight are one.
    factor: f64,
}

impl Unit {
    fn of(counted: &str, weight: Weight, total: u64) -> Self {
        let (name, factor) = match weight {
            Weight::Count => (counted, 1.0),
            Weight::Bytes => ("bytes", 1.0),
            Weight::Time if total >= 10_000_000_000 => ("ms", 1e-6),
            Weight::Time => ("us", 1e-3),
        };
        Self {
            name: name.to_owned(),
            factor,
        }
    }
}

/// What the library is given: lines of folded text, and a colour for each name in them.
struct Drawing<'a> {
    frames: &'a Frames,
    lines: Vec<String>,
    palette: PaletteMap,
}

impl<'a> Drawing<'a> {
    fn new(frames: &'a Frames) -> Self {
        let mut palette = PaletteMap::default();
        // The frame below all others has no name.
        palette.insert("", colour(Layer::Group, ""));
        for (layer, name) in frames.iter() {
            palette.insert(text::drawn_name(layer, name), colour(layer, name));
        }
        Self {
            frames,
            lines: Vec::new(),
            palette,
        }
    }

    /// What has no stack.
    fn lost(&mut self, weight: u64) {
        if weight > 0 {
            let name = text::folded_name(text::STACK_LOST);
            self.palette.insert(name.clone(), colour(Layer::Group, ""));
            self.lines.push(format!("{name} {weight}"));
        }
    }

    /// The frames of a tree, of which what was left out is missing from `total`.
    fn add(&mut self, tree: &[Node], total: u64) {
        self.add_to(&mut String::new(), tree, total);
    }

    fn add_to(&mut self, path: &mut String, nodes: &[Node], total: u64) {
        let drawn: u64 = nodes.iter().map(|node| node.totals[0]).sum();
        let own = total.saturating_sub(drawn);
        if own > 0 && !path.is_empty() {
            self.lines.push(format!("{path} {own}"));
        }
        for node in nodes {
            let before = path.len();
            if before > 0 {
                path.push(';');
            }
            let (layer, name) = self.frames.get(node.frame);
            path.push_str(&text::drawn_name(layer, name));
            self.add_to(path, &node.children, node.totals[0]);
            path.truncate(before);
        }
        if own > 0 && path.is_empty() {
            self.palette
                .insert(text::NARROW, colour(Layer::Group, text::NARROW));
            self.lines.push(format!("{} {own}", text::NARROW));
        }
    }

    fn draw(
        self,
        [title, subtitle]: [String; 2],
        unit: &Unit,
        script: Script,
    ) -> Result<String, FlameError> {
        let Self {
            lines, mut palette, ..
        } = self;
        let mut options = Options::default();
        options.title = title;
        options.subtitle = Some(subtitle);
        unit.name.clone_into(&mut options.count_name);
        options.factor = unit.factor;
        "Function:".clone_into(&mut options.name_type);
        options.bgcolors = Some(BackgroundColor::Flat(rgb(0xf8f8f8)));
        options.text_truncate_direction = TextTruncateDirection::Right;
        // Two graphs of the same numbers are the same file.
        options.deterministic = true;
        // The lines as they are, last first: sorted by text, a frame would fall apart whose name
        // another one begins with.
        options.flame_chart = true;
        options.no_javascript = script == Script::Without;
        options.palette_map = Some(&mut palette);
        let mut svg = Vec::new();
        let last_first = lines.iter().rev().map(String::as_str);
        from_lines(&mut options, last_first, &mut svg)?;
        Ok(String::from_utf8_lossy(&svg).into_owned())
    }
}

fn title(title: &str, unresolved_pct: f64) -> String {
    if unresolved_pct > UNRESOLVED_WARNING {
        format!("{title} - WARNING: {unresolved_pct:.0} % of frames have no name")
    } else {
        title.to_owned()
    }
}

/// What one unit is, what is missing, and what the colours mean: on one line of the picture.
fn subtitle(profile: &Profile<'_>, unit: &Unit, unresolved_pct: f64) -> String {
    let words = profile.words;
    let what = match profile.weight {
        Weight::Count => words.they_are,
        Weight::Time => words.time_is,
        Weight::Bytes => words.bytes_are.unwrap_or_default(),
    };
    let hz = profile.hz.map(|hz| format!(", {hz} a second"));
    let lost = profile.lost() as f64 * unit.factor;
    format!(
        "width: {} ({what}{}); {lost:.0} lost, {unresolved_pct:.0} % unnamed. {}",
        unit.name,
        hz.unwrap_or_default(),
        legend()
    )
}

/// A picture that says that there is nothing to see.
fn nothing(title: &str, why: &str) -> String {
    let words = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<?xml version=\"1.0\" standalone=\"no\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"90\" \
         viewBox=\"0 0 1200 90\" font-family=\"monospace\" text-anchor=\"middle\">\n\
         <rect width=\"1200\" height=\"90\" fill=\"#f8f8f8\"/>\n\
         <text x=\"600\" y=\"32\" font-size=\"17\">{}</text>\n\
         <text x=\"600\" y=\"62\" font-size=\"12\">Nothing to draw: {}</text>\n</svg>\n",
        words(title),
        words(why),
    )
}

#[cfg(test)]
mod tests;
