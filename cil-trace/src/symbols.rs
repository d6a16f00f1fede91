//! Names of programs' functions, found while recording: afterwards the programs may be gone.
//!
//! A thread of its own follows what processes map and reads their files, so that no tick waits for
//! debug information. Names come with a later tick than the stack's first.

mod files;
mod records;

pub use records::Records;

use cil_trace_core::code::{Code, Place};
use cil_trace_core::tick::Stack;
use files::Files;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the records are taken out: more often than they fill their buffer, and soon enough to
/// see most processes alive.
const DRAIN: Duration = Duration::from_millis(50);
/// Programs that ended so long ago are forgotten: no tick takes longer to ask for their stacks.
const KEPT_NS: u64 = 30_000_000_000;
/// Stands for code of which nothing is known.
const UNKNOWN: &str = "[unknown]";

/// A stack to be named.
#[derive(Debug)]
pub struct Question {
    /// Its number in the recording.
    pub id: u32,
    /// Process id.
    pub pid: u32,
    /// When the process was seen with it, CLOCK_MONOTONIC nanoseconds.
    pub at_ns: u64,
    /// Addresses, leaf first.
    pub addresses: Vec<u64>,
}

/// The thread that names stacks.
#[derive(Debug)]
pub struct UserSymbols {
    /// `None` once it has been told to end.
    questions: Option<Sender<Question>>,
    answers: Receiver<Stack>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl UserSymbols {
    /// Begins to follow what processes map.
    #[must_use]
    pub fn start(records: Records) -> Self {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let thread = thread::spawn(move || follow(records, &asked, &answer, &counted));
        Self {
            questions: Some(questions),
            answers,
            lost,
            thread: Some(thread),
        }
    }

    /// Asks for a stack's names.
    pub fn ask(&self, question: Question) {
        if let Some(questions) = &self.questions {
            // If the thread has panicked, its stacks stay without names.
            let _ = questions.send(question);
        }
    }

    /// The stacks that have been named meanwhile.
    pub fn answers(&self) -> impl Iterator<Item = Stack> {
        self.answers.try_iter()
    }

    /// The stacks that are still to be named, once they are.
    pub fn last_answers(&mut self) -> Vec<Stack> {
        self.questions = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::warn!("naming programs' functions failed; their frames have no names");
        }
        self.answers.try_iter().collect()
    }

    /// Records of mappings that were lost so far: frames of these processes may have no names.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

fn follow(
    mut records: Records,
    questions: &Receiver<Question>,
    answers: &Sender<Stack>,
    lost: &AtomicU64,
) {
    let mut code = Code::default();
    // First, as the records tell what becomes of it.
    records::mapped_now()
        .iter()
        .for_each(|change| code.apply(change));
    let mut files = Files::new();
    loop {
        let first = questions.recv_timeout(DRAIN);
        let ended = matches!(first, Err(RecvTimeoutError::Disconnected));
        let asked: Vec<_> = first.into_iter().chain(questions.try_iter()).collect();
        let complete_ns = records.take(|change| code.apply(&change));
        lost.store(records.lost(), Ordering::Relaxed);
        name(&code, &mut files, &asked, answers);
        code.forget_before(complete_ns.saturating_sub(KEPT_NS));
        if ended {
            break;
        }
    }
}

/// Names stacks; those of one file together, as reading it takes longest.
fn name(code: &Code, files: &mut Files, asked: &[Question], answers: &Sender<Stack>) {
    let places: Vec<Vec<(u64, Option<Place>)>> = asked
        .iter()
        .map(|question| {
            let frames = question.addresses.iter().enumerate();
            frames
                .map(|(depth, &address)| {
                    // A return address may stand behind the end of the function that called.
                    let call = address.saturating_sub(u64::from(depth > 0));
                    (call, code.find(question.pid, question.at_ns, call))
                })
                .collect()
        })
        .collect();
    let wanted = asked.iter().zip(&places).flat_map(|(question, places)| {
        let places = places.iter().filter_map(|(_, place)| place.as_ref());
        places.map(|place| (question.pid, place))
    });
    files.read(wanted);
    for (question, places) in asked.iter().zip(places) {
        let mut frames = Vec::new();
        for (address, place) in places {
            let Some(place) = place else {
                // No code stands there: this and what is further out was read from a stack without
                // frame pointers, and is no caller.
                frames.push(UNKNOWN.to_owned());
                break;
            };
            match files.names(question.pid, address, &place) {
                Some(names) => frames.extend(names),
                None => frames.push(stand_in(&place.file.path)),
            }
        }
        let id = question.id;
        // Nobody waits for it any more.
        let _ = answers.send(Stack { id, frames });
    }
}

/// What is shown for a function without a name: its file, as in perf and FlameGraph.
fn stand_in(path: &str) -> String {
    if path.starts_with('[') {
        return path.to_owned();
    }
    match Path::new(path).file_name() {
        Some(name) if path.starts_with('/') && !path.starts_with("//") => {
            format!("[{}]", name.to_string_lossy())
        }
        _ => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::stand_in;

    #[test]
    fn a_function_without_a_name_is_shown_by_its_file() {
        for (path, expected) in [
            ("/usr/lib/libc.so.6", "[libc.so.6]"),
            ("/tmp/x (deleted)", "[x (deleted)]"),
            ("[vdso]", "[vdso]"),
            ("//anon", "[unknown]"),
            ("", "[unknown]"),
        ] {
            assert_eq!(stand_in(path), expected);
        }
    }
}
