//! The tables and views of a recording.
//!
//! Names instead of numbers and units in column names, so that `sqlite3` alone can read it; a
//! test keeps `docs/recording.md` complete. Not `STRICT`, which SQLite before 3.37 cannot open.

/// Marks a file as ours: `CILt` in ASCII.
pub(super) const APPLICATION_ID: u32 = 0x4349_4c74;

/// Every table and view.
///
/// The tables of a tick are indexed by it, because replay reads tick by tick.
pub(super) const CREATE: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE probes (probe TEXT PRIMARY KEY, outcome TEXT NOT NULL, how TEXT NOT NULL, reason TEXT NOT NULL);

CREATE TABLE ticks (
    tick INTEGER PRIMARY KEY, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
    in_flight INTEGER, bpf_run_ns INTEGER, own_ns INTEGER,
    sampled_1_in INTEGER);
CREATE TABLE probe_changes (
    tick INTEGER NOT NULL, probe TEXT NOT NULL, outcome TEXT NOT NULL, how TEXT NOT NULL,
    reason TEXT NOT NULL);
CREATE TABLE devices (
    tick INTEGER, device TEXT NOT NULL, major INTEGER NOT NULL, minor INTEGER NOT NULL,
    partition_of TEXT, filesystem TEXT, mountpoint TEXT, write_cache TEXT, fua INTEGER,
    request_based INTEGER, stacked_on TEXT NOT NULL, log_size_bytes INTEGER,
    iclog_size_bytes INTEGER, log_device TEXT, realtime_device TEXT,
    mount_options TEXT, geometry TEXT);
CREATE TABLE counters (
    tick INTEGER NOT NULL, metric TEXT NOT NULL, device TEXT, label TEXT, via TEXT, stack INTEGER,
    value INTEGER NOT NULL);
CREATE TABLE histograms (
    tick INTEGER NOT NULL, metric TEXT NOT NULL, device TEXT, label TEXT, via TEXT, stack INTEGER,
    count INTEGER NOT NULL, sum INTEGER NOT NULL, min INTEGER NOT NULL, max INTEGER NOT NULL,
    buckets TEXT NOT NULL);
CREATE TABLE events (
    tick INTEGER NOT NULL, kind TEXT NOT NULL, device TEXT, label TEXT, via TEXT,
    pid INTEGER NOT NULL, tid INTEGER NOT NULL, comm TEXT NOT NULL, workload INTEGER NOT NULL,
    start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, args TEXT NOT NULL, weight REAL);
CREATE TABLE events_seen (tick INTEGER NOT NULL, kind TEXT NOT NULL, seen INTEGER NOT NULL);
CREATE TABLE processes (
    tick INTEGER NOT NULL, pid INTEGER NOT NULL, comm TEXT NOT NULL, workload INTEGER NOT NULL,
    forces INTEGER NOT NULL, flushes_requested INTEGER NOT NULL, log_wait_ns INTEGER NOT NULL,
    lock_wait_ns INTEGER);
CREATE TABLE losses (
    tick INTEGER NOT NULL, probe TEXT NOT NULL, cause TEXT NOT NULL, count INTEGER NOT NULL);
CREATE TABLE stacks (tick INTEGER NOT NULL, stack INTEGER NOT NULL, frames TEXT NOT NULL);
CREATE TABLE stack_sums (
    tick INTEGER NOT NULL, kind TEXT NOT NULL, device TEXT, label TEXT, pid INTEGER, comm TEXT,
    workload INTEGER, kernel_stack INTEGER, user_stack INTEGER, count INTEGER NOT NULL,
    time_ns INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE in_flight (
    tick INTEGER NOT NULL, device TEXT, flushes INTEGER NOT NULL, oldest_ns INTEGER NOT NULL,
    cause TEXT);
CREATE TABLE lock_callers (
    tick INTEGER NOT NULL, lock TEXT NOT NULL, device TEXT, function TEXT NOT NULL,
    count INTEGER NOT NULL);
CREATE TABLE blocked (
    tick INTEGER NOT NULL, lock TEXT NOT NULL, device TEXT, start_ns INTEGER NOT NULL,
    wait_ns INTEGER NOT NULL, waiter_pid INTEGER NOT NULL, waiter_tid INTEGER NOT NULL,
    waiter_comm TEXT NOT NULL, waiter_stack INTEGER, holder_pid INTEGER, holder_tid INTEGER,
    holder_comm TEXT, holder_is_reader INTEGER NOT NULL, holder_stack INTEGER,
    holder_slept_ns INTEGER NOT NULL, next_lock TEXT, next_device TEXT, next_function TEXT,
    next_wait_ns INTEGER, next_pid INTEGER, next_tid INTEGER, next_comm TEXT);

CREATE TABLE workload_metrics (metric TEXT PRIMARY KEY, value REAL);
CREATE TABLE programs (program TEXT PRIMARY KEY, run_ns INTEGER NOT NULL, runs INTEGER NOT NULL);
CREATE TABLE xfs_stats (
    device TEXT PRIMARY KEY, start_text TEXT NOT NULL, end_text TEXT NOT NULL,
    end_ns INTEGER NOT NULL);

CREATE INDEX probe_changes_by_tick ON probe_changes (tick);
CREATE INDEX devices_by_tick ON devices (tick);
CREATE INDEX counters_by_tick ON counters (tick);
CREATE INDEX histograms_by_tick ON histograms (tick);
CREATE INDEX events_by_tick ON events (tick);
CREATE INDEX events_seen_by_tick ON events_seen (tick);
CREATE INDEX processes_by_tick ON processes (tick);
CREATE INDEX losses_by_tick ON losses (tick);
CREATE INDEX stacks_by_tick ON stacks (tick);
CREATE INDEX stacks_by_stack ON stacks (stack);
CREATE INDEX stack_sums_by_tick ON stack_sums (tick);
CREATE INDEX in_flight_by_tick ON in_flight (tick);
CREATE INDEX lock_callers_by_tick ON lock_callers (tick);
CREATE INDEX blocked_by_tick ON blocked (tick);

CREATE VIEW v_session AS
    SELECT meta.key || substr(tree.fullkey, 2) AS field, tree.atom AS value
    FROM meta, json_tree(meta.value) AS tree WHERE tree.atom IS NOT NULL;
CREATE VIEW v_probes AS
    SELECT probe, outcome, how, reason FROM probes
    WHERE probe NOT IN (SELECT probe FROM probe_changes)
    UNION ALL SELECT probe, outcome, how, reason FROM probe_changes
    WHERE rowid IN (SELECT max(rowid) FROM probe_changes GROUP BY probe);
CREATE VIEW v_devices AS
    SELECT * FROM devices WHERE rowid IN (SELECT max(rowid) FROM devices GROUP BY major, minor);
CREATE VIEW v_processes AS
    SELECT * FROM processes WHERE rowid IN (SELECT max(rowid) FROM processes GROUP BY pid)
    AND comm <> '';
CREATE VIEW v_flushes AS
    SELECT device, label AS cause, via,
        sum(iif(metric = 'flush_requested', value, 0)) AS requested,
        sum(iif(metric = 'flush_empty', value, 0)) AS empty,
        sum(iif(metric = 'flush_pointless', value, 0)) AS pointless
    FROM counters WHERE metric IN ('flush_requested', 'flush_empty', 'flush_pointless')
    GROUP BY device, label, via;
CREATE VIEW flush_stacks AS
    SELECT tick, kernel_stack AS stack, device, label AS cause, count
    FROM stack_sums WHERE kind = 'flush';
CREATE VIEW v_stacks AS
    SELECT kind, sum(count) AS count, sum(time_ns) AS time_ns, sum(bytes) AS bytes, device, label,
        comm, workload,
        (SELECT frames FROM stacks WHERE stack = user_stack LIMIT 1) AS user_frames,
        (SELECT frames FROM stacks WHERE stack = kernel_stack LIMIT 1) AS kernel_frames
    FROM stack_sums
    GROUP BY kind, device, label, comm, workload, kernel_stack, user_stack;
CREATE VIEW v_locks AS
    SELECT device, label AS lock, stack, sum(count) AS waits, sum(sum) AS wait_ns, max(max) AS max_ns
    FROM histograms WHERE metric = 'lock_wait' GROUP BY device, label, stack;
CREATE VIEW v_ticks AS
    SELECT ticks.tick, end_ns,
        sum(iif(metric = 'commits', value, 0)) AS commits,
        sum(iif(metric = 'pushes', value, 0)) AS pushes,
        sum(iif(metric = 'forces', value, 0)) AS forces,
        sum(iif(metric = 'flush_requested' AND via IS NULL AND label <> 'fs', value, 0))
            AS flushes_requested,
        sum(iif(metric = 'flush_issued' AND device IN (
            SELECT coalesce(partition_of, device) FROM v_devices WHERE filesystem = 'xfs'
        ), value, 0)) AS flushes_issued
    FROM ticks LEFT JOIN counters ON counters.tick = ticks.tick GROUP BY ticks.tick;
";
