//! Numbers and changes in words.

use crate::compare::change::Size;
use crate::report::table::Unit;
use crate::report::units;

/// `2.0 → 1.0`, and for totals by how much.
pub(super) fn change(unit: Unit, means: (f64, f64), per_work: bool) -> String {
    let arrow = arrow(unit, means, per_work);
    match Size::of("", means.0, means.1) {
        Size::Percent(percent) if !per_work && unit != Unit::Percent => {
            format!("{arrow} ({})", relative(percent))
        }
        _ => arrow,
    }
}

/// What is left of nearly everything must not look like nothing.
fn relative(percent: f64) -> String {
    if percent > -100.0 && percent < -99.5 {
        format!("{:+.1} %", percent.max(-99.9))
    } else {
        format!("{percent:+.0} %")
    }
}

pub(super) fn arrow(unit: Unit, (base, side): (f64, f64), per_work: bool) -> String {
    format!(
        "{} → {}",
        number(unit, base, per_work),
        number(unit, side, per_work)
    )
}

pub(super) fn number(unit: Unit, value: f64, per_work: bool) -> String {
    let whole = value.max(0.0).round() as u64;
    match unit {
        Unit::Ns => units::duration(whole),
        Unit::Bytes => units::bytes(whole),
        Unit::Percent => units::percent(value),
        Unit::Rate => units::rate(value),
        Unit::Count if per_work && value < 100.0 => format!("{value:.1}"),
        Unit::Count => units::short_count(whole),
        Unit::Ratio | Unit::Text | Unit::Mixed => units::float(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_is_not_all() {
        let words = |side| change(Unit::Count, (10_000.0, side), false);
        assert_eq!(words(4.0), "10k → 4 (-99.9 %)");
        assert_eq!(words(0.0), "10k → 0 (-100 %)");
        assert_eq!(words(100.0), "10k → 100 (-99 %)");
    }
}
