//! The part of `record`'s command line that says how often to record.

use crate::options::{DEFAULT_DIRECTORY, DEFAULT_FILE, Repeat, Series};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct RepeatArgs {
    /// Record so many runs, into the directory that -o names; implies --capture. A run that fails
    /// ends the series, and what was recorded is kept
    #[arg(long, value_name = "N", requires = "command",
          value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Run this command by turns with the other, A B B A .., into DIR/a and DIR/b; `sh -c` runs it
    /// if it is more than words
    #[arg(long, value_name = "CMD_B", requires = "runs", value_parser = words)]
    against: Option<Words>,
    /// Run this with `sh -c` before each run, untraced and as the user who calls, such as 'sync;
    /// echo 3 > /proc/sys/vm/drop_caches'
    #[arg(long, value_name = "CMD", requires = "command")]
    prepare: Option<String>,
}

impl RepeatArgs {
    /// Whether runs are to be compared, for which their results are needed.
    pub(super) const fn is_series(&self) -> bool {
        self.runs.is_some()
    }

    /// How often, and where to.
    pub(super) fn options(self, output: Option<PathBuf>) -> (Repeat, PathBuf) {
        let prepare = self.prepare;
        let Some(runs) = self.runs else {
            let output = output.unwrap_or_else(|| DEFAULT_FILE.into());
            return (Repeat::Once { prepare }, output);
        };
        let output = output.unwrap_or_else(|| DEFAULT_DIRECTORY.into());
        let against = self.against.map(|Words(words)| words);
        let series = Series {
            runs,
            against,
            prepare,
        };
        (Repeat::Series(series), output)
    }
}

/// A command as the system takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Words(Vec<OsString>);

/// What a shell does more than split words.
const SHELL: &[char] = &[
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', '~', '{', '#', '\n',
];

/// Splits a command line into words; one that needs a shell is left to it. Without a shell in
/// between, the command is named, timed and counted as it would be itself.
fn words(text: &str) -> Result<Words, String> {
    let words = shlex::split(text).ok_or("a quote is not closed")?;
    let first = words.first().ok_or("there is no command in it")?;
    if text.contains(SHELL) || first.contains('=') {
        return Ok(Words(crate::record::shell(text)));
    }
    Ok(Words(words.into_iter().map(OsString::from).collect()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_shell_runs_what_is_more_than_words() {
        let split = |text| words(text).unwrap().0;
        assert_eq!(
            split("fs_mark -d '/mnt/a b' -n 5"),
            ["fs_mark", "-d", "/mnt/a b", "-n", "5"]
        );
        for text in [
            "sync; fs_mark",
            "fs_mark -d $DIR",
            "A=1 fs_mark",
            "fs_mark > /dev/null",
        ] {
            assert_eq!(split(text), ["sh", "-c", text]);
        }
        assert!(words("fs_mark '").is_err() && words(" ").is_err());
    }
}
