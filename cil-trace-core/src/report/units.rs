//! Numbers as people read them: durations, sizes, counts, shares and rates.
//!
//! Nothing here knows what is measured. Time never gets a binary or metric suffix that could be
//! taken for another unit: `1K` has been read as 1 ms.

const TIME: &[(f64, &str)] = &[(1.0, " ns"), (1e3, " us"), (1e6, " ms"), (1e9, " s")];
const SIZE: &[(f64, &str)] = &[
    (1.0, " B"),
    (1024.0, " KiB"),
    (1_048_576.0, " MiB"),
    (1_073_741_824.0, " GiB"),
    (1_099_511_627_776.0, " TiB"),
];
const COUNT: &[(f64, &str)] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];

/// Above this a separated count is longer than it is worth.
const LONGEST_COUNT: u128 = 10_000_000_000;

/// A duration with three significant digits: `87 ns`, `1.20 ms`, `15.0 s`.
#[must_use]
pub fn duration(ns: u64) -> String {
    scaled(ns as f64, TIME)
}

/// A size with three significant digits: `620 B`, `64 KiB`, `1.5 MiB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    without_zeros(scaled(bytes as f64, SIZE))
}

/// A count for a table: `150,342`; from ten thousand million on `12.3G`.
#[must_use]
pub fn count(count: i128) -> String {
    let magnitude = count.unsigned_abs();
    let sign = if count < 0 { "-" } else { "" };
    if magnitude >= LONGEST_COUNT {
        return format!("{sign}{}", scaled(magnitude as f64, COUNT));
    }
    let digits = magnitude.to_string();
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count for a sentence: `1,200`, `150k`, `1.2M`.
#[must_use]
pub fn short_count(number: u64) -> String {
    if number < 10_000 {
        count(number.into())
    } else {
        without_zeros(scaled(number as f64, COUNT))
    }
}

/// A percentage: `0 %`, `<0.1 %`, `2.4 %`, `58 %`, `99.9 %`. Only a whole is `100 %`, only
/// nothing is `0 %`.
#[must_use]
pub fn percent(percent: f64) -> String {
    let number = match percent {
        p if !p.is_finite() => return "-".to_owned(),
        p if p > 0.0 && p < 0.1 => "<0.1".to_owned(),
        p if (0.0..9.95).contains(&p) => format!("{p:.1}"),
        p if (9.95..99.0).contains(&p) => format!("{p:.0}"),
        p if p > 99.0 && p < 100.0 => format!("{:.1}", (p * 10.0).floor() / 10.0),
        p => float(p),
    };
    format!("{} %", without_zeros(number))
}

/// A ratio or another number without a unit, with three significant digits.
#[must_use]
pub fn float(number: f64) -> String {
    let magnitude = number.abs();
    match magnitude {
        m if !m.is_finite() => "-".to_owned(),
        m if m > 0.0 && m < 0.001 => format!("{number:.1e}"),
        m if m > 0.0 && m < 0.1 => without_zeros(format!("{number:.4}")),
        m if m < 999.5 => without_zeros(three_digits(number)),
        m if m < LONGEST_COUNT as f64 => count(number.round() as i128),
        _ => format!("{number:.2e}"),
    }
}

/// A rate per second.
#[must_use]
pub fn rate(per_s: f64) -> String {
    format!("{}/s", float(per_s))
}

/// `part` as a percentage of `whole`; `None` of nothing.
#[must_use]
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// `1 metric`, `3 metrics`.
#[must_use]
pub fn counted(number: usize, one: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {one}{ending}")
}

/// The first few names, safe to print, and how many more there are.
#[must_use]
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const MOST: usize = 5;
    let first = names.iter().take(MOST);
    let first: Vec<_> = first.map(|name| printable(name.as_ref())).collect();
    match names.len().saturating_sub(MOST) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Text that cannot move a terminal's cursor or break a table: control characters become `?`.
/// Process names and file names are chosen by whoever is traced.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// The largest step that leaves at least 1 after rounding, so that 999,999 ns is `1.00 ms`.
fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    let mut text = String::new();
    for (index, (step, unit)) in steps.iter().enumerate() {
        let scaled = value / step;
        // The first unit is whole: there is no half nanosecond.
        let digits = if index == 0 {
            format!("{scaled:.0}")
        } else {
            three_digits(scaled)
        };
        text = format!("{digits}{unit}");
        let rounded = digits.parse().unwrap_or(scaled);
        match steps.get(index + 1) {
            Some((next, _)) if rounded * step >= *next => {}
            _ => break,
        }
    }
    text
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// `87.0k` is `87k`, `1.20 MiB` is `1.2 MiB`.
fn without_zeros(text: String) -> String {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.contains('.') {
        return text;
    }
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_decimal_units_and_step_up_after_rounding() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (9_994, "9.99 us"),
            (9_996, "10.0 us"),
            (999_499, "999 us"),
            (999_999, "1.00 ms"),
            (1_200_000_000, "1.20 s"),
            (3_600_000_000_000, "3600 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn sizes_use_binary_units() {
        for (size, text) in [
            (620, "620 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (65_536, "64 KiB"),
            (1_048_575, "1 MiB"),
            (1_572_864, "1.5 MiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }

    #[test]
    fn counts_are_separated_or_shortened() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(-1_234_567), "-1,234,567");
        assert_eq!(count(i128::from(u64::MAX)), "18446744T");
        assert_eq!(short_count(1_200), "1,200");
        assert_eq!(short_count(150_000), "150k");
        assert_eq!(short_count(1_234_000), "1.23M");
    }

    #[test]
    fn only_a_whole_is_a_hundred_percent_and_only_nothing_is_zero() {
        for (value, text) in [
            (0.0, "0 %"),
            (0.04, "<0.1 %"),
            (2.0, "2 %"),
            (2.44, "2.4 %"),
            (0.05, "<0.1 %"),
            (-3.0, "-3 %"),
            (1e300, "1e300 %"),
            (58.3, "58 %"),
            (99.97, "99.9 %"),
            (100.0, "100 %"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(percent(value), text);
        }
    }

    #[test]
    fn small_and_large_numbers_keep_their_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_42, "4.2e-4"),
            (0.0011, "0.0011"),
            (2.4, "2.4"),
            (312.417, "312"),
            (50_123.7, "50,124"),
            (1e12, "1.00e12"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn shares_of_nothing_are_unknown() {
        assert_eq!(share(1, 0), None);
        assert_eq!(share(1, 4), Some(25.0));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a?[2Jb?c");
    }
}
