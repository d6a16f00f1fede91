//! Names as the formats of stacks want them.

use crate::profile::frames::Layer;

/// Stands for a stack that is not known.
pub(super) const STACK_LOST: &str = "[stack lost]";
/// Stands for what is too narrow to be drawn, where it stands on no frame.
pub(super) const NARROW: &str = "[too narrow]";

/// A name as one frame of a folded line: `;` would begin another frame, a line break another stack,
/// and a number after a space could be taken for a weight.
#[must_use]
pub fn folded_name(name: &str) -> String {
    let mut text: String = name
        .trim()
        .chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_whitespace() => ' ',
            c if c.is_control() => '_',
            // XML has no way to write these.
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            c => c,
        })
        .collect();
    if let Some((_, last)) = text.rsplit_once(' ')
        && last
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        let space = text.len() - last.len() - 1;
        text.replace_range(space..=space, "_");
    }
    // What would be a comment.
    if text.starts_with("# ") {
        text.replace_range(1..2, "_");
    }
    if text.is_empty() {
        "[unnamed]".to_owned()
    } else {
        text
    }
}

/// The same for the library that draws, which colours by name and does not show the marks by which
/// stackcollapse-perf tells kernel functions.
pub(super) fn drawn_name(layer: Layer, name: &str) -> String {
    let name = folded_name(name);
    match layer {
        Layer::Kernel => name + "_[k]",
        Layer::Group | Layer::User => name,
    }
}
