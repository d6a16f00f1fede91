//! Numbers as C's printf writes them.

/// `%.{digits}g` of a number whose exponent is out of the range for plain digits: `8.33e+08`.
pub(super) fn general(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// A p or q value: four decimals, or two digits below that.
pub(super) fn probability(p: f64) -> String {
    if p >= 0.0001 || p == 0.0 {
        format!("{p:.4}")
    } else {
        general(p, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_written_as_c_does() {
        for (value, digits, text) in [
            (833_000_000.0, 4, "8.33e+08"),
            (123_456_789.0, 4, "1.235e+08"),
            (-1e100, 4, "-1e+100"),
            (123_456.0, 2, "1.2e+05"),
            (9.999_9e9, 4, "1e+10"),
            (1.5e-7, 2, "1.5e-07"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }

    #[test]
    fn small_probabilities_keep_their_digits() {
        for (p, text) in [
            (1.0, "1.0000"),
            (0.007_936, "0.0079"),
            (1.08e-5, "1.1e-05"),
            (0.0, "0.0000"),
        ] {
            assert_eq!(probability(p), text);
        }
    }
}
