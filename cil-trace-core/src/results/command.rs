//! Which benchmark a command line runs.
//!
//! Must not guess from arguments of other programs: `ls dbench` runs no dbench. Only programs whose
//! purpose is to run another are looked through.

use super::{PARSERS, Parser};

/// Programs that run another with their own arguments in front.
const WRAPPERS: &[&str] = &[
    "bash",
    "chroot",
    "chrt",
    "dash",
    "env",
    "ionice",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "setsid",
    "sh",
    "stdbuf",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "unshare",
];

/// The file name of a program.
pub(super) fn basename(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The benchmark that is run, directly or as the first one named to a wrapper (also inside the
/// script of a `sh -c`).
///
/// The options of wrappers are not understood, every word is looked at.
pub(super) fn benchmark(command: &[String]) -> Option<&'static Parser> {
    let (program, arguments) = command.split_first()?;
    let arguments = if WRAPPERS.contains(&basename(program)) {
        arguments
    } else {
        &[]
    };
    std::iter::once(program)
        .chain(arguments)
        .flat_map(|argument| {
            argument.split(|c: char| c.is_whitespace() || "'\"`;&|(){}".contains(c))
        })
        .find_map(|word| {
            PARSERS
                .iter()
                .find(|parser| parser.program == basename(word))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> Option<&'static str> {
        let command: Vec<String> = words.iter().map(ToString::to_string).collect();
        benchmark(&command).map(|parser| parser.name)
    }

    #[test]
    fn looks_through_wrappers_and_nothing_else() {
        assert_eq!(named(&["/usr/bin/fs_mark", "-d", "x"]), Some("fsmark"));
        assert_eq!(
            named(&["sudo", "-u", "nobody", "dbench", "2"]),
            Some("dbench")
        );
        assert_eq!(
            named(&["/bin/sh", "-c", "cd /mnt && exec fio job.fio"]),
            Some("fio")
        );
        assert_eq!(
            named(&["bash", "-c", "(stress-ng --xattr 1; sync)"]),
            Some("stress-ng")
        );
        assert_eq!(
            named(&["timeout", "10", "env", "A=1", "/opt/bin/fio"]),
            Some("fio")
        );
        assert_eq!(named(&["ls", "dbench"]), None);
        assert_eq!(named(&["sh", "-c", "./dbench-all.sh"]), None);
        assert_eq!(named(&[]), None);
    }
}
