//! LKP's table to the byte. The expected text follows lkp-tests `lib/compare.rb`: `%10.2f` and its
//! kin, `±%3d%%`, `%+10.1f%% `; it holds the trailing spaces that LKP prints.

use crate::sample::{compared, side, table};
use cil_trace_core::compare::style::Style;
use cil_trace_core::compare::{Comparison, Options};

/// Lines with a mark at their ends, so that spaces there are seen.
fn marked(text: &str) -> String {
    text.lines().map(|line| format!("{line}$\n")).collect()
}

#[track_caller]
fn is(comparison: &Comparison, expected: &str) {
    let got = marked(&table(Style::Lkp, comparison));
    assert_eq!(got, expected, "\n{got}");
}

#[test]
fn two_sides() {
    let comparison = compared(&[
        (
            "4f97f75a5bfa79ba",
            r#"{"stress-ng.sockmany.ops": [4057584, 4057584, 4057584],
                "stress-ng.sockmany.ops_per_sec": [67264.4, 67264.9],
                "stress-ng.time.elapsed_time": [60.2, 60.2],
                "perf-c2c.HITM.local": [10962, 10534, 10962],
                "perf-c2c.HITM.remote": [13000, 14529.9],
                "mpstat.cpu.all.irq%": [0.6, 0.63, 0.61],
                "mpstat.cpu.all.usr%": [0.42],
                "perf-profile.children.cycles-pp.b": [10, 10.2],
                "perf-profile.children.cycles-pp.a": [5, 5],
                "perf-stat.i.branch-instructions": [833000000, 833000000],
                "numa-meminfo.node1.Unevictable": [3292000, 192278]}"#,
        ),
        (
            "ba6c94b99d772f431fd589dd2cd0",
            r#"{"stress-ng.sockmany.ops": [4340521, 4340521, 4340521],
                "stress-ng.sockmany.ops_per_sec": [71933, 71933],
                "stress-ng.time.elapsed_time": [60.2, 60.2],
                "perf-c2c.HITM.local": [19034, 18034, 20034],
                "perf-c2c.HITM.remote": [663.667, 663.667],
                "mpstat.cpu.all.irq%": [0.71, 0.69, 0.73],
                "mpstat.cpu.all.usr%": [0.46],
                "perf-profile.children.cycles-pp.b": [12, 12],
                "perf-profile.children.cycles-pp.a": [5.5, 5.5],
                "perf-stat.i.branch-instructions": [123456789012, 123456789012],
                "numa-meminfo.node1.Unevictable": [146373, 20000]}"#,
        ),
    ]);
    is(
        &comparison,
        "\
=========================================================================================$
commit: $
  4f97f75a5bfa79ba$
  ba6c94b99d772f431fd589dd2cd0$
$
4f97f75a5bfa79ba ba6c94b99d772f431fd589dd2cd $
---------------- --------------------------- $
         %stddev     %change         %stddev$
             \\          |                \\  $
   4057584            +7.0%    4340521        stress-ng.sockmany.ops$
     67264            +6.9%      71933        stress-ng.sockmany.ops_per_sec$
     60.20            +0.0%      60.20        stress-ng.time.elapsed_time$
   1742139 ± 88%     -95.2%      83186 ± 75%  numa-meminfo.node1.Unevictable$
  8.33e+08        +14720.7%  1.235e+11        perf-stat.i.branch-instructions$
      0.61 ±  2%      +0.1        0.71 ±  2%  mpstat.cpu.all.irq%$
      0.42            +0.0        0.46        mpstat.cpu.all.usr%$
     10819           +75.9%      19034 ±  4%  perf-c2c.HITM.local$
     13764 ±  5%     -95.2%     663.67        perf-c2c.HITM.remote$
      5.00            +0.5        5.50        perf-profile.children.cycles-pp.a$
     10.10            +1.9       12.00        perf-profile.children.cycles-pp.b$
",
    );
}

#[test]
fn three_sides() {
    // The means and deviations of a table of July 2022; population deviation, printed truncated.
    let comparison = compared(&[
        (
            "v5.18",
            r#"{"stress-ng.time.involuntary_context_switches": [1747, 1842, 1937],
                      "stress-ng.xattr.ops": [1544, 1544, 1544]}"#,
        ),
        (
            "v5.19-rc2",
            r#"{"stress-ng.time.involuntary_context_switches": [2072.9, 2152.9, 2232.9],
                          "stress-ng.xattr.ops": [2385, 2385, 2385]}"#,
        ),
        (
            "v5.19-rc4-and-something-longer",
            r#"{"stress-ng.time.involuntary_context_switches": [2166.4, 2166.4, 2166.4],
                          "stress-ng.xattr.ops": [2531, 2531, 2531]}"#,
        ),
    ]);
    is(
        &comparison,
        "\
=========================================================================================$
commit: $
  v5.18$
  v5.19-rc2$
  v5.19-rc4-and-something-longer$
$
           v5.18                   v5.19-rc2 v5.19-rc4-and-something-lon $
---------------- --------------------------- --------------------------- $
         %stddev     %change         %stddev     %change         %stddev$
             \\          |                \\          |                \\  $
      1842 ±  4%     +16.9%       2152 ±  3%     +17.6%       2166        stress-ng.time.involuntary_context_switches$
      1544           +54.5%       2385           +63.9%       2531        stress-ng.xattr.ops$
",
    );
}

#[test]
fn several_cases_are_headed_by_their_mean() {
    let cases = |a: &str, b: &str, c: &str| {
        [
            ("disk_rd", a.to_owned()),
            ("disk_rr", b.to_owned()),
            ("disk_wrt", c.to_owned()),
        ]
    };
    let make = |label: &str, cases: [(&str, String); 3]| {
        side(
            label,
            &cases.each_ref().map(|(name, json)| (*name, json.as_str())),
        )
    };
    let base = make(
        "base",
        cases(
            r#"{"aim7.jobs-per-min": [100, 100]}"#,
            r#"{"aim7.jobs-per-min": [400, 400], "aim7.time.elapsed_time": [30, 31]}"#,
            r#"{"aim7.jobs-per-min": [0, 0], "aim7.time.elapsed_time": [30, 31]}"#,
        ),
    );
    let fix = make(
        "fix",
        cases(
            r#"{"aim7.jobs-per-min": [200, 200]}"#,
            r#"{"aim7.jobs-per-min": [800, 800], "aim7.time.elapsed_time": [15, 15.5]}"#,
            r#"{"aim7.jobs-per-min": [3, 3]}"#,
        ),
    );
    let comparison = Comparison::of(vec![base, fix], Options::default()).unwrap();
    is(
        &comparison,
        "\
=========================================================================================$
commit: $
  base$
  fix$
$
            base                         fix testcase/testparams/testbox$
---------------- --------------------------- ---------------------------$
         %stddev     %change         %stddev$
             \\          |                \\  $
    200.00          +100.0%     400.00        GEO-MEAN aim7.jobs-per-min$
    100.00          +100.0%     200.00        disk_rd$
    400.00          +100.0%     800.00        disk_rr$
      0.00             new        3.00        disk_wrt$
     30.50           -50.0%      15.25        GEO-MEAN aim7.time.elapsed_time$
     30.50           -50.0%      15.25        disk_rr$
     30.50                           -        disk_wrt$
",
    );
}

#[test]
fn what_has_no_change_in_percent_gets_none() {
    let comparison = compared(&[
        (
            "a",
            r#"{"t.same": [0, 0], "t.new": [0, 0], "t.gone": [3, 3], "t.left": [1], "t.minus": [-1000, -3000], "t.huge": [0.001]}"#,
        ),
        (
            "b",
            r#"{"t.same": [0, 0], "t.new": [5, 5], "t.gone": [0, 0], "t.right": [2], "t.minus": [-1000, -1000], "t.huge": [1000000]}"#,
        ),
    ]);
    let text = marked(&table(Style::Lkp, &comparison));
    let rows: Vec<&str> = text.lines().skip(9).collect();
    assert_eq!(
        rows,
        [
            "      3.00          -100.0%       0.00        t.gone$",
            "      0.00          +1e+11%    1000000        t.huge$",
            "      1.00                           -        t.left$",
            "     -2000           -50.0%      -1000        t.minus$",
            "      0.00             new        5.00        t.new$",
            "         -                        2.00        t.right$",
            "      0.00            +0.0%       0.00        t.same$",
        ]
    );
}

/// A matrix of so many runs, of which the first few had each failure.
fn failed(runs: usize, failures: &[(&str, usize)], measured: &str) -> String {
    let lists = failures
        .iter()
        .map(|(name, count)| format!(r#""{name}": {:?}, "#, vec![1; *count]));
    let lists: String = lists.collect();
    let sources = vec!["stats.json"; runs];
    format!(r#"{{{lists}{measured}"stats_source": {sources:?}}}"#)
}

#[test]
fn failures_are_counted_in_runs() {
    // The rows of a report of February 2024.
    let contending = "dmesg.WARNING:at_kernel/sched/deadline.c:#task_contending";
    let other = "dmesg.WARNING:at_kernel/sched/deadline.c:#task_non_contending";
    let base = failed(30, &[(other, 2)], "");
    let side = failed(30, &[(contending, 6), (other, 6)], "");
    is(
        &compared(&[("8384c98fed8762cf", &base), ("0e52e2609c893e6e423dfcdbeab", &side)]),
        "\
=========================================================================================$
commit: $
  8384c98fed8762cf$
  0e52e2609c893e6e423dfcdbeab$
$
8384c98fed8762cf 0e52e2609c893e6e423dfcdbeab $
---------------- --------------------------- $
       fail:runs  %reproduction    fail:runs$
           |             |             |    $
           :30          20%           6:30    dmesg.WARNING:at_kernel/sched/deadline.c:#task_contending$
          2:30          13%           6:30    dmesg.WARNING:at_kernel/sched/deadline.c:#task_non_contending$
",
    );
}

#[test]
fn failures_stand_before_what_was_measured() {
    // Of a report of May 2023. The run that was cut short counts among the failures only.
    let cut = &[
        ("last_state.booting", 1),
        ("last_state.is_incomplete_run", 1),
    ];
    let measured = |value: f64, runs: usize| {
        format!(r#""filebench.sum_operations/s": {:?}, "#, vec![value; runs])
    };
    let base = failed(25, &[], &measured(515.95, 25));
    let bad = failed(3, &[], &measured(257.98, 3));
    let fix = failed(3, cut, &measured(515.92, 3));
    let comparison = compared(&[
        ("dcb45fd7f501f864", &base),
        ("v6.3-rc2", &bad),
        ("32715af441411a5a266606be08f", &fix),
    ]);
    is(
        &comparison,
        "\
=========================================================================================$
commit: $
  dcb45fd7f501f864$
  v6.3-rc2$
  32715af441411a5a266606be08f$
$
dcb45fd7f501f864                    v6.3-rc2 32715af441411a5a266606be08f $
---------------- --------------------------- --------------------------- $
       fail:runs  %reproduction    fail:runs  %reproduction    fail:runs$
           |             |             |             |             |    $
           :25           0%            :3           33%           1:3     last_state.booting$
           :25           0%            :3           33%           1:3     last_state.is_incomplete_run$
         %stddev     %change         %stddev     %change         %stddev$
             \\          |                \\          |                \\  $
    515.95           -50.0%     257.98            -0.0%     515.92        filebench.sum_operations/s$
",
    );
    assert_eq!(comparison.sides[2].runs, (2, 2));
    assert_eq!(comparison.rows[2].cells[2].values.len(), 2);
}
