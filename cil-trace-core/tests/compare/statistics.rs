//! Every result of the statistics against scipy's (`witness.py`), and the exact tests also against
//! an enumeration of all that chance could have done.

use cil_trace_core::compare::statistics::{
    Estimate, PValue, Scale, benjamini_hochberg, least_p, mann_whitney, permutation,
    population_deviation, runs_to_detect, sample_deviation, sign_flip,
};
use proptest::prelude::*;
use serde_json::Value;

fn witness() -> Value {
    serde_json::from_str(include_str!("witness.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let values = value.as_array().unwrap().iter();
    values.map(|value| value.as_f64().unwrap()).collect()
}

/// Equal to nine digits, or both unknown.
#[track_caller]
fn same(ours: f64, theirs: &Value, what: &str, case: &Value) {
    match theirs.as_f64() {
        Some(theirs) => assert!(
            (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-6),
            "{what}: {ours}, scipy {theirs}\n{case}"
        ),
        None => assert!(!ours.is_finite(), "{what}: {ours}, scipy nothing\n{case}"),
    }
}

struct Case {
    json: Value,
    base: Vec<f64>,
    side: Vec<f64>,
    pairs: Vec<f64>,
}

/// On the scale that the values allow, which must be scipy's too.
fn cases() -> Vec<Case> {
    let witness = witness();
    let cases: Vec<_> = witness["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|json| {
            let (base, side) = (numbers(&json["base"]), numbers(&json["side"]));
            let scale = Scale::of(&base, &side);
            assert_eq!(scale == Scale::Log, json["log"].as_bool().unwrap());
            let (base, side) = (scale.apply(&base), scale.apply(&side));
            let pairs = base.iter().zip(&side).map(|(a, b)| b - a).collect();
            let json = json.clone();
            Case {
                json,
                base,
                side,
                pairs,
            }
        })
        .collect();
    assert_eq!(cases.len(), 200);
    cases
}

#[test]
fn intervals_are_scipys() {
    for Case {
        json,
        base,
        side,
        pairs,
    } in cases()
    {
        let welch = Estimate::welch(&base, &side).unwrap();
        let paired = Estimate::paired(&pairs).unwrap();
        same(welch.difference, &json["difference"], "difference", &json);
        if welch.error == 0.0 {
            // scipy gives no interval; ours is the difference itself.
            assert_eq!(welch.interval(0.95), (welch.difference, welch.difference));
            continue;
        }
        same(welch.freedom, &json["freedom"], "degrees of freedom", &json);
        same(welch.p(), &json["welch_p"], "Welch", &json);
        for level in ["90", "95"] {
            let (low, high) = welch.interval(level.parse::<f64>().unwrap() / 100.0);
            same(low, &json["interval"][level][0], "lower end", &json);
            same(high, &json["interval"][level][1], "upper end", &json);
        }
        if paired.error > 0.0 {
            let (low, high) = paired.interval(0.95);
            same(low, &json["paired_interval"][0], "paired, lower end", &json);
            same(
                high,
                &json["paired_interval"][1],
                "paired, upper end",
                &json,
            );
            same(paired.p(), &json["paired_p"], "paired p", &json);
        }
    }
}

#[test]
fn deviations_are_numpys() {
    for Case { json, .. } in cases() {
        let base = numbers(&json["base"]);
        let population = population_deviation(&base);
        same(population, &json["population_deviation"], "n", &json);
        let sample = sample_deviation(&base);
        same(sample, &json["sample_deviation"], "n - 1", &json);
    }
}

#[test]
fn p_values_are_scipys() {
    for Case {
        json,
        base,
        side,
        pairs,
    } in cases()
    {
        let exact = |test: Option<PValue>| test.filter(|test| test.exact).unwrap().p;
        let p = exact(permutation(&base, &side));
        same(p, &json["permutation_p"], "permutation", &json);
        // Ranks do not depend on the scale.
        let p = exact(mann_whitney(&base, &side));
        same(p, &json["mann_whitney_p"], "Mann-Whitney", &json);
        let p = exact(sign_flip(&pairs));
        same(p, &json["sign_flip_p"], "sign flip", &json);
    }
}

#[test]
fn q_values_are_scipys() {
    let witness = witness();
    let p: Vec<f64> = cases()
        .iter()
        .map(|case| case.json["permutation_p"].as_f64().unwrap())
        .collect();
    let groups = witness["q"].as_array().unwrap();
    for (p, q) in p.chunks(p.len() / groups.len()).zip(groups) {
        for (ours, theirs) in benjamini_hochberg(p).iter().zip(q.as_array().unwrap()) {
            same(*ours, theirs, "q", q);
        }
    }
    assert!(benjamini_hochberg(&[]).is_empty());
}

#[test]
fn many_runs_are_approximated_as_scipy_does() {
    for json in witness()["large"].as_array().unwrap() {
        let (base, side) = (numbers(&json["base"]), numbers(&json["side"]));
        let t = permutation(&base, &side).unwrap();
        let ranks = mann_whitney(&base, &side).unwrap();
        assert!(!t.exact && !ranks.exact);
        same(t.p, &json["student_p"], "Student", json);
        same(ranks.p, &json["mann_whitney_p"], "Mann-Whitney", json);
    }
}

#[test]
fn the_approximation_continues_the_exact_test() {
    // 16 and 16 are counted, 17 and 16 are not.
    let value = |i: usize| ((i * 7919) % 101) as f64;
    let base: Vec<f64> = (0..17).map(value).collect();
    let side: Vec<f64> = (0..16).map(|i| value(i + 40) + 20.0).collect();
    let counted = permutation(&base[1..], &side).unwrap();
    let approximate = permutation(&base, &side).unwrap();
    assert!(counted.exact && !approximate.exact);
    let ratio = approximate.p / counted.p;
    assert!((0.5..2.0).contains(&ratio), "{counted:?} {approximate:?}");
}

#[test]
fn needed_runs_are_as_scipys_quantiles_say() {
    for row in witness()["power"].as_array().unwrap() {
        let row = numbers(row);
        assert_eq!(runs_to_detect(row[0], row[1]), Some(row[2] as usize));
    }
    assert_eq!(runs_to_detect(0.03, 10.0), None);
    assert_eq!(runs_to_detect(0.03, 0.0), Some(4));
}

#[test]
fn few_runs_cannot_reach_the_level() {
    for (n, p) in [(3, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0)] {
        assert_eq!(least_p(n, n), p);
        let base: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let side: Vec<f64> = (0..n).map(|i| 100.0 + i as f64).collect();
        assert_eq!(permutation(&base, &side).unwrap().p, p);
        assert_eq!(mann_whitney(&base, &side).unwrap().p, p);
    }
}

/// Two-sided p by counting every choice of `k` of the values: the sum of the last `k` is what was
/// seen.
fn enumerated(values: &[f64], k: usize) -> f64 {
    let sum_of = |chosen: u32| -> f64 {
        (0..values.len())
            .filter(|i| chosen >> i & 1 == 1)
            .map(|i| values[i])
            .sum()
    };
    let seen: f64 = values[values.len() - k..].iter().sum();
    let tie = 1e-9;
    let sums: Vec<f64> = (0..1_u32 << values.len())
        .filter(|chosen| chosen.count_ones() as usize == k)
        .map(sum_of)
        .collect();
    let share = |holds: &dyn Fn(f64) -> bool| {
        sums.iter().filter(|sum| holds(**sum)).count() as f64 / sums.len() as f64
    };
    let tails = share(&|sum| sum >= seen - tie).min(share(&|sum| sum <= seen + tie));
    (2.0 * tails).min(1.0)
}

/// Two-sided p by trying every choice of signs.
fn every_sign(differences: &[f64]) -> f64 {
    let seen: f64 = differences.iter().sum();
    let n = differences.len();
    let extreme = (0..1_u32 << n)
        .filter(|signs| {
            let signed = |i: usize| {
                let value = differences[i];
                if signs >> i & 1 == 1 { -value } else { value }
            };
            (0..n).map(signed).sum::<f64>().abs() >= seen.abs() - 1e-9
        })
        .count();
    extreme as f64 / f64::from(1_u32 << n)
}

#[test]
fn large_samples_are_their_enumeration_too() {
    // Eleven values have more subsets of a size than are counted by bucket.
    let value = |i: usize| ((i * 7919) % 1009) as f64;
    let pooled: Vec<f64> = (0..21)
        .map(|i| value(i) + if i < 11 { 0.0 } else { 150.0 })
        .collect();
    let p = permutation(&pooled[..11], &pooled[11..]).unwrap().p;
    let expected = enumerated(&pooled, 10);
    assert!((p - expected).abs() < 1e-12, "{p} {expected}");
}

/// Few distinct values, so that ties are the rule.
fn runs(most: usize) -> impl Strategy<Value = Vec<f64>> {
    let tied = proptest::collection::vec((0..6_i32).prop_map(f64::from), 1..=most);
    let plain = proptest::collection::vec(-5.0..5.0_f64, 1..=most);
    prop_oneof![tied, plain]
}

proptest! {
    #[test]
    fn exact_tests_are_their_enumeration(base in runs(7), side in runs(7)) {
        let pooled: Vec<f64> = base.iter().chain(&side).copied().collect();
        let p = permutation(&base, &side).unwrap().p;
        prop_assert!((p - enumerated(&pooled, side.len())).abs() < 1e-12);
        let ranks: Vec<f64> = pooled
            .iter()
            .map(|value| {
                let below = pooled.iter().filter(|other| *other < value).count();
                let equal = pooled.iter().filter(|other| *other == value).count();
                below as f64 + (equal as f64 + 1.0) / 2.0
            })
            .collect();
        let p = mann_whitney(&base, &side).unwrap().p;
        prop_assert!((p - enumerated(&ranks, side.len())).abs() < 1e-12);
    }

    #[test]
    fn flipped_signs_are_their_enumeration(differences in runs(12)) {
        let p = sign_flip(&differences).unwrap().p;
        prop_assert!((p - every_sign(&differences)).abs() < 1e-12);
    }

    #[test]
    fn sides_are_alike_to_the_tests(base in runs(12), side in runs(12)) {
        let (there, back) = (permutation(&base, &side).unwrap(), permutation(&side, &base).unwrap());
        prop_assert!((there.p - back.p).abs() < 1e-9 && there.p > 0.0 && there.p <= 1.0);
        let (there, back) = (mann_whitney(&base, &side).unwrap(), mann_whitney(&side, &base).unwrap());
        prop_assert!((there.p - back.p).abs() < 1e-9 && there.p > 0.0 && there.p <= 1.0);
    }
}
