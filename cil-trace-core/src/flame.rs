//! Stacks as folded text and as a flamegraph.
//!
//! Resolves no symbols: frames come with names, or as hexadecimal addresses where there was none.

mod subsystem;

use inferno::flamegraph::color::{BackgroundColor, PaletteMap};
use inferno::flamegraph::{Options, TextTruncateDirection, from_lines};
use std::collections::BTreeMap;
use std::fmt::Write;
use subsystem::{SUBSYSTEMS, colour, rgb};

/// From this share of unresolved frames on, percent, a picture misleads more than it tells.
pub const UNRESOLVED_WARNING: f64 = 20.0;

/// Stands for a stack that the kernel could not give.
const STACK_LOST: &str = "[stack lost]";

/// A stack and what it weighs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlameStack {
    /// Frames that are not functions, below the stack, outermost first.
    pub groups: Vec<String>,
    /// Function names, leaf first; empty if the stack was lost.
    pub frames: Vec<String>,
    /// What it weighs, in the unit of the graph.
    pub weight: u64,
}

impl FlameStack {
    /// Cache flushes requested of a device for a cause, with the stack that sent them.
    #[must_use]
    pub fn flush(device: &str, cause: &str, frames: Vec<String>, count: u64) -> Self {
        Self {
            groups: vec![device.to_owned(), cause.to_owned()],
            frames,
            weight: count,
        }
    }
}

/// What a graph shows, in the words that it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subject<'a> {
    /// The title.
    pub title: &'a str,
    /// Plural of what is weighed.
    pub unit: &'a str,
    /// What one of them is.
    pub one_is: &'a str,
    /// How many are missing.
    pub lost: u64,
    /// Whether it carries the script that zooms and searches.
    pub script: bool,
}

impl Subject<'_> {
    /// For a page that holds the graph, where a script has no place.
    #[must_use]
    pub const fn in_page(self) -> Self {
        Self {
            script: false,
            ..self
        }
    }

    /// The graph of cache flushes, of which `lost` are missing.
    #[must_use]
    pub const fn flushes(lost: u64) -> Self {
        Self {
            title: "Cache flushes by device, cause and stack",
            unit: "flushes",
            one_is: "a bio with PREFLUSH or FUA",
            lost,
            script: true,
        }
    }
}

/// A graph and the text it was made of.
#[derive(Clone, PartialEq, Debug)]
pub struct Flamegraph {
    /// An SVG document.
    pub svg: String,
    /// One line per stack: frames from the root on, joined by `;`, a space and the weight.
    pub folded: String,
    /// Share of frames without a name, by weight, percent.
    pub unresolved_pct: f64,
}

/// Why there is no graph.
#[derive(Debug, thiserror::Error)]
pub enum FlameError {
    /// The library refused the folded stacks.
    #[error("the flamegraph cannot be drawn; `cil-trace export --format folded` gives its stacks")]
    Draw(#[from] std::io::Error),
}

/// Draws a graph; without a stack that weighs anything, a picture that says so.
///
/// # Errors
/// [`FlameError::Draw`] if the library cannot draw.
pub fn flamegraph(stacks: &[FlameStack], subject: &Subject<'_>) -> Result<Flamegraph, FlameError> {
    let folded = folded(stacks);
    let unresolved_pct = unresolved(stacks);
    let svg = if folded.is_empty() {
        nothing(subject)
    } else {
        draw(stacks, &folded, unresolved_pct, subject)?
    };
    Ok(Flamegraph {
        svg,
        folded,
        unresolved_pct,
    })
}

/// Equal stacks are added up, so that the text is the same whatever the order of the input.
fn folded(stacks: &[FlameStack]) -> String {
    // The library adds all weights up in a u64.
    let most = u64::MAX / (stacks.len() as u64).max(1);
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| stack.weight > 0) {
        let sum = sums.entry(path(stack)).or_default();
        *sum += stack.weight.min(most);
    }
    let mut text = String::new();
    for (path, weight) in sums {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{path} {weight}");
    }
    text
}

fn path(stack: &FlameStack) -> String {
    let lost = stack.frames.is_empty().then_some(STACK_LOST);
    let names: Vec<_> = stack
        .groups
        .iter()
        .chain(stack.frames.iter().rev())
        .map(String::as_str)
        .chain(lost)
        .map(frame)
        .collect();
    names.join(";")
}

/// A name as one frame of a folded line. `;` would begin another frame, a line break another
/// stack, and a number after a space would be taken for a weight.
fn frame(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_whitespace() || c.is_control() => '_',
            // XML has no way to write these.
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            c => c,
        })
        .collect();
    if name.is_empty() {
        "[unnamed]".to_owned()
    } else {
        name
    }
}

/// Share of frames without a name, by weight, percent. A lost stack is one such frame.
fn unresolved(stacks: &[FlameStack]) -> f64 {
    let (mut all, mut without) = (0.0, 0.0);
    for stack in stacks {
        let nameless = stack.frames.iter().filter(|frame| is_nameless(frame));
        let lost = usize::from(stack.frames.is_empty());
        without += (nameless.count() + lost) as f64 * stack.weight as f64;
        all += (stack.frames.len() + lost) as f64 * stack.weight as f64;
    }
    if all > 0.0 {
        without * 100.0 / all
    } else {
        0.0
    }
}

fn is_nameless(frame: &str) -> bool {
    frame.is_empty() || frame.starts_with("0x") || frame.starts_with('[')
}

fn draw(
    stacks: &[FlameStack],
    folded: &str,
    unresolved_pct: f64,
    subject: &Subject<'_>,
) -> Result<String, FlameError> {
    let mut palette = palette(stacks);
    let mut options = Options::default();
    options.title = title(subject, unresolved_pct);
    options.subtitle = Some(subtitle(subject, unresolved_pct));
    subject.unit.clone_into(&mut options.count_name);
    "Function:".clone_into(&mut options.name_type);
    options.bgcolors = Some(BackgroundColor::Flat(rgb(0xf8f8f8)));
    options.text_truncate_direction = TextTruncateDirection::Right;
    // Two graphs of the same numbers are the same file.
    options.deterministic = true;
    options.no_javascript = !subject.script;
    options.palette_map = Some(&mut palette);
    let mut svg = Vec::new();
    from_lines(&mut options, folded.lines(), &mut svg)?;
    Ok(String::from_utf8_lossy(&svg).into_owned())
}

fn title(subject: &Subject<'_>, unresolved_pct: f64) -> String {
    if unresolved_pct > UNRESOLVED_WARNING {
        format!(
            "{} - WARNING: {unresolved_pct:.0} % of frames have no name (see kptr_restrict)",
            subject.title
        )
    } else {
        subject.title.to_owned()
    }
}

fn subtitle(subject: &Subject<'_>, unresolved_pct: f64) -> String {
    let lost = match subject.lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost"),
    };
    let legend: Vec<_> = SUBSYSTEMS
        .iter()
        .map(|subsystem| format!("{} {}", subsystem.colour_name, subsystem.name))
        .collect();
    format!(
        "width: {}, each {}; {lost}; {unresolved_pct:.0} % of frames without a name. {}",
        subject.unit,
        subject.one_is,
        legend.join(", ")
    )
}

fn palette(stacks: &[FlameStack]) -> PaletteMap {
    let mut palette = PaletteMap::default();
    let other = colour("");
    // The frame below all others has no name.
    palette.insert("", other);
    for stack in stacks {
        for name in &stack.frames {
            palette.insert(frame(name), colour(name));
        }
        for name in stack.groups.iter().map(String::as_str).chain([STACK_LOST]) {
            palette.insert(frame(name), other);
        }
    }
    palette
}

/// A picture that says that there is nothing to see.
fn nothing(subject: &Subject<'_>) -> String {
    let lost = match subject.lost {
        0 => "No stack was recorded".to_owned(),
        lost => format!("All stacks were lost ({lost})"),
    };
    let words = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<?xml version=\"1.0\" standalone=\"no\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"90\" \
         viewBox=\"0 0 800 90\" font-family=\"monospace\" text-anchor=\"middle\">\n\
         <rect width=\"800\" height=\"90\" fill=\"#f8f8f8\"/>\n\
         <text x=\"400\" y=\"32\" font-size=\"17\">{}</text>\n\
         <text x=\"400\" y=\"62\" font-size=\"12\">{lost}: there were no {}, or their probe is not \
         attached (see `cil-trace report probes`).</text>\n</svg>\n",
        words(subject.title),
        words(subject.unit),
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn stack(frames: &[&str], count: u64) -> FlameStack {
        let frames = frames.iter().map(|&frame| frame.to_owned()).collect();
        FlameStack::flush("sda", "log-force:fsync", frames, count)
    }

    #[test]
    fn stacks_are_folded_from_the_root_and_equal_ones_added() {
        let stacks = [
            stack(&["submit_bio", "xlog_sync"], 2),
            stack(&["submit_bio", "xlog_sync"], 3),
            stack(&[], 1),
            stack(&["vfs_fsync"], 0),
        ];
        assert_eq!(
            folded(&stacks),
            "sda;log-force:fsync;[stack_lost] 1\n\
             sda;log-force:fsync;xlog_sync;submit_bio 5\n"
        );
    }

    #[test]
    fn a_name_cannot_become_another_frame_stack_or_weight() {
        let graph = flamegraph(&[stack(&["a;b 7", "x\n12"], 5)], &Subject::flushes(0)).unwrap();
        assert_eq!(graph.folded, "sda;log-force:fsync;x_12;a:b_7 5\n");
        assert!(graph.svg.contains("a:b_7 (5 flushes, 100.00%)"));
    }

    #[test]
    fn markup_in_a_name_is_escaped() {
        let name = "<script>alert(1)</script>";
        let graph = flamegraph(&[stack(&[name], 1)], &Subject::flushes(0)).unwrap();
        assert!(graph.svg.contains("&lt;script&gt;alert(1)"));
        assert!(!graph.svg.contains(name));
    }

    #[test]
    fn title_and_subtitle_say_what_is_shown_and_what_is_not() {
        let named = flamegraph(&[stack(&["xlog_sync"], 1)], &Subject::flushes(7)).unwrap();
        assert!(
            named
                .svg
                .contains("each a bio with PREFLUSH or FUA; 7 lost; 0 % of frames")
        );
        assert!(named.svg.contains("red XFS log, orange XFS, blue block"));
        assert!(!named.svg.contains("WARNING"));

        let frames = ["0xffffffff81000000", "xlog_sync", "[unknown]", "vfs_fsync"];
        let nameless = flamegraph(&[stack(&frames, 1)], &Subject::flushes(0)).unwrap();
        assert!((nameless.unresolved_pct - 50.0).abs() < 1e-9);
        assert!(
            nameless
                .svg
                .contains("WARNING: 50 % of frames have no name")
        );
    }

    #[test]
    fn the_palette_reaches_the_picture() {
        let graph = flamegraph(&[stack(&["xlog_sync"], 1)], &Subject::flushes(0)).unwrap();
        assert!(graph.svg.contains("rgb(232,106,88)"));
    }

    #[test]
    fn the_same_numbers_give_the_same_picture() {
        let (a, b) = (stack(&["a", "b"], 3), stack(&["c", "b"], 4));
        let subject = Subject::flushes(0);
        assert_eq!(
            flamegraph(&[a.clone(), b.clone()], &subject).unwrap(),
            flamegraph(&[b, a], &subject).unwrap()
        );
    }

    #[test]
    fn no_stacks_give_a_picture_that_says_so() {
        let graph = flamegraph(&[], &Subject::flushes(0)).unwrap();
        assert!(graph.svg.contains("No stack was recorded"));
        assert!(graph.folded.is_empty());
        let lost = flamegraph(&[stack(&["a"], 0)], &Subject::flushes(9)).unwrap();
        assert!(lost.svg.contains("All stacks were lost (9)"));
    }

    #[test]
    fn absurd_weights_do_not_overflow() {
        let stacks = [
            stack(&["a"], u64::MAX),
            stack(&["b"], u64::MAX),
            stack(&["a"], 1),
        ];
        assert!(flamegraph(&stacks, &Subject::flushes(0)).is_ok());
    }

    proptest! {
        #[test]
        fn any_names_draw_as_many_stacks_as_there_are(
            stacks in proptest::collection::vec(
                (proptest::collection::vec("\\PC{0,12}|[; \n\t0-9#]{0,6}", 0..4), 1_u64..1_000_000),
                1..6,
            )
        ) {
            let stacks: Vec<_> = stacks
                .into_iter()
                .map(|(frames, count)| FlameStack::flush("d", "c", frames, count))
                .collect();
            let total: u64 = stacks.iter().map(|stack| stack.weight).sum();
            let graph = flamegraph(&stacks, &Subject::flushes(0)).unwrap();
            // inferno drops lines that it cannot parse, and writes what it has drawn.
            let drawn = format!("total_samples=\"{total}\"");
            prop_assert!(graph.svg.contains(&drawn));
        }
    }
}
