//! Tables for programs: one header with units in the names, numbers as they are.
//!
//! Missing values are empty fields. A column in which each row has its own unit is followed by a
//! column `unit`.

use super::RenderError;
use crate::report::table::{Table, Unit};

/// The table.
///
/// # Errors
/// [`RenderError::Csv`] if the rows do not fit the columns.
pub fn table(table: &Table) -> Result<String, RenderError> {
    write(table).map_err(|source| RenderError::Csv {
        section: table.name.clone(),
        source,
    })
}

fn write(table: &Table) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = table.columns.iter().flat_map(|column| {
        let unit = (column.unit == Unit::Mixed).then(|| "unit".to_owned());
        [Some(column.key()), unit].into_iter().flatten()
    });
    writer.write_record(header)?;
    for row in &table.rows {
        let fields = row.iter().zip(&table.columns).flat_map(|(cell, column)| {
            let unit = (column.unit == Unit::Mixed).then(|| cell.unit().suffix().to_owned());
            [Some(cell.raw()), unit].into_iter().flatten()
        });
        writer.write_record(fields)?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
