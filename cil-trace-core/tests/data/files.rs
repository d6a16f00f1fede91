//! Recordings as files: what is in the way, what is not one, and what a kill leaves.

use crate::sample;
use cil_trace_core::model::Model;
use cil_trace_core::recording::{Recording, RecordingError, Writer};
use cil_trace_core::session::Header;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn files(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// What `kill -9` leaves after two ticks: the files as they are while the writer lives.
fn killed() -> (TempDir, PathBuf) {
    let scene = tempfile::tempdir().unwrap();
    let path = scene.path().join("r.data");
    let mut writer = Writer::create(&path, &sample::header()).unwrap();
    for tick in sample::ticks() {
        writer.tick(&tick).unwrap();
    }
    let image = tempfile::tempdir().unwrap();
    for name in files(&scene) {
        fs::copy(scene.path().join(&name), image.path().join(&name)).unwrap();
    }
    let path = image.path().join("r.data");
    (image, path)
}

fn open_error(path: &Path) -> RecordingError {
    Recording::open(path).unwrap_err()
}

#[test]
fn a_finished_recording_is_one_private_file() {
    let (directory, path) = sample::recorded();
    assert_eq!(files(&directory), ["r.data"]);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn it_can_be_read_while_it_grows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.data");
    let mut writer = Writer::create(&path, &sample::header()).unwrap();
    let ticks = sample::ticks();
    for (index, tick) in ticks.iter().enumerate() {
        writer.tick(tick).unwrap();
        let recording = Recording::open(&path).unwrap();
        assert_eq!(recording.model().unwrap().ticks().len(), index + 1);
        assert!(recording.interrupted());
    }
    writer.finish(&sample::footer()).unwrap();
    assert_eq!(files(&directory), ["r.data"]);
}

#[test]
fn the_header_may_follow() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.data");
    let mut writer = Writer::create(&path, &Header::default()).unwrap();
    writer.header(&sample::header()).unwrap();
    writer.finish(&sample::footer()).unwrap();
    assert_eq!(Recording::open(&path).unwrap().header(), &sample::header());
}

#[test]
fn after_a_kill_every_tick_is_there() {
    let (directory, path) = killed();
    let recording = Recording::open(&path).unwrap();
    assert!(recording.interrupted());
    assert!(recording.hint().unwrap().contains("r.data-wal"));
    let mut expected = Model::new(sample::header());
    for tick in sample::ticks() {
        expected.apply(&tick);
    }
    assert_eq!(recording.model().unwrap(), expected);
    drop(recording);
    assert_eq!(files(&directory), ["r.data", "r.data-shm", "r.data-wal"]);
}

#[test]
fn without_its_wal_it_still_opens_and_says_so() {
    let (_directory, path) = killed();
    fs::remove_file(with_suffix(&path, "-wal")).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.header(), &sample::header());
    assert!(recording.hint().unwrap().contains("no "));
}

#[test]
fn an_earlier_recording_becomes_old_and_stays_whole() {
    let (directory, path) = killed();
    let old = with_suffix(&path, ".old");
    let writer = Writer::create(&path, &Header::default()).unwrap();
    let ticks = Recording::open(&old)
        .unwrap()
        .model()
        .unwrap()
        .ticks()
        .len();
    assert_eq!(ticks, sample::ticks().len());
    writer.finish(&sample::footer()).unwrap();
    // And once more, over both.
    let writer = Writer::create(&path, &sample::header()).unwrap();
    writer.finish(&sample::footer()).unwrap();
    assert!(!Recording::open(&old).unwrap().interrupted());
    assert_eq!(files(&directory), ["r.data", "r.data.old"]);
}

#[test]
fn a_discarded_recording_gives_the_earlier_one_its_name_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.data");
    Writer::create(&path, &sample::header()).unwrap().discard();
    assert!(files(&directory).is_empty());

    let writer = Writer::create(&path, &sample::header()).unwrap();
    writer.finish(&sample::footer()).unwrap();
    let earlier = fs::read(&path).unwrap();
    Writer::create(&path, &sample::header()).unwrap().discard();
    assert_eq!(files(&directory), ["r.data"]);
    assert_eq!(fs::read(&path).unwrap(), earlier);
}

#[test]
fn a_wal_left_alone_is_not_taken_for_that_of_the_new_recording() {
    let (_directory, path) = killed();
    fs::remove_file(&path).unwrap();
    let writer = Writer::create(&path, &Header::default()).unwrap();
    writer.finish(&sample::footer()).unwrap();
    let model = Recording::open(&path).unwrap().model().unwrap();
    assert_eq!(model.ticks(), []);
}

#[test]
fn a_recording_that_is_being_made_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.data");
    let mut writer = Writer::create(&path, &sample::header()).unwrap();
    let error = Writer::create(&path, &Header::default()).unwrap_err();
    assert!(matches!(error, RecordingError::InUse { .. }), "{error}");
    for tick in sample::ticks() {
        writer.tick(&tick).unwrap();
    }
    writer.finish(&sample::footer()).unwrap();
    let model = Recording::open(&path).unwrap().model().unwrap();
    assert_eq!(model.ticks().len(), sample::ticks().len());
}

#[test]
fn what_is_not_a_recording_is_neither_read_nor_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious");
    fs::write(&path, "a thesis, ".repeat(500)).unwrap();
    let other = directory.path().join("places.sqlite");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE t (a)")
        .unwrap();
    for path in [
        &path,
        &other,
        &directory.path().to_owned(),
        &PathBuf::from("/dev/null"),
    ] {
        let before = fs::read(path).unwrap_or_default();
        let error = open_error(path);
        assert!(
            matches!(error, RecordingError::NotARecording { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains("cil-trace record -o FILE"),
            "{error}"
        );
        let error = Writer::create(path, &Header::default()).unwrap_err();
        assert!(
            matches!(error, RecordingError::WouldOverwrite { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("-o FILE"), "{error}");
        assert_eq!(fs::read(path).unwrap_or_default(), before);
    }
    assert_eq!(files(&directory), ["places.sqlite", "precious"]);
}

#[test]
fn nor_is_another_file_named_old() {
    let (_directory, path) = sample::recorded();
    let old = with_suffix(&path, ".old");
    fs::write(&old, "precious").unwrap();
    let error = Writer::create(&path, &Header::default()).unwrap_err();
    assert!(error.to_string().contains("r.data.old exists"), "{error}");
    assert_eq!(fs::read(&old).unwrap(), b"precious");
    assert!(!Recording::open(&path).unwrap().interrupted());
}

#[test]
fn an_empty_file_may_be_replaced() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(open_error(file.path()).to_string().contains("it is empty"));
    Writer::create(file.path(), &Header::default())
        .unwrap()
        .finish(&sample::footer())
        .unwrap();
    assert!(!Recording::open(file.path()).unwrap().interrupted());
    fs::remove_file(with_suffix(file.path(), ".old")).unwrap();
}

#[test]
fn names_that_mean_something_to_sqlite_are_just_names() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["file:r?mode=memory", ":memory:", "50% of #1"] {
        let path = directory.path().join(name);
        Writer::create(&path, &sample::header())
            .unwrap()
            .finish(&sample::footer())
            .unwrap();
        assert!(!Recording::open(&path).unwrap().interrupted());
    }
    assert_eq!(files(&directory).len(), 3);
}

#[test]
fn a_missing_file_and_a_missing_directory_name_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none/r.data");
    let error = open_error(&path);
    assert!(matches!(error, RecordingError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("cil-trace record"), "{error}");
    let error = Writer::create(&path, &Header::default()).unwrap_err();
    assert!(matches!(error, RecordingError::Create { .. }), "{error}");
    assert!(error.to_string().contains("-o FILE"), "{error}");
}

#[test]
fn a_later_schema_is_refused_and_later_names_are_skipped() {
    let (_directory, path) = sample::recorded();
    let known = Recording::open(&path).unwrap().model().unwrap();
    let database = Connection::open(&path).unwrap();
    database
        .execute_batch(
            "INSERT INTO counters VALUES (0, 'commits_by_fairies', 'loop0', NULL, NULL, NULL, 1);
             INSERT INTO counters VALUES (0, 'forces', 'loop0', 'log-force:whim', NULL, NULL, 1);
             INSERT INTO counters VALUES (0, 'commits', 'no such', NULL, NULL, NULL, 1);
             INSERT INTO histograms VALUES (0, 'grant_wait', 'loop0', NULL, NULL, NULL, 1, 1, 1, 1, '[[');
             INSERT INTO events_seen VALUES (0, x'ff', 1);
             INSERT INTO losses VALUES (1, 'commits', 'cosmic rays', 1);
             INSERT INTO meta VALUES ('moon_phase', '\"full\"');",
        )
        .unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.for_each_tick(|_| ()).unwrap(), 6);
    let model = recording.model().unwrap();
    assert_eq!(model.rows_skipped(), 6);
    assert!(
        model
            .counters(cil_trace_common::metric::Metric::Forces)
            .eq(known.counters(cil_trace_common::metric::Metric::Forces))
    );
    drop(recording);
    database.pragma_update(None, "user_version", 999).unwrap();
    let error = open_error(&path);
    assert!(
        matches!(error, RecordingError::Newer { found: 999, .. }),
        "{error}"
    );
}
