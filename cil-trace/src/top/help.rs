//! The keys, as `?` and the documentation list them.

/// Every key with what it does; of a line without a key the text goes on.
const KEYS: &[(&str, &str)] = &[
    ("1 .. 8", "a tab; Tab and Shift-Tab go through them"),
    (
        "up down j k",
        "a row or a line; PgUp, PgDn a page, g and G the first and the last",
    ),
    (
        "Enter",
        "all that is known of a row: every column, histograms, stacks",
    ),
    (
        "< >",
        "sort by the column before or behind; r the other way round",
    ),
    (
        "/",
        "only rows that contain a text; Enter keeps it, Esc takes it away",
    ),
    (
        "w",
        "the stretch that is shown: 1 tick, 10 s, 2 min, since the start",
    ),
    ("d", "the next filesystem, then all of them"),
    ("p space", "hold the picture; go on"),
    (
        "left right",
        "a tick back (and hold), a tick on; [ and ] ten",
    ),
    ("Home End", "the oldest tick; the latest"),
    (
        "s",
        "save the ticks from the oldest to the one shown as a recording",
    ),
    (
        "f",
        "a flamegraph of the stretch: by tab of flushes, pushes or locks",
    ),
    ("?", "this help"),
    (
        "q Ctrl-C",
        "quit; Ctrl-Z stops, fg goes on; Ctrl-L draws anew",
    ),
];

const OF_LIVE: (&str, &str) = ("+ -", "a longer, a shorter interval");
const OF_REPLAY: (&str, &str) = ("+ -", "play faster, slower");

/// The keys, one line each.
#[must_use]
pub fn lines(replay: bool) -> Vec<String> {
    let pace = if replay { OF_REPLAY } else { OF_LIVE };
    let keys = KEYS.iter().chain([&pace]);
    let mut lines: Vec<_> = keys
        .map(|(key, text)| format!("{key:<12} {text}"))
        .collect();
    lines.extend(
        [
            "",
            "Every number is of the stretch that is shown, but for `since start`. Pushes and",
            "other single objects are a sample; counts and histograms are complete. What is",
            "not measured is \"-\", and the tab Probes says why. \"!\" calls for attention.",
        ]
        .map(str::to_owned),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_on_the_smallest_screen() {
        for replay in [false, true] {
            let lines = lines(replay);
            assert!(
                lines.iter().all(|line| line.chars().count() <= 80),
                "{lines:#?}"
            );
        }
    }

    #[test]
    fn the_documentation_lists_every_key() {
        const PAGE: &str = include_str!("../../../docs/top.md");
        for (key, _) in KEYS.iter().chain([&OF_LIVE]) {
            for key in key.split(' ').filter(|key| *key != "..") {
                assert!(PAGE.contains(&format!("`{key}`")), "{key}");
            }
        }
    }
}
