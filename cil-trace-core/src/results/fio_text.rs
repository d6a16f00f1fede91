//! fio 3's human-readable output, turned into the [`Job`]s that its JSON holds.
//!
//! Less exact than JSON (rates are rounded to three digits, latency classes without I/O are left
//! out); must not name metrics, which [`fio`](super::fio) does for both.

use super::fio::{Job, Latency};
use super::{lines, number};

pub(super) fn recognises(text: &str) -> bool {
    lines(text).any(|line| job(line).is_some())
}

/// The jobs or groups in the text, with what could be read of each.
pub(super) fn jobs(text: &str) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut section = Section::Other;
    // Factor of the percentiles that follow.
    let mut percentiles = None;
    for line in lines(text) {
        if let Some(job) = job(line) {
            // With `--status-interval` each state is printed in full; the last one counts.
            if section == Section::Done {
                jobs.clear();
            }
            jobs.push(job);
            section = Section::Other;
            continue;
        }
        let line = line.trim_start();
        // The summary of a group repeats its jobs.
        if line.starts_with("Run status group") {
            section = Section::Done;
        }
        let Some(job) = jobs.last_mut().filter(|_| section != Section::Done) else {
            continue;
        };
        if let Some(next) = Section::of(line) {
            section = next;
            percentiles = None;
        }
        if let Some(totals) = line.strip_prefix("issued rwts: total=") {
            totals_into(job, totals);
        } else if line.starts_with("lat (") && line.contains('%') {
            classes_into(job, line);
        }
        let direction = match section {
            Section::Read => job.read.get_or_insert_default(),
            Section::Write => job.write.get_or_insert_default(),
            Section::Other | Section::Done => continue,
        };
        if line.contains("IOPS=") {
            direction.iops = value_of(line, "IOPS=").and_then(scaled).unwrap_or(0.0);
            direction.bw = value_of(line, "BW=").and_then(kib_per_s).unwrap_or(0.0);
        } else if line.starts_with("slat (") {
            direction.slat_ns = latency(line);
        } else if line.starts_with("clat (") {
            direction.clat_ns = latency(line);
        } else if line.contains("percentiles (") {
            percentiles = unit_ns(line).filter(|_| line.starts_with("clat "));
        } else if let (Some(to_ns), Some(clat)) = (percentiles, direction.clat_ns.as_mut())
            && let Some(line) = line.strip_prefix('|')
        {
            percentiles_into(clat, line, to_ns);
        }
    }
    jobs
}

/// What the lines of a job are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Read,
    Write,
    /// Trims, syncs, and what is not about one kind of I/O.
    Other,
    /// After the jobs.
    Done,
}

impl Section {
    /// The section that a line opens.
    fn of(line: &str) -> Option<Self> {
        let openings = [
            ("read:", Self::Read),
            ("write:", Self::Write),
            ("trim:", Self::Other),
            ("fsync/fdatasync", Self::Other),
            ("cpu ", Self::Other),
        ];
        openings
            .into_iter()
            .find(|(start, _)| line.starts_with(start))
            .map(|(_, section)| section)
    }
}

/// `name: (groupid=0, jobs=1): err= 0: pid=...`
fn job(line: &str) -> Option<Job> {
    let (jobname, rest) = line.split_once(": (groupid=")?;
    let (_, rest) = rest.split_once("): err=")?;
    let error = rest
        .trim_start()
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()?;
    Some(Job {
        jobname: jobname.to_owned(),
        error,
        ..Job::default()
    })
}

/// What follows `key`, up to a separator.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(key)?;
    rest.trim_start().split([',', ' ', '(']).next()
}

/// `60.2k`: powers of 1000.
fn scaled(text: &str) -> Option<f64> {
    let scales = [("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let scale = scales
        .iter()
        .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, scale)));
    scale.map_or_else(
        || number(text),
        |(digits, scale)| Some(number(digits)? * scale),
    )
}

/// `235MiB/s`, or with `kb_base=1000` `235MB/s`.
fn kib_per_s(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let bytes = match &text[digits.len()..] {
        "B/s" => 1.0,
        "KiB/s" => 1024.0,
        "MiB/s" => 1024.0 * 1024.0,
        "GiB/s" => 1024.0 * 1024.0 * 1024.0,
        "kB/s" => 1e3,
        "MB/s" => 1e6,
        "GB/s" => 1e9,
        _ => return None,
    };
    Some(number(digits)? * bytes / 1024.0)
}

/// The factor that makes the line's `(usec)` nanoseconds.
fn unit_ns(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once('(')?;
    match rest.split_once(')')?.0 {
        "nsec" => Some(1.0),
        "usec" => Some(1e3),
        "msec" => Some(1e6),
        _ => None,
    }
}

/// `clat (usec): min=24, max=214, avg=30.37, stdev= 9.11`
fn latency(line: &str) -> Option<Latency> {
    let to_ns = unit_ns(line)?;
    let mean = value_of(line, "avg=").and_then(scaled)? * to_ns;
    let stddev = value_of(line, "stdev=").and_then(scaled)? * to_ns;
    Some(Latency {
        mean,
        stddev,
        ..Latency::default()
    })
}

/// `90.00th=[   33], 95.00th=[   35],`
fn percentiles_into(latency: &mut Latency, line: &str, to_ns: f64) {
    for entry in line.split(',') {
        if let Some((percent, value)) = entry.split_once("th=[")
            && let Some(value) = number(value.trim_end().trim_end_matches(']').trim_start())
        {
            latency
                .percentile
                .insert(percent.trim().to_owned(), value * to_ns);
        }
    }
}

/// `lat (usec)   : 50=98.54%, >=2000=0.01%`
fn classes_into(job: &mut Job, line: &str) {
    let classes = match unit_ns(line) {
        Some(1e3) => &mut job.latency_us,
        Some(1e6) => &mut job.latency_ms,
        // LKP has no names for classes below a microsecond.
        _ => return,
    };
    let Some((_, entries)) = line.split_once(':') else {
        return;
    };
    for entry in entries.split(',') {
        if let Some((edge, share)) = entry.trim().rsplit_once('=')
            && let Some(share) = share.strip_suffix('%').and_then(number)
        {
            classes.insert(edge.to_owned(), share);
        }
    }
}

/// `1024,512,0,127 short=...`: reads, writes, trims, syncs.
fn totals_into(job: &mut Job, totals: &str) {
    let mut counts = totals.split([',', ' ']).map(number);
    for direction in [&mut job.read, &mut job.write] {
        if let (Some(Some(count)), Some(direction)) = (counts.next(), direction) {
            direction.total_ios = count;
        }
    }
}
