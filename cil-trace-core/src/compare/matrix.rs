//! LKP's matrix: `{"metric": [run 1, run 2, ..]}`, as `lkp` leaves it in `matrix.json`.
//!
//! A `stats.json`, with one number in place of a list, is a matrix of one run. What is no number is
//! a run without that metric.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The metric that is 1 for a run that was cut short; LKP leaves such runs out too.
const INCOMPLETE: &str = "last_state.is_incomplete_run";

/// A matrix as it was read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Matrix {
    /// By metric; runs that lack a value are not a number, at the end if a list is short.
    pub values: BTreeMap<String, Vec<f64>>,
    /// How many runs there are.
    pub runs: usize,
    /// Runs that were left out because LKP marked them as incomplete.
    pub incomplete: usize,
    /// Metrics with fewer values than there are runs, so that it is unknown whose are missing.
    pub short: usize,
}

impl Matrix {
    /// Reads a matrix. NaN and infinities, which are no JSON but what some programs write, are taken
    /// for missing.
    ///
    /// # Errors
    /// It is not JSON, or not an object.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let Columns(mut values) = match serde_json::from_str(text) {
            Ok(columns) => columns,
            Err(error) => serde_json::from_str(&without_nan(text)).map_err(|_| error)?,
        };
        let runs = values.values().map(Vec::len).max().unwrap_or(0);
        let short = values.values().filter(|values| values.len() < runs).count();
        for values in values.values_mut() {
            values.resize(runs, f64::NAN);
        }
        let mut matrix = Self {
            values,
            runs,
            incomplete: 0,
            short,
        };
        if let Some(marks) = matrix.values.remove(INCOMPLETE) {
            matrix.leave_out(&marks);
        }
        Ok(matrix)
    }

    fn leave_out(&mut self, marks: &[f64]) {
        for values in self.values.values_mut() {
            let kept = values.iter().zip(marks).filter(|(_, mark)| **mark != 1.0);
            *values = kept.map(|(value, _)| *value).collect();
        }
        self.incomplete = marks.iter().filter(|mark| **mark == 1.0).count();
        self.runs -= self.incomplete;
    }
}

/// Lists of numbers by name; lists of other things are not kept.
struct Columns(BTreeMap<String, Vec<f64>>);

impl<'de> Deserialize<'de> for Columns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Columns;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with a list of numbers per metric")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Columns, A::Error> {
                let mut columns = BTreeMap::new();
                while let Some((name, item)) = map.next_entry::<String, Item>()? {
                    let values = match item {
                        Item::Number(value) => vec![value],
                        Item::List(values) => values,
                    };
                    if values.iter().any(|value| value.is_finite()) {
                        columns.insert(name, values);
                    }
                }
                Ok(Columns(columns))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A number, or a list of them; what is neither is not a number.
enum Item {
    Number(f64),
    List(Vec<f64>),
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Item;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number or a list of numbers")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Item, E> {
                Ok(Item::Number(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Item, E> {
                Ok(Item::Number(value as f64))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Item, E> {
                Ok(Item::Number(value as f64))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Item, E> {
                Ok(Item::Number(f64::NAN))
            }

            fn visit_str<E>(self, _: &str) -> Result<Item, E> {
                Ok(Item::Number(f64::NAN))
            }

            fn visit_unit<E>(self) -> Result<Item, E> {
                Ok(Item::Number(f64::NAN))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Item, A::Error> {
                let mut values = Vec::with_capacity(16);
                while let Some(item) = list.next_element()? {
                    values.push(match item {
                        Item::Number(value) => value,
                        Item::List(_) => f64::NAN,
                    });
                }
                Ok(Item::List(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Item::Number(f64::NAN))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// The same text with `null` for `NaN` and `Infinity` outside of strings.
fn without_nan(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_string = rest.starts_with('"');
        let end = if is_string {
            end_of_string(rest)
        } else {
            rest.find('"').unwrap_or(rest.len())
        };
        let (part, tail) = rest.split_at(end);
        if is_string {
            clean.push_str(part);
        } else {
            let part = part
                .replace("-Infinity", "null")
                .replace("Infinity", "null");
            clean.push_str(&part.replace("NaN", "null"));
        }
        rest = tail;
    }
    clean
}

/// Behind the quote that closes the string which `text` begins with.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_numbers_and_gaps() {
        let matrix = Matrix::parse(
            r#"{"a": [1, 2.5, -3], "b": 7, "stats_source": ["x", "y", "z"], "c": [null, true, 4],
                "d": {"e": [1]}, "f": []}"#,
        )
        .unwrap();
        assert_eq!((matrix.runs, matrix.short), (3, 1));
        assert_eq!(matrix.values.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(matrix.values["a"], [1.0, 2.5, -3.0]);
        assert_eq!(matrix.values["b"][0], 7.0);
        assert!(matrix.values["b"][1].is_nan() && matrix.values["c"][1].is_nan());
    }

    #[test]
    fn what_python_and_ruby_write_for_nothing_is_nothing() {
        let text = r#"{"NaN \" Infinity": [1, NaN, -Infinity, Infinity, 2]}"#;
        let matrix = Matrix::parse(text).unwrap();
        let values = &matrix.values["NaN \" Infinity"];
        assert_eq!((values[0], values[4]), (1.0, 2.0));
        assert!(values[1..4].iter().all(|value| value.is_nan()));
    }

    #[test]
    fn incomplete_runs_are_left_out() {
        let text = r#"{"last_state.is_incomplete_run": [0, 1, 0], "a": [1, 2, 3], "b": [4, 5]}"#;
        let matrix = Matrix::parse(text).unwrap();
        assert_eq!((matrix.runs, matrix.incomplete), (2, 1));
        assert_eq!(matrix.values["a"], [1.0, 3.0]);
        assert!(matrix.values["b"][1].is_nan());
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        for text in ["", "[1]", "3", r#"{"a": [1}"#] {
            assert!(Matrix::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{}:,\"\\\\aN0-9.eE nul-]{0,60}") {
            if let Ok(matrix) = Matrix::parse(&text) {
                prop_assert!(matrix.values.values().all(|values| values.len() == matrix.runs));
            }
        }
    }
}
