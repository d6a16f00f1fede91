//! A section of a report as data: columns with name and unit, rows of typed cells, notes.
//!
//! A table knows nothing about terminals or markup, and nothing about XFS.

use super::schema::Hist;
use super::units;

/// What the numbers of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Words.
    Text,
    /// Things counted.
    Count,
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Percent.
    Percent,
    /// A number without unit.
    Ratio,
    /// Things per second.
    Rate,
    /// Each row has its own.
    Mixed,
}

impl Unit {
    /// The word behind a name in machine-readable output, as in `latency_p99_ns`.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Text | Self::Count | Self::Ratio | Self::Mixed => "",
            Self::Ns => "ns",
            Self::Bytes => "bytes",
            Self::Percent => "pct",
            Self::Rate => "per_s",
        }
    }

    /// A whole number in this unit.
    #[must_use]
    pub fn cell(self, number: u64) -> Cell {
        match self {
            Self::Ns => Cell::Ns(number),
            Self::Bytes => Cell::Bytes(number),
            Self::Percent => Cell::Percent(number as f64),
            Self::Ratio => Cell::Ratio(number as f64),
            Self::Rate => Cell::Rate(number as f64),
            Self::Text | Self::Count | Self::Mixed => Cell::Count(number.into()),
        }
    }
}

/// Where the text of a column stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name in snake case, without the unit.
    pub name: String,
    /// Unit of its cells.
    pub unit: Unit,
    /// Where its cells stand.
    pub align: Align,
    /// Neighbours with the same word, such as the quantiles of a histogram, stay together.
    pub group: String,
    /// A whole number above this calls for attention.
    pub alarm: Option<u64>,
}

impl Column {
    /// The name for people.
    #[must_use]
    pub fn heading(&self) -> String {
        self.name.replace('_', " ")
    }

    /// Whether a cell of it calls for attention.
    #[must_use]
    pub fn alarms(&self, cell: &Cell) -> bool {
        match (self.alarm, cell) {
            (Some(most), Cell::Ns(value) | Cell::Bytes(value)) => *value > most,
            (Some(most), Cell::Count(count)) => *count > i128::from(most),
            _ => false,
        }
    }

    /// The name for machines, with its unit unless that is a word of the name.
    #[must_use]
    pub fn key(&self) -> String {
        match self.unit.suffix() {
            "" => self.name.clone(),
            suffix if self.name.split('_').any(|word| word == suffix) => self.name.clone(),
            suffix => format!("{}_{suffix}", self.name),
        }
    }
}

/// A value with its unit.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Words.
    Text(String),
    /// Things counted; wide enough for any `u64` and for differences.
    Count(i128),
    /// Nanoseconds.
    Ns(u64),
    /// Bytes.
    Bytes(u64),
    /// Percent.
    Percent(f64),
    /// A number without unit.
    Ratio(f64),
    /// Things per second.
    Rate(f64),
    /// Could not be measured.
    Missing,
    /// There is nothing to measure here.
    Blank,
}

impl Cell {
    /// Words, or [`Cell::Blank`].
    #[must_use]
    pub fn text(text: Option<&str>) -> Self {
        text.map_or(Self::Blank, |text| Self::Text(text.to_owned()))
    }

    /// For people.
    #[must_use]
    pub fn human(&self) -> String {
        match self {
            Self::Text(text) => units::printable(text),
            Self::Count(count) => units::count(*count),
            Self::Ns(ns) => units::duration(*ns),
            Self::Bytes(bytes) => units::bytes(*bytes),
            Self::Percent(percent) => units::percent(*percent),
            Self::Ratio(ratio) => units::float(*ratio),
            Self::Rate(rate) => units::rate(*rate),
            Self::Missing => "-".to_owned(),
            Self::Blank => String::new(),
        }
    }

    /// The number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Ns(number) | Self::Bytes(number) => Some(*number as f64),
            Self::Percent(number) | Self::Ratio(number) | Self::Rate(number) => Some(*number),
            Self::Text(_) | Self::Missing | Self::Blank => None,
        }
    }

    /// For machines: the number as it is, nothing for what is missing.
    #[must_use]
    pub fn raw(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Ns(number) | Self::Bytes(number) => number.to_string(),
            Self::Percent(number) | Self::Ratio(number) | Self::Rate(number)
                if number.is_finite() =>
            {
                number.to_string()
            }
            Self::Percent(_) | Self::Ratio(_) | Self::Rate(_) | Self::Missing | Self::Blank => {
                String::new()
            }
        }
    }

    /// The unit of this value, for columns of [`Unit::Mixed`].
    #[must_use]
    pub const fn unit(&self) -> Unit {
        match self {
            Self::Text(_) | Self::Missing | Self::Blank => Unit::Text,
            Self::Count(_) => Unit::Count,
            Self::Ns(_) => Unit::Ns,
            Self::Bytes(_) => Unit::Bytes,
            Self::Percent(_) => Unit::Percent,
            Self::Ratio(_) => Unit::Ratio,
            Self::Rate(_) => Unit::Rate,
        }
    }
}

/// A histogram that belongs to a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chart {
    /// The row's keys.
    pub label: String,
    /// What was measured.
    pub quantity: String,
    /// Its unit.
    pub unit: Unit,
    /// The histogram.
    pub hist: Hist,
}

/// A section.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The section's name.
    pub name: String,
    /// One line that says what the rows are.
    pub title: String,
    /// How many columns, from the first, identify a row. A format that breaks a wide table
    /// repeats them.
    pub keys: usize,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// What a reader must know about the numbers.
    pub notes: Vec<String>,
    /// The histograms behind the quantiles.
    pub charts: Vec<Chart>,
    /// The same for people, where rows would read badly.
    pub prose: Option<String>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: name.to_owned(),
            keys: 0,
            columns: Vec::new(),
            rows: Vec::new(),
            notes: Vec::new(),
            charts: Vec::new(),
            prose: None,
        }
    }

    /// Puts the columns with these names first, in their order; the others keep theirs.
    pub fn arrange(&mut self, first: &[&str]) {
        let place = |column: &Column| {
            let place = first.iter().position(|name| *name == column.name);
            place.unwrap_or(first.len())
        };
        // The keys stay in front.
        let keys = self.keys.min(self.columns.len());
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        order[keys..].sort_by_key(|index| place(&self.columns[*index]));
        self.columns = order
            .iter()
            .map(|index| self.columns[*index].clone())
            .collect();
        for row in &mut self.rows {
            *row = order.iter().map(|index| row[*index].clone()).collect();
        }
    }
}

/// Builds a table column by column, so that name, unit and source of each stand in one line.
pub struct Builder<'a, T> {
    table: Table,
    source: &'a [T],
    applies: Vec<bool>,
}

impl<'a, T> Builder<'a, T> {
    /// A table of these rows, without a column.
    #[must_use]
    pub fn new(name: &str, title: &str, source: &'a [T]) -> Self {
        Self {
            table: Table {
                title: title.to_owned(),
                rows: vec![Vec::new(); source.len()],
                ..Table::named(name)
            },
            source,
            applies: vec![true; source.len()],
        }
    }

    /// The columns that follow are blank in rows of which this is false.
    #[must_use]
    pub fn only(mut self, applies: impl Fn(&T) -> bool) -> Self {
        self.applies = self.source.iter().map(applies).collect();
        self
    }

    /// A column that identifies the row; keys come first.
    #[must_use]
    pub fn key(mut self, name: &str, get: impl Fn(&T) -> &str) -> Self {
        self.table.keys += 1;
        self.text(name, |row| Some(get(row)).filter(|text| !text.is_empty()))
    }

    /// Words; `None` is blank.
    #[must_use]
    pub fn text(self, name: &str, get: impl Fn(&T) -> Option<&str>) -> Self {
        self.column(name, Unit::Text, |row| Cell::text(get(row)))
    }

    /// A count; `None` was not measured.
    #[must_use]
    pub fn count<N: Into<Option<u64>>>(self, name: &str, get: impl Fn(&T) -> N) -> Self {
        self.number(name, Unit::Count, get)
    }

    /// A whole number in some unit; `None` was not measured.
    #[must_use]
    pub fn number<N: Into<Option<u64>>>(
        self,
        name: &str,
        unit: Unit,
        get: impl Fn(&T) -> N,
    ) -> Self {
        self.column(name, unit, |row| {
            get(row)
                .into()
                .map_or(Cell::Missing, |number| unit.cell(number))
        })
    }

    /// A share in percent; `None` is a share of nothing.
    #[must_use]
    pub fn percent(self, name: &str, get: impl Fn(&T) -> Option<f64>) -> Self {
        self.column(name, Unit::Percent, |row| {
            get(row).map_or(Cell::Blank, Cell::Percent)
        })
    }

    /// Quantiles of a histogram, named `<name>_<quantile>`, and its chart; `None` was not measured, an
    /// empty one is blank.
    #[must_use]
    pub fn hist(
        mut self,
        name: &str,
        unit: Unit,
        quantiles: &[Quantile],
        get: impl Fn(&T) -> Option<&Hist>,
    ) -> Self {
        self = self.quantiles(name, unit, quantiles, &get);
        for (index, row) in self.source.iter().enumerate() {
            if let Some(hist) = get(row)
                && self.applies[index]
                && hist.count > 0
            {
                let keys = self.table.rows[index].iter().take(self.table.keys);
                let keys = keys.filter(|cell| **cell != Cell::Blank);
                self.table.charts.push(Chart {
                    label: keys.map(Cell::human).collect::<Vec<_>>().join(" "),
                    quantity: name.replace('_', " "),
                    unit,
                    hist: hist.clone(),
                });
            }
        }
        self
    }

    /// The same without charts, where there are too many rows for them.
    #[must_use]
    pub fn quantiles(
        mut self,
        name: &str,
        unit: Unit,
        quantiles: &[Quantile],
        get: impl Fn(&T) -> Option<&Hist>,
    ) -> Self {
        for quantile in quantiles {
            self = self.column(&format!("{name}_{}", quantile.name), unit, |row| {
                get(row).map_or(Cell::Missing, |hist| {
                    (quantile.get)(hist).map_or(Cell::Blank, |number| unit.cell(number))
                })
            });
            if let Some(column) = self.table.columns.last_mut() {
                name.clone_into(&mut column.group);
            }
        }
        self
    }

    /// Any column.
    #[must_use]
    pub fn column(mut self, name: &str, unit: Unit, get: impl Fn(&T) -> Cell) -> Self {
        let align = match unit {
            Unit::Text => Align::Left,
            _ => Align::Right,
        };
        self.table.columns.push(Column {
            name: name.to_owned(),
            unit,
            align,
            group: name.to_owned(),
            alarm: None,
        });
        let source = self.source.iter().zip(&self.applies);
        for (cells, (row, applies)) in self.table.rows.iter_mut().zip(source) {
            cells.push(if *applies { get(row) } else { Cell::Blank });
        }
        self
    }

    /// Values of the last column that are above `most` call for attention.
    #[must_use]
    pub fn alarm(mut self, most: u64) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.alarm = Some(most);
        }
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.table.notes.push(note.into());
        self
    }

    /// The table.
    #[must_use]
    pub fn build(self) -> Table {
        self.table
    }
}

/// One number out of a histogram.
#[derive(Clone, Copy, Debug)]
pub struct Quantile {
    name: &'static str,
    get: fn(&Hist) -> Option<u64>,
}

/// Median.
pub const P50: Quantile = Quantile {
    name: "p50",
    get: |hist| hist.p50,
};
/// 90 % are below.
pub const P90: Quantile = Quantile {
    name: "p90",
    get: |hist| hist.p90,
};
/// 99 % are below.
pub const P99: Quantile = Quantile {
    name: "p99",
    get: |hist| hist.p99,
};
/// The largest.
pub const MAX: Quantile = Quantile {
    name: "max",
    get: |hist| hist.max,
};
/// The sum, for waits of which the total counts.
pub const TOTAL: Quantile = Quantile {
    name: "total",
    get: |hist| Some(hist.sum),
};
