//! `<command>.time.*`: what `/usr/bin/time -v` says of a command, under the names that LKP makes of
//! its lines (lkp-tests `programs/time/parse`).
//!
//! Left out is what Linux does not maintain and reports as zero (see getrusage(2): average sizes,
//! swaps, signals, socket messages) and what is no measurement (page size, exit status).

use super::command;
use std::collections::BTreeMap;

/// The resources that the command and the descendants it waited for have used, as wait4(2) gives
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Wall-clock time, nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time in user mode, nanoseconds.
    pub user_ns: u64,
    /// CPU time in kernel mode, nanoseconds.
    pub sys_ns: u64,
    /// `ru_maxrss`, the largest resident set of a single process, KiB.
    pub max_rss_kib: u64,
    /// `ru_minflt`, page faults served without I/O.
    pub minor_faults: u64,
    /// `ru_majflt`, page faults that needed I/O.
    pub major_faults: u64,
    /// `ru_nvcsw`, times that a thread gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// `ru_nivcsw`, times that a thread was preempted.
    pub involuntary_switches: u64,
    /// `ru_inblock`, 512-byte blocks read from devices.
    pub blocks_in: u64,
    /// `ru_oublock`, 512-byte blocks dirtied for devices.
    pub blocks_out: u64,
}

/// `usage` under LKP's names, times in seconds, `maximum_resident_set_size` in KiB.
///
/// `<command>` is LKP's name of the test if the command runs a known benchmark, also inside `sudo`,
/// `sh -c` and the like, so that its times stand beside its results; else the file name of the
/// command as given. No command, no metrics.
#[must_use]
pub fn time_metrics(command: &[String], usage: &Usage) -> BTreeMap<String, f64> {
    let Some(program) = command.first() else {
        return BTreeMap::new();
    };
    let name = command::benchmark(command)
        .map_or_else(|| command::basename(program), |parser| parser.name);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let cpu = (usage.user_ns + usage.sys_ns) as f64 / usage.elapsed_ns as f64 * 100.0;
    [
        ("elapsed_time", seconds(usage.elapsed_ns)),
        ("user_time", seconds(usage.user_ns)),
        ("system_time", seconds(usage.sys_ns)),
        ("percent_of_cpu_this_job_got", cpu),
        ("maximum_resident_set_size", usage.max_rss_kib as f64),
        ("minor_page_faults", usage.minor_faults as f64),
        ("major_page_faults", usage.major_faults as f64),
        (
            "voluntary_context_switches",
            usage.voluntary_switches as f64,
        ),
        (
            "involuntary_context_switches",
            usage.involuntary_switches as f64,
        ),
        ("file_system_inputs", usage.blocks_in as f64),
        ("file_system_outputs", usage.blocks_out as f64),
    ]
    .into_iter()
    // A command that took no time has no share of a CPU.
    .filter(|(_, value)| value.is_finite())
    .map(|(metric, value)| (format!("{name}.time.{metric}"), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_and_units() {
        let usage = Usage {
            elapsed_ns: 4_000_000_000,
            user_ns: 500_000_000,
            sys_ns: 1_500_000_000,
            max_rss_kib: 2396,
            minor_faults: 7,
            major_faults: 1,
            voluntary_switches: 4095,
            involuntary_switches: 12,
            blocks_in: 8,
            blocks_out: 4096,
        };
        let expected = [
            ("elapsed_time", 4.0),
            ("file_system_inputs", 8.0),
            ("file_system_outputs", 4096.0),
            ("involuntary_context_switches", 12.0),
            ("major_page_faults", 1.0),
            ("maximum_resident_set_size", 2396.0),
            ("minor_page_faults", 7.0),
            ("percent_of_cpu_this_job_got", 50.0),
            ("system_time", 1.5),
            ("user_time", 0.5),
            ("voluntary_context_switches", 4095.0),
        ];
        let expected = expected
            .map(|(name, value)| (format!("fsmark.time.{name}"), value))
            .into_iter();
        assert_eq!(
            time_metrics(&command(&["/usr/bin/fs_mark"]), &usage),
            expected.collect()
        );
    }

    #[test]
    fn name_of_the_command() {
        let name = |words: &[&str]| {
            let metrics = time_metrics(&command(words), &Usage::default());
            metrics
                .into_keys()
                .next()
                .map(|key| key.replace(".time.elapsed_time", ""))
        };
        assert_eq!(name(&["sudo", "dbench", "2"]).as_deref(), Some("dbench"));
        assert_eq!(
            name(&["./run-all.sh", "dbench"]).as_deref(),
            Some("run-all.sh")
        );
        assert_eq!(name(&["sh", "-c", "make"]).as_deref(), Some("sh"));
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn no_share_of_no_time() {
        let metrics = time_metrics(&command(&["true"]), &Usage::default());
        assert_eq!(metrics.get("true.time.percent_of_cpu_this_job_got"), None);
        assert_eq!(metrics.get("true.time.elapsed_time"), Some(&0.0));
    }
}
