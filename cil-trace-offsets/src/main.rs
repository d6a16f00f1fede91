//! Makes a file of offsets, for kernels that do not describe their modules' types, from what
//! distributions ship of them.
//!
//! `cil-trace-offsets FILE DIRECTORY...`: each directory holds a package's xfs.ko and is named
//! `PACKAGE_VERSION`. `cargo xtask offsets` fetches them. Of a build without debug information it is
//! proved that its layout is another's (see `access`).

mod access;
mod build;
mod code;
mod proof;

use anyhow::{Context as _, Result, bail, ensure};
use build::Build;
use cil_trace_common::offset::OFFSETS;
use cil_trace_core::offsets::{USED_BY, Value, line};
use proof::Proof;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// How a file of offsets begins.
const HEAD: &str = "\
# Offsets of structure members in an XFS that no BTF describes. Data, made by `cargo xtask offsets`
# (see CONTRIBUTING.md) from the table in cil-trace-common/src/offset.rs; not to be edited.
#
# build ID PACKAGE VERSION debug-information
#     Build id of an xfs.ko, whose debug information gives these offsets.
# build ID PACKAGE VERSION same-code N/M
#     One without debug information. Of its M functions N are those of the first build above: byte
#     for byte, apart from what relocations fill in, and with relocations to the same symbols. For
#     each offset stands such a function, common to all builds, that uses it: where it adds the
#     offset to a register, the debug information says that a pointer to this structure is in there.
#
# GLOBAL OFFSET MEMBER, used by FUNCTION
#     absent: the structure has no such member.
#     elsewhere: not declared by XFS; the kernel's own BTF is asked.
";

fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let output = arguments.next().context("no output file")?;
    let builds: Vec<_> = arguments
        .map(|directory| Build::read(&directory).with_context(|| directory.display().to_string()))
        .collect::<Result<_>>()?;
    let (described, others): (Vec<_>, Vec<_>) = builds
        .into_iter()
        .partition(|build| build.offsets.is_some());
    let (first, values) = described
        .iter()
        .find_map(|build| Some((build, build.offsets.as_ref()?)))
        .context("none of the packages has debug information")?;

    let mut text = format!("{HEAD}\n");
    for build in &described {
        ensure!(
            build.offsets.as_ref() == Some(values),
            "{} and {} have different layouts; a file holds one",
            first.name(),
            build.name()
        );
        writeln!(
            text,
            "build {} {} debug-information",
            build.id,
            build.name()
        )?;
    }
    let mut proof = Proof::new(first)?;
    for build in &others {
        let same = proof.hold_against(build)?;
        writeln!(text, "build {} {} same-code {same}", build.id, build.name())?;
    }
    text.push('\n');
    let mut unproved = Vec::new();
    for (row, value) in OFFSETS.iter().zip(values) {
        let mut line = line(row, *value);
        if let Value::Is(offset) = value
            && !others.is_empty()
        {
            match proof.user_of(row.source, *offset) {
                Some(function) => write!(line, "{USED_BY}{function}")?,
                None => unproved.push(row.source.to_string()),
            }
        }
        writeln!(text, "{line}")?;
    }
    if !unproved.is_empty() {
        bail!(
            "no function that all builds have in common uses {}: leave builds out that have no \
             debug information",
            unproved.join(", ")
        );
    }
    fs::write(&output, text).with_context(|| output.display().to_string())
}
