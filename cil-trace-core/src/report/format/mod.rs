//! From tables to text: which sections, in which format.
//!
//! Formats know nothing about XFS; they see tables, units and notes.

pub mod csv;
pub mod html;
pub mod json;
pub mod markdown;
pub mod text;

use super::schema::Report;
use super::sections::{self, SECTIONS, Section, section_names};
use super::summary;
use super::table::Table;
use std::str::FromStr;

/// What a report is printed as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// For a terminal.
    Text,
    /// The whole report, or the keys of the sections.
    Json,
    /// One section, numbers as they are.
    Csv,
    /// One section, a table for a mail or a web page.
    Markdown,
}

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: &'static [Self] = &[Self::Text, Self::Json, Self::Csv, Self::Markdown];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
        }
    }
}

impl FromStr for Format {
    type Err = RenderError;

    fn from_str(name: &str) -> Result<Self, RenderError> {
        Self::ALL
            .iter()
            .copied()
            .find(|format| format.name() == name)
            .ok_or_else(|| RenderError::UnknownFormat(name.to_owned()))
    }
}

/// Why a report cannot be printed so.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what each variant is")]
pub enum RenderError {
    #[error("no section named `{0}`; sections are {list}", list = names(", "))]
    UnknownSection(String),
    #[error("no format named `{0}`; formats are text, json, csv and markdown")]
    UnknownFormat(String),
    #[error(
        "{format} holds one table, so it needs exactly one section, and {given} were given; \
         name one of {list}",
        list = names(", ")
    )]
    NotOneSection { format: &'static str, given: usize },
    #[error("the report cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("the table `{section}` cannot be written as CSV")]
    Csv {
        section: String,
        source: ::csv::Error,
    },
}

fn names(separator: &str) -> String {
    section_names().collect::<Vec<_>>().join(separator)
}

/// Most rows of a table in a report without section names.
const OVERVIEW_ROWS: usize = 20;

/// What to print and how; made before a recording is opened, so that a wrong name costs nothing.
#[derive(Debug)]
pub struct Rendering {
    format: Format,
    sections: Vec<&'static Section>,
    file: Option<String>,
}

impl Rendering {
    /// These sections, or without any the overview; section names are checked here.
    ///
    /// # Errors
    /// [`RenderError::UnknownSection`], and [`RenderError::NotOneSection`] for formats that hold
    /// one table.
    pub fn new(sections: &[impl AsRef<str>], format: Format) -> Result<Self, RenderError> {
        let sections: Vec<_> = sections
            .iter()
            .map(|name| {
                sections::find(name.as_ref())
                    .ok_or_else(|| RenderError::UnknownSection(name.as_ref().to_owned()))
            })
            .collect::<Result<_, _>>()?;
        if matches!(format, Format::Csv | Format::Markdown) && sections.len() != 1 {
            return Err(RenderError::NotOneSection {
                format: format.name(),
                given: sections.len(),
            });
        }
        Ok(Self {
            format,
            sections,
            file: None,
        })
    }

    /// Where the recording is, for the command that the summary proposes; unless it is where every
    /// command looks first.
    #[must_use]
    pub fn of_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// The text, which ends with a newline.
    ///
    /// # Errors
    /// [`RenderError::Json`] and [`RenderError::Csv`].
    pub fn render(&self, report: &Report) -> Result<String, RenderError> {
        match (self.format, self.sections.as_slice()) {
            (Format::Json, sections) => json::render(report, sections),
            (Format::Csv, sections) => sections
                .iter()
                .map(|s| csv::table(&s.table(report)))
                .collect(),
            (Format::Markdown, sections) => Ok(sections
                .iter()
                .map(|s| markdown::table(&s.table(report)))
                .collect()),
            (Format::Text, []) => Ok(self.overview(report)),
            (Format::Text, sections) => Ok(joined(sections.iter().map(|section| {
                let table = self.table(section, report);
                text::table(&table) + &text::histograms(&table)
            }))),
        }
    }

    /// Every section that has something to say; the loss always, and last.
    fn overview(&self, report: &Report) -> String {
        joined(
            SECTIONS
                .iter()
                .filter(|section| section.overview)
                .map(|section| self.table(section, report))
                .filter(|table| !table.rows.is_empty())
                .map(|mut table| {
                    shorten(&mut table);
                    text::table(&table)
                }),
        )
    }

    fn table(&self, section: &Section, report: &Report) -> Table {
        let mut table = section.table(report);
        if section.name == summary::NAME
            && let Some(prose) = &mut table.prose
        {
            // Behind the facts, not a note: a command must not be broken.
            *prose += &summary::next(report, self.file.as_deref());
            prose.push('\n');
        }
        table
    }
}

fn shorten(table: &mut Table) {
    let more = table.rows.len().saturating_sub(OVERVIEW_ROWS);
    if more > 0 && table.prose.is_none() {
        table.rows.truncate(OVERVIEW_ROWS);
        table
            .notes
            .push(format!("{more} more: `cil-trace report {}`", table.name));
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("\n")
}
