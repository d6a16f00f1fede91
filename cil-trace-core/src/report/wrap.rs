//! Breaking lines of words; nothing else.

/// Lines of at most `width` characters; all but the first begin with `hang` spaces. The spaces
/// inside a line stay as they are. A word that is longer than a line is cut.
#[must_use]
pub fn wrap(text: &str, width: usize, hang: usize) -> Vec<String> {
    let width = width.max(2);
    // A margin that leaves no room for words is worse than none.
    let hang = if hang * 2 > width {
        2.min(width - 1)
    } else {
        hang
    };
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.trim_end().chars().collect();
    while rest.len() > width {
        let margin = rest.iter().take_while(|c| **c == ' ').count();
        let space = (margin + 1..=width).rev().find(|at| rest[*at] == ' ');
        let cut = space.unwrap_or(width);
        let tail = rest.split_off(cut);
        let line: String = rest.iter().collect();
        lines.push(line.trim_end().to_owned());
        rest = std::iter::repeat_n(' ', hang)
            .chain(tail.into_iter().skip_while(|c| *c == ' '))
            .collect();
    }
    lines.push(rest.into_iter().collect());
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;
    use proptest::prelude::*;

    #[test]
    fn words_stay_whole_and_hang() {
        assert_eq!(
            wrap("  63k  58 %  one two three", 20, 4),
            ["  63k  58 %  one two", "    three"]
        );
        assert_eq!(wrap("abcdefghij", 4, 1), ["abcd", " efg", " hij"]);
        assert_eq!(wrap("", 4, 1), [""]);
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_no_word_is_lost(
            text in "[a-z ]{0,200}", width in 2_usize..60, hang in 0_usize..70,
        ) {
            let lines = wrap(&text, width, hang);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
