//! Results out of real outputs: dbench 4.00, fio 3.33, fs_mark 3.3, stress-ng 0.15.06.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input fails"
)]

use cil_trace_core::results::{Results, recognise};
use proptest::prelude::*;
use std::path::Path;

fn outputs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outputs")
}

fn output(file: &str) -> String {
    std::fs::read_to_string(outputs().join(file)).unwrap()
}

/// The file is of `benchmark` and holds exactly these metrics, and nothing is wrong with it.
#[track_caller]
fn assert_all(file: &str, benchmark: &str, expected: &[(&str, f64)]) {
    let results = recognise(&output(file), &[]);
    assert_values(&results, benchmark, expected);
    assert_eq!(
        results.metrics.len(),
        expected.len(),
        "{:#?}",
        results.metrics
    );
    assert_eq!(results.problems, [""; 0]);
}

#[track_caller]
fn assert_values(results: &Results, benchmark: &str, expected: &[(&str, f64)]) {
    assert_eq!(results.recognised, Some(benchmark));
    for (name, value) in expected {
        let found = results.metrics.get(&format!("{benchmark}.{name}")).copied();
        let near = found.is_some_and(|found| (found - value).abs() <= value.abs() * 1e-9);
        assert!(near, "{benchmark}.{name}: {found:?}, not {value}");
    }
}

#[test]
fn dbench() {
    let results = recognise(&output("dbench.txt"), &[]);
    let expected = [
        ("throughput_MB/s", 104.39),
        ("throughput_MB/s_harmonic_mean", 104.39),
        ("max_latency", 7.974),
        ("max_latency_harmonic_mean", 7.974),
        ("clients", 1.0),
        ("procs", 1.0),
        ("NTCreateX.count", 5442.0),
        ("Unlink.avg_latency_ms", 0.548),
        ("Flush.count", 387.0),
        ("Flush.avg_latency_ms", 3.132),
        ("Flush.max_latency_ms", 8.005),
    ];
    assert_values(&results, "dbench", &expected);
    assert_eq!(results.metrics.len(), 6 + 16 * 3);
    assert_eq!(results.problems, [""; 0]);
}

#[test]
fn dbench_with_a_note_before_the_clients() {
    let expected = [
        ("throughput_MB/s", 62.2386),
        ("clients", 2.0),
        ("procs", 2.0),
    ];
    assert_values(
        &recognise(&output("dbench-sync.txt"), &[]),
        "dbench",
        &expected,
    );
}

#[test]
fn dbench_several_times() {
    let line = |rate| format!("Throughput {rate} MB/sec  4 clients  4 procs  max_latency=2.0 ms\n");
    let expected = [
        ("throughput_MB/s", 75.0),
        (
            "throughput_MB/s_harmonic_mean",
            2.0 / (1.0 / 50.0 + 1.0 / 100.0),
        ),
        ("max_latency", 2.0),
    ];
    assert_values(
        &recognise(&(line(50) + &line(100)), &[]),
        "dbench",
        &expected,
    );
}

/// Values read off the JSON: 113777 KiB/s is 111.11 MiB/s.
#[test]
fn fio_json_of_two_jobs() {
    let results = recognise(&output("fio.json"), &[]);
    let expected = [
        ("write_bw_MBps", 113777.0 / 1024.0),
        ("write_iops", 28444.444444),
        ("write_clat_mean_ns", 3358.99707),
        ("write_clat_stddev", 6916.548294),
        ("write_clat_90%_ns", 3792.0),
        ("write_clat_95%_ns", 4192.0),
        ("write_clat_99%_ns", 6048.0),
        ("read_bw_MBps", 105025.0 / 1024.0),
        ("read_iops", 26256.410256),
        ("read_clat_mean_ns", 36614.199219),
        ("read_clat_99%_ns", 62208.0),
        ("workload", 2048.0),
        // The mean over both jobs.
        ("latency_4us%", 92.773438 / 2.0),
        ("latency_50us%", (0.195312 + 97.949219) / 2.0),
        ("latency_>=2000ms%", 0.0),
    ];
    assert_values(&results, "fio", &expected);
    // psync has no submission latency.
    assert_eq!(
        results.metrics.keys().find(|name| name.contains("slat")),
        None
    );
    assert_eq!(results.metrics.len(), 2 * 7 + 1 + 10 + 12);
    assert_eq!(results.problems, [""; 0]);
}

#[test]
fn fio_json_of_a_group() {
    let expected = [
        ("read_bw_MBps", 6.25),
        ("read_iops", 1600.0),
        ("write_iops", 1703.225806),
        ("write_clat_99%_ns", 8159232.0),
        ("write_slat_mean_us", 7.188526515),
        ("write_slat_stddev", 8.309787319),
        ("workload", 512.0),
        ("latency_2ms%", 6.25),
    ];
    assert_values(&recognise(&output("fio-group.json"), &[]), "fio", &expected);
}

#[test]
fn fio_json_plus_and_json_within_text() {
    let expected = [
        ("read_iops", 16000.0),
        ("read_clat_mean_ns", 50099.0625),
        ("workload", 16.0),
    ];
    let results = recognise(&output("fio-plus.json"), &[]);
    assert_values(&results, "fio", &expected);
    assert_eq!(
        results.metrics.keys().find(|name| name.contains("write")),
        None
    );

    let expected = [("write_iops", 128000.0), ("write_bw_MBps", 500.0)];
    assert_values(
        &recognise(&output("fio-normal-json.txt"), &[]),
        "fio",
        &expected,
    );
}

/// Every job of several is in it: two that write, one that reads, with fio 2's microseconds.
#[test]
fn fio_jobs_are_combined_as_lkp_combines_instances() {
    let job = |direction: &str, iops: u32, clat: u32| {
        format!(
            r#"{{"jobname": "j", "error": 0, "{direction}": {{"bw": 1024, "iops": {iops},
            "total_ios": 10, "clat": {{"mean": {clat}, "stddev": 1}}}}}}"#
        )
    };
    let jobs = [
        job("write", 100, 2),
        job("write", 300, 4),
        job("read", 7, 9),
    ]
    .join(",");
    let text = format!("note\n{{\"fio version\": \"fio-2.2\", \"jobs\": [{jobs}]}}\nnote\n");
    let expected = [
        ("write_iops", 400.0),
        ("write_bw_MBps", 2.0),
        ("write_clat_mean_ns", 3000.0),
        ("read_clat_mean_ns", 9000.0),
        ("workload", 30.0),
    ];
    assert_values(&recognise(&text, &[]), "fio", &expected);
}

#[test]
fn fio_last_state_counts() {
    let states = output("fio.json") + &output("fio-plus.json");
    assert_eq!(
        recognise(&states, &[]),
        recognise(&output("fio-plus.json"), &[])
    );
    let states = output("fio-group.txt") + &output("fio.txt");
    assert_eq!(recognise(&states, &[]), recognise(&output("fio.txt"), &[]));
}

#[test]
fn fio_failed_job_is_named() {
    let text = output("fio.json").replacen("\"error\" : 0", "\"error\" : 28", 1);
    let problems = recognise(&text, &[]).problems;
    assert_eq!(
        problems,
        ["fio: job write failed with errno 28; see its output"]
    );
}

#[test]
fn fio_text() {
    let expected = [
        ("write_bw_MBps", 235.0),
        ("write_iops", 60200.0),
        ("write_clat_mean_ns", 2477.36),
        ("write_clat_stddev", 1772.27),
        ("write_clat_90%_ns", 2960.0),
        ("write_clat_95%_ns", 3536.0),
        ("write_clat_99%_ns", 7072.0),
        ("read_bw_MBps", 121.0),
        ("read_iops", 31000.0),
        ("read_clat_mean_ns", 30370.0),
        ("read_clat_stddev", 9110.0),
        ("read_clat_90%_ns", 33000.0),
        ("read_clat_95%_ns", 35000.0),
        ("read_clat_99%_ns", 56000.0),
        ("workload", 2048.0),
        ("latency_2us%", 33.20),
        ("latency_4us%", 63.77),
        ("latency_10us%", 2.25),
        ("latency_20us%", 0.39),
        ("latency_50us%", (0.39 + 98.54) / 2.0),
        ("latency_100us%", 1.07),
        ("latency_250us%", 0.39),
    ];
    assert_all("fio.txt", "fio", &expected);
}

#[test]
fn fio_text_of_a_group() {
    let expected = [
        ("read_bw_MBps", 7137.0 / 1024.0),
        ("read_iops", 1784.0),
        ("read_slat_mean_us", 16.67),
        ("read_clat_90%_ns", 3851000.0),
        ("write_iops", 1899.0),
        ("write_slat_mean_us", 24.60),
        ("write_slat_stddev", 196.53),
        ("write_clat_mean_ns", 1189320.0),
        // Not those of the fsyncs, 11863 us.
        ("write_clat_99%_ns", 7963000.0),
        ("latency_750us%", 1.95),
        ("latency_20ms%", 0.20),
        ("workload", 512.0),
    ];
    assert_values(&recognise(&output("fio-group.txt"), &[]), "fio", &expected);
}

#[test]
fn fs_mark() {
    assert_all(
        "fsmark.txt",
        "fsmark",
        &[("files_per_sec", 452.7), ("app_overhead", 405.0)],
    );
    let expected = [
        ("files_per_sec", (5639.2 + 11253.2 + 11888.7) / 3.0),
        ("app_overhead", (846.0 + 648.0 + 549.0) / 3.0),
    ];
    assert_all("fsmark-verbose.txt", "fsmark", &expected);
}

#[test]
fn stress_ng_tables() {
    let xattr = |ops, rate| [("xattr.ops", ops), ("xattr.ops_per_sec", rate)];
    assert_all("stress-ng.txt", "stress-ng", &xattr(535.0, 266.46));
    assert_all(
        "stress-ng-timestamp.log",
        "stress-ng",
        &xattr(447.0, 446.89),
    );
    assert_all(
        "stress-ng-log-brief.txt",
        "stress-ng",
        &xattr(248.0, 247.52),
    );
    // Scientific notation, and the CPU times of `--times` after the table.
    assert_all("stress-ng-brief.txt", "stress-ng", &xattr(243.0, 241.233));
}

#[test]
fn stress_ng_before_0_15_said_info() {
    let text = "\
stress-ng: info:  [26] stressor       bogo ops real time  usr time  sys time   bogo ops/s   bogo ops/s
stress-ng: info:  [26]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: info:  [26] xattr              1544     60.03      0.85   2845.44        25.72         0.54
stress-ng: info:  [26] stream          5372.21 memory rate (MB per sec) (average per stressor)
stress-ng: info:  [26] for a 60.05s run time:
stress-ng: info:  [26] load average: 157.53 303.16 161.49
";
    let expected = [
        ("xattr.ops", 1544.0),
        ("xattr.ops_per_sec", 25.72),
        ("stream.memory_rate_MB_per_sec", 5372.21),
    ];
    let results = recognise(text, &[]);
    assert_values(&results, "stress-ng", &expected);
    assert_eq!(results.metrics.len(), expected.len());
}

#[test]
fn stress_ng_miscellaneous_metrics() {
    let expected = [
        ("dentry.ops", 18432.0),
        ("dentry.ops_per_sec", 17632.10),
        ("dentry.nanosecs_per_file_creation", 13293.69),
        ("dentry.nanosecs_per_file_access", 1554.83),
        ("dentry.nanosecs_per_bogus_file_access", 2889.58),
        ("dentry.nanosecs_per_bogus_file_unlink", 3482.38),
    ];
    assert_all("stress-ng-dentry.txt", "stress-ng", &expected);
    let expected = [
        ("dentry.ops", 18432.0),
        ("dentry.ops_per_sec", 17632.101235),
    ];
    assert_all("stress-ng-dentry.yaml", "stress-ng", &expected);
}

#[test]
fn stress_ng_idle_stressor_is_a_problem() {
    let results = recognise(&output("stress-ng-memrate.txt"), &[]);
    assert_values(
        &results,
        "stress-ng",
        &[("memrate.write64stoq_MB_per_sec", 5320.98)],
    );
    assert_eq!(results.metrics.get("stress-ng.memrate.ops"), None);
    let problem = "stress-ng: memrate did no bogo operation; run it longer, or see what it says";
    assert_eq!(results.problems, [problem]);
}

#[test]
fn other_text_is_nothing() {
    assert_eq!(recognise("", &[]), Results::default());
    assert_eq!(
        recognise("make: Nothing to be done for 'all'.\n", &[]),
        Results::default()
    );
}

#[test]
fn missing_results_name_the_remedy() {
    let command = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let of = |text: &str, words: &[&str]| recognise(text, &command(words)).problems.join("\n");
    assert!(of("", &["stress-ng", "--xattr", "1"]).contains("--stdout"));
    assert!(of("", &["sh", "-c", "fio job.fio --output=x"]).contains("--results"));
    assert!(of("dbench version 4.00 - Copyright\n", &[]).contains("let it run to its end"));
    let json = output("fio.json");
    let cut = of(&json[..json.len() / 2], &[]);
    assert!(cut.contains("its JSON is broken"), "{cut}");
}

#[test]
fn several_benchmarks_in_one_text() {
    let text = output("dbench.txt") + &output("fsmark.txt") + &output("stress-ng.txt");
    let results = recognise(&text, &["fs_mark".to_owned()]);
    assert_values(&results, "fsmark", &[("files_per_sec", 452.7)]);
    assert_eq!(results.metrics.get("dbench.throughput_MB/s"), Some(&104.39));
    assert_eq!(results.metrics.get("stress-ng.xattr.ops"), Some(&535.0));
    assert_eq!(recognise(&text, &[]).recognised, Some("dbench"));
}

/// A text as it comes through a terminal has the same results.
#[test]
fn carriage_returns() {
    for entry in std::fs::read_dir(outputs()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let terminal = format!("Jobs: 1 (f=1)\r{}", text.replace('\n', "\r\n"));
        assert_eq!(recognise(&terminal, &[]), recognise(&text, &[]));
    }
}

fn real_output() -> impl Strategy<Value = String> {
    let files = std::fs::read_dir(outputs()).unwrap();
    let mut texts: Vec<String> = files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    texts.sort();
    proptest::sample::select(texts)
}

proptest! {
    #[test]
    fn any_text_is_read(text in "\\PC*") {
        let results = recognise(&text, &[]);
        prop_assert!(results.recognised.is_some() || results == Results::default());
    }

    /// Real outputs, damaged: cut in two places and filled with something else.
    #[test]
    fn damaged_output_is_read(
        text in real_output(),
        from in any::<prop::sample::Index>(),
        len in 0usize..40,
        filling in "[-0-9.eE%=:,\\[\\](){} a-zµ\\n]{0,20}",
    ) {
        let from = from.index(text.len());
        let to = (from + len).min(text.len());
        let damaged = format!("{}{filling}{}", &text[..from], &text[to..]);
        for (name, value) in recognise(&damaged, &[]).metrics {
            prop_assert!(value.is_finite(), "{name}: {value}");
        }
    }
}
