//! What a metric's name says of it: whether more is better, whether it is a percentage, where it
//! stands in a table.

use glob::Pattern;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Which direction is an improvement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// Rates, throughput.
    Higher,
    /// Times, waits, flushes.
    Lower,
}

use Better::{Higher, Lower};

/// The first pattern that a name matches decides; `*` stands for anything.
const DIRECTIONS: &[(&str, Better)] = &[
    ("cil-trace.commits.count", Higher),
    ("cil-trace.commits.per_s", Higher),
    ("cil-trace.iclogs*fill_pct.*", Higher),
    ("cil-trace.*flushes_merged", Higher),
    ("cil-trace.*min_free_bytes", Higher),
    ("cil-trace.*", Lower),
    // LKP's names, and those of benchmarks.
    ("dmesg.*", Lower),
    ("kmsg.*", Lower),
    ("last_state.*", Lower),
    ("stderr.*", Lower),
    ("*.fail", Lower),
    ("*.time.*", Lower),
    ("*latency*", Lower),
    ("*_lat_*", Lower),
    ("*overhead*", Lower),
    ("*per_sec*", Higher),
    ("*per_min*", Higher),
    ("*throughput*", Higher),
    ("*_per_s", Higher),
    ("*/s", Higher),
    ("*_ns", Lower),
    ("*_us", Lower),
    ("*_ms", Lower),
    ("*_time", Lower),
    ("*.time", Lower),
    ("*buildtime*", Lower),
    ("*_time_ms*", Lower),
    ("*seconds", Lower),
    ("*/op", Lower),
    ("*.lat", Lower),
    ("*.lat_*", Lower),
    ("*_lat", Lower),
    ("*error*", Lower),
    ("*.p[0-9]*", Lower),
    ("*_wait*", Lower),
    ("*elapsed*", Lower),
    ("*fault*", Lower),
    ("*miss*", Lower),
    ("*context_switches", Lower),
    ("*stall*", Lower),
];

/// Whether more of a metric is better; unknown ones are taken for rates, as mmtests does.
///
/// `lower` are patterns that take precedence over the table.
#[must_use]
pub fn better(metric: &str, lower: &[Pattern]) -> Better {
    if lower.iter().any(|pattern| pattern.matches(metric)) {
        return Lower;
    }
    let matches =
        |pattern: &str| Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(metric));
    let row = DIRECTIONS.iter().find(|(pattern, _)| matches(pattern));
    row.map_or(Higher, |(_, better)| *better)
}

/// Whether a metric is a percentage already, so that its change is told in points. LKP does so for
/// names that end in `%` and for the shares of its profiles.
#[must_use]
pub fn is_percentage(metric: &str) -> bool {
    let of_histogram = metric
        .rsplit_once('.')
        .is_some_and(|(field, part)| field.ends_with("_pct") && !["count", "sum"].contains(&part));
    metric.ends_with('%')
        || metric.starts_with("perf-profile")
        || metric.ends_with("_pct")
        || of_histogram
}

/// Whether a metric is 1 for a run in which something went wrong (or right, where that is what is
/// looked for), and missing for others: LKP prints of how many runs that is said. Its lists are
/// `etc/failure` and `etc/pass`; these are the monitors and the suffixes that stand in its tables.
#[must_use]
pub fn is_failure(metric: &str) -> bool {
    const MONITORS: &[&str] = &["dmesg.", "kmsg.", "last_state.", "stderr."];
    const RESULTS: &[&str] = &[".fail", ".pass"];
    // LKP excepts these by name.
    const TIMES: &[&str] = &[".time.", ".timestamp:", ".bootstage:"];
    (MONITORS.iter().any(|monitor| metric.starts_with(monitor))
        || RESULTS.iter().any(|result| metric.ends_with(result)))
        && !TIMES.iter().any(|time| metric.contains(time))
}

/// Which profile a metric is a function's share in.
pub(super) fn profile(metric: &str) -> Option<&str> {
    let rest = metric.strip_prefix("perf-profile.")?;
    rest.split('.').next()
}

/// The part before the first dot: the test, or the monitor.
fn base(metric: &str) -> &str {
    metric.split('.').next().unwrap_or(metric)
}

/// The order in which LKP lists metrics: what the test itself says, then the monitors, those with
/// few metrics first. Failures come before all, those that the test itself reports last.
pub struct Order {
    /// Metrics by base; none for tests.
    sizes: BTreeMap<String, usize>,
}

impl Order {
    /// For these metrics. A base with `<base>.time.elapsed_time` is a test.
    pub fn of<'a>(metrics: impl Iterator<Item = &'a str>) -> Self {
        let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
        let mut tests = BTreeSet::new();
        for metric in metrics {
            let base = base(metric);
            *sizes.entry(base.to_owned()).or_default() += 1;
            if metric.strip_prefix(base) == Some(".time.elapsed_time") {
                tests.insert(base.to_owned());
            }
        }
        for test in tests {
            sizes.insert(test, 0);
        }
        Self { sizes }
    }

    /// Which of two metrics stands first.
    #[must_use]
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        let key = |metric| {
            let size = self.sizes.get(base(metric)).copied().unwrap_or(0);
            let failure = is_failure(metric);
            (!failure, failure && size == 0, size)
        };
        key(a).cmp(&key(b)).then_with(|| a.cmp(b))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn every_pattern_of_the_table_is_one() {
        for (pattern, _) in DIRECTIONS {
            Pattern::new(pattern).unwrap();
        }
    }

    #[test]
    fn directions() {
        for (metric, expected) in [
            ("dbench.throughput_MB/s", Higher),
            ("dbench.max_latency", Lower),
            ("fsmark.files_per_sec", Higher),
            ("fsmark.time.elapsed_time", Lower),
            ("fio.read_clat_mean_us", Lower),
            ("aim7.jobs-per-min", Higher),
            ("kbuild.buildtime_per_iteration", Lower),
            ("filebench.sum_time_ms/op", Lower),
            ("sysbench.lat_avg", Lower),
            ("x.seconds", Lower),
            ("x.errors", Lower),
            ("x.p99", Lower),
            ("cil-trace.flushes.sda.cil-push", Lower),
            ("cil-trace.commits.per_s", Higher),
            ("cil-trace.iclogs.fill_pct.p50", Higher),
            ("unheard.of", Higher),
        ] {
            assert_eq!(better(metric, &[]), expected, "{metric}");
        }
        let lower = [Pattern::new("unheard.*").unwrap()];
        assert_eq!(better("unheard.of", &lower), Lower);
    }

    #[test]
    fn percentages_as_lkp_tells_them() {
        for metric in [
            "mpstat.cpu.all.usr%",
            "perf-profile.children.cycles-pp.xlog_cil_commit",
            "cil-trace.iclogs.fill_pct.p50",
            "cil-trace.overhead.share_of_cpu_pct",
        ] {
            assert!(is_percentage(metric), "{metric}");
        }
        for metric in [
            "fsmark.time.percent_of_cpu_this_job_got",
            "cil-trace.iclogs.fill_pct.count",
            "cil-trace.pushes.bytes.p50",
        ] {
            assert!(!is_percentage(metric), "{metric}");
        }
    }

    #[test]
    fn failures_as_lkp_tells_them() {
        for metric in [
            "dmesg.WARNING:at_fs/xfs/xfs_log_cil.c:#xlog_cil_push_work",
            "last_state.is_incomplete_run",
            "xfstests.generic.475.fail",
            "perf-sanity-tests.perf_all_PMU_test.pass",
        ] {
            assert!(is_failure(metric), "{metric}");
        }
        for metric in [
            "dmesg.timestamp:last",
            "dmesg.bootstage:last",
            "fsmark.time.elapsed_time",
            "proc-vmstat.thp_split_page_failed",
        ] {
            assert!(!is_failure(metric), "{metric}");
        }
    }

    #[test]
    fn the_test_comes_first_and_large_monitors_last() {
        let mut metrics = [
            "cil-trace.a",
            "cil-trace.b",
            "cil-trace.c",
            "uptime.boot",
            "fsmark.time.elapsed_time",
            "fsmark.files_per_sec",
            "vmstat.cs",
            "vmstat.in",
        ];
        let order = Order::of(metrics.into_iter());
        metrics.sort_by(|a, b| order.compare(a, b));
        assert_eq!(
            metrics,
            [
                "fsmark.files_per_sec",
                "fsmark.time.elapsed_time",
                "uptime.boot",
                "vmstat.cs",
                "vmstat.in",
                "cil-trace.a",
                "cil-trace.b",
                "cil-trace.c",
            ]
        );
    }
}
