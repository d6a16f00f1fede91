//! Colours and glyphs: few, readable on light and dark backgrounds, and never the only sign.

use ratatui::style::{Color, Modifier, Style};

/// How things look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Theme {
    /// Colours may be used.
    pub colour: bool,
    /// The terminal shows Unicode.
    pub unicode: bool,
}

impl Theme {
    /// From the environment: `NO_COLOR` (no-color.org), `TERM`, and the locale's character set.
    #[must_use]
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        Self {
            colour: set("NO_COLOR").is_none() && set("TERM").as_deref() != Some("dumb"),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    /// Titles, headings, and numbers that are looked for.
    #[must_use]
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The row or the tab that keys act on.
    #[must_use]
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What calls for attention; it also carries [`Theme::MARK`] or a word.
    #[must_use]
    pub fn alarm(self) -> Style {
        self.tinted(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A curve.
    #[must_use]
    pub fn curve(self) -> Style {
        self.tinted(Color::Cyan)
    }

    fn tinted(self, colour: Color) -> Style {
        match self.colour {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    /// Stands behind what calls for attention.
    pub const MARK: &str = "!";

    /// Levels of a curve, from nothing to the most.
    #[must_use]
    pub fn levels(self) -> &'static [char] {
        match self.unicode {
            true => &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            false => &[' ', '.', ':', '-', '=', '+', '*', '#', '@'],
        }
    }

    /// Stands where something was cut off.
    #[must_use]
    pub fn ellipsis(self) -> char {
        if self.unicode { '…' } else { '~' }
    }

    /// Points at the column that rows are sorted by.
    #[must_use]
    pub fn arrow(self, descending: bool) -> char {
        match (self.unicode, descending) {
            (true, true) => '▼',
            (true, false) => '▲',
            (false, true) => 'v',
            (false, false) => '^',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(variables: &[(&str, &str)]) -> Theme {
        Theme::of(|name| {
            let mut variables = variables.iter();
            let found = variables.find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_decides() {
        let default = theme(&[("TERM", "xterm"), ("LANG", "en_US.UTF-8")]);
        assert!(default.colour && default.unicode);
        let plain = theme(&[("NO_COLOR", "1"), ("LANG", "C.utf8"), ("LC_ALL", "C")]);
        assert!(!plain.colour && !plain.unicode);
        assert!(theme(&[("NO_COLOR", "")]).colour, "empty is not set");
        assert_eq!(plain.alarm().fg, None);
    }
}
