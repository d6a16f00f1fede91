//! LKP's matrix: `{"metric": [run 1, run 2, ..]}`, as `lkp` leaves it in `matrix.json`, or packed in
//! `matrix.json.gz`.
//!
//! A `stats.json`, with one number in place of a list, is a matrix of one run. What is no number is
//! a run without that metric; of failures, which are only mentioned where they happened, one
//! without that failure.

use super::names::is_failure;
use flate2::read::MultiGzDecoder;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};

/// What LKP calls a matrix; averages stand beside it, and directories of its runs.
pub const FILES: &[&str] = &["matrix.json", "matrix.json.gz"];

/// How a gzip file begins (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The metric that is 1 for a run that was cut short: LKP counts its failures and nothing else.
const INCOMPLETE: &str = "last_state.is_incomplete_run";

/// Not a metric: it names the file of each run.
const SOURCE: &str = "stats_source";

/// A matrix as it was read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Matrix {
    /// By metric a value per run; runs that lack one are not a number, at the end if a list is
    /// short.
    pub values: BTreeMap<String, Vec<f64>>,
    /// How many runs there are.
    pub runs: usize,
    /// Of each run, whether LKP marked it as incomplete; such a run has failures and nothing else.
    pub incomplete: Vec<bool>,
    /// Metrics with fewer values than there are runs, so that it is unknown whose are missing.
    pub short: usize,
    /// Values that are no numbers, such as NaN, null or a word, of metrics that have others.
    pub not_numbers: usize,
    /// Metrics that have no number at all.
    pub without_numbers: Vec<String>,
}

/// Why a file is no matrix.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// It is packed, and cannot be unpacked.
    #[error("it begins as a gzip file and cannot be unpacked")]
    Gzip(#[source] io::Error),
    /// It is no JSON, or not of that form.
    #[error("it must be JSON of the form {{\"metric\": [run 1, run 2, ..]}}")]
    Json(#[from] serde_json::Error),
}

impl Matrix {
    /// Reads a file, packed or not. NaN and infinities, which are no JSON but what some programs
    /// write, are taken for missing.
    ///
    /// # Errors
    /// [`MatrixError`]
    pub fn read(bytes: &[u8]) -> Result<Self, MatrixError> {
        if !bytes.starts_with(&GZIP) {
            return Self::parse(&String::from_utf8_lossy(bytes));
        }
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(bytes)
            .read_to_end(&mut unpacked)
            .map_err(MatrixError::Gzip)?;
        Self::parse(&String::from_utf8_lossy(&unpacked))
    }

    fn parse(text: &str) -> Result<Self, MatrixError> {
        let Columns {
            mut values,
            longest: runs,
            without_numbers,
        } = match serde_json::from_str(text) {
            Ok(columns) => columns,
            Err(error) => serde_json::from_str(&without_nan(text)).map_err(|_| error)?,
        };
        let marks = values.get(INCOMPLETE).map_or(&[][..], Vec::as_slice);
        let incomplete: Vec<bool> = (0..runs).map(|run| marks.get(run) == Some(&1.0)).collect();
        let (mut short, mut not_numbers) = (0, 0);
        for (name, values) in &mut values {
            if is_failure(name) {
                values.resize(runs, 0.0);
                for value in values.iter_mut().filter(|value| !value.is_finite()) {
                    *value = 0.0;
                }
                continue;
            }
            short += usize::from(values.len() < runs);
            not_numbers += values.iter().filter(|value| !value.is_finite()).count();
            values.resize(runs, f64::NAN);
            let cut = values.iter_mut().zip(&incomplete);
            for (value, _) in cut.filter(|(_, incomplete)| **incomplete) {
                *value = f64::NAN;
            }
        }
        values.retain(|_, values| values.iter().any(|value| value.is_finite()));
        Ok(Self {
            values,
            runs,
            incomplete,
            short,
            not_numbers,
            without_numbers,
        })
    }
}

/// Lists of numbers by name; lists of other things are not kept.
struct Columns {
    values: BTreeMap<String, Vec<f64>>,
    /// Length of the longest list, also of those.
    longest: usize,
    /// Names of those, but for [`SOURCE`].
    without_numbers: Vec<String>,
}

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
                let mut longest = 0;
                let mut without_numbers = Vec::new();
                while let Some((name, item)) = map.next_entry::<String, Item>()? {
                    let values = match item {
                        Item::Number(value) => vec![value],
                        Item::List(values) => values,
                    };
                    longest = longest.max(values.len());
                    if values.iter().any(|value| value.is_finite()) {
                        columns.insert(name, values);
                    } else if name != SOURCE {
                        without_numbers.push(name);
                    }
                }
                Ok(Columns {
                    values: columns,
                    longest,
                    without_numbers,
                })
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
    use flate2::Compression;
    use flate2::read::GzEncoder;
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
        assert_eq!(matrix.without_numbers, ["d", "f"]);
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
    fn incomplete_runs_have_failures_only() {
        let text = r#"{"last_state.is_incomplete_run": [0, 1, 0], "a": [1, 2, 3], "b": [4, 5],
                       "c": [null, 7], "dmesg.oops": [0, 1], "stats_source": ["x", "y", "z"]}"#;
        let matrix = Matrix::parse(text).unwrap();
        assert_eq!(matrix.incomplete, [false, true, false]);
        let a = &matrix.values["a"];
        assert!(a[0] == 1.0 && a[1].is_nan() && a[2] == 3.0);
        assert!(matrix.values["b"][2].is_nan());
        assert!(!matrix.values.contains_key("c"));
        assert_eq!(matrix.values["dmesg.oops"], [0.0, 1.0, 0.0]);
        assert_eq!(matrix.short, 2, "of failures none is missing");
    }

    #[test]
    fn a_packed_matrix_is_read_and_a_broken_one_is_refused() {
        let text = r#"{"a": [1, 2.5]}"#;
        let mut packed = Vec::new();
        GzEncoder::new(text.as_bytes(), Compression::default())
            .read_to_end(&mut packed)
            .unwrap();
        let read = Matrix::read(&packed).unwrap();
        assert_eq!(read, Matrix::read(text.as_bytes()).unwrap());
        let half = &packed[..packed.len() / 2];
        assert!(matches!(Matrix::read(half), Err(MatrixError::Gzip(_))));
        assert!(matches!(
            Matrix::read(b"\xff\xfe"),
            Err(MatrixError::Json(_))
        ));
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
