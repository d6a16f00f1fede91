//! The files of a side: which of them are recordings, which matrices, and which test case each
//! belongs to.

use super::super::output::begins_as_sqlite;
use super::super::report::open;
use crate::options::SidePath;
use anyhow::{Context as _, Result, bail};
use cil_trace_core::compare::Side;
use cil_trace_core::compare::devices::Layout;
use cil_trace_core::compare::matrix::{self, Matrix};
use cil_trace_core::compare::run::Run;
use cil_trace_core::compare::samples::Samples;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Reads all sides; devices get the names that the first recording of a test case has for them.
///
/// # Errors
/// A side cannot be read or holds nothing to compare; the text says what a side is.
pub fn sides(sides: &[SidePath]) -> Result<Vec<Side>> {
    let mut layouts = BTreeMap::new();
    sides.iter().map(|side| read(side, &mut layouts)).collect()
}

fn read(side: &SidePath, layouts: &mut BTreeMap<String, Layout>) -> Result<Side> {
    let SidePath { label, path } = side;
    let found = if path.is_dir() {
        directory(path)?
    } else {
        BTreeMap::from([(String::new(), vec![path.clone()])])
    };
    let mut cases = BTreeMap::new();
    for (case, files) in found {
        let samples = samples(&files, &case, layouts)?;
        cases.insert(case, samples);
    }
    Ok(Side {
        label: label.clone(),
        cases,
    })
}

fn samples(
    files: &[PathBuf],
    case: &str,
    layouts: &mut BTreeMap<String, Layout>,
) -> Result<Samples> {
    let (mut runs, mut matrices, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let name = file.display().to_string();
        // What is no JSON is tried as a recording, whose errors say what else it may be.
        if is_json(file) && !begins_as_sqlite(file) {
            let bytes = fs::read(file).with_context(|| format!("cannot read {name}"))?;
            let matrix =
                Matrix::read(&bytes).with_context(|| format!("{name} is no matrix of LKP's"))?;
            matrices.push((name, matrix));
        } else {
            // One that is damaged must not take the others with it.
            let model = match open(file) {
                Ok(model) => model,
                Err(error) if files.len() > 1 => {
                    unreadable.push((name, error));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let layout = layouts
                .entry(case.to_owned())
                .or_insert_with(|| Layout::of(&model));
            runs.push(Run::of(&name, &model, layout));
        }
    }
    if runs.is_empty() && matrices.is_empty() {
        return match unreadable.pop() {
            Some((_, error)) => Err(error.into()),
            None => Ok(Samples::default()),
        };
    }
    let mut samples = Samples::new(runs, matrices);
    let warnings = unreadable
        .iter()
        .map(|(name, error)| format!("{name} left out: {error}"));
    samples.warnings.extend(warnings);
    Ok(samples)
}

/// The files of each test case in a directory; those beside no directory of others have no case.
fn directory(path: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let shown = path.display();
    let own = files(path)?;
    if whole_matrix(path, &own).is_some() {
        return Ok(BTreeMap::from([(String::new(), own)]));
    }
    let mut cases = BTreeMap::new();
    for entry in entries(path)?.into_iter().filter(|entry| entry.is_dir()) {
        let found = files(&entry)?;
        if !found.is_empty() {
            let name = entry
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            cases.insert(name, found);
        }
    }
    match (own.is_empty(), cases.is_empty()) {
        (false, true) => Ok(BTreeMap::from([(String::new(), own)])),
        (true, false) => Ok(cases),
        (true, true) => bail!(
            "{shown} holds no recording and no matrix: a side is a recording, a directory of \
             recordings or of LKP's JSON, or a directory of such directories"
        ),
        (false, false) => bail!(
            "{shown} holds recordings and also directories of recordings: move them apart, or name \
             one of them"
        ),
    }
}

/// The recordings and matrices directly in a directory.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = entries(path)?;
    files.retain(|file| {
        file.is_file() && (is_json(file) || begins_as_sqlite(file)) && !is_older(file)
    });
    if let Some(matrix) = whole_matrix(path, &files) {
        files.retain(|file| *file == matrix || !is_json(file));
    }
    Ok(files)
}

/// The matrix among the files of a directory, beside which no other JSON counts.
fn whole_matrix(directory: &Path, files: &[PathBuf]) -> Option<PathBuf> {
    let mut matrices = matrix::FILES.iter().map(|name| directory.join(name));
    matrices.find(|matrix| files.contains(matrix))
}

/// Sorted by name, none that is hidden.
fn entries(path: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read the directory {}", path.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).with_context(cannot)? {
        entries.push(entry.with_context(cannot)?.path());
    }
    entries.retain(|entry| {
        let name = entry.file_name().unwrap_or_default();
        !name.to_string_lossy().starts_with('.')
    });
    entries.sort();
    Ok(entries)
}

/// By its name, packed or not.
fn is_json(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".json") || name.ends_with(".json.gz")
}

/// What `record` kept of the recording before.
fn is_older(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "old")
}
