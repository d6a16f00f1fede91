//! Names of programs' functions, found while recording: afterwards the programs may be gone.
//!
//! One thread follows what processes map, another reads their files, so that neither ticks nor the
//! records wait for debug information. Names come with a later tick than the stack's first.

mod files;
mod records;

pub use records::Records;

use cil_trace_core::code::{Code, Place};
use cil_trace_core::tick::Stack;
use files::Files;
use std::iter;
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

/// The threads that name stacks.
#[derive(Debug)]
pub struct UserSymbols {
    /// `None` once it has been told to end.
    questions: Option<Sender<Question>>,
    answers: Receiver<Stack>,
    lost: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl UserSymbols {
    /// Begins to follow what processes map.
    #[must_use]
    pub fn start(records: Records) -> Self {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let (place, placed) = channel();
        let threads = vec![
            thread::spawn(move || follow(records, &asked, &place, &counted)),
            thread::spawn(move || name(&placed, &answer)),
        ];
        Self {
            questions: Some(questions),
            answers,
            lost,
            threads,
        }
    }

    /// Asks for a stack's names.
    pub fn ask(&self, question: Question) {
        if let Some(questions) = &self.questions {
            // If a thread has panicked, its stacks stay without names.
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
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::warn!("naming programs' functions failed; their frames have no names");
            }
        }
        self.answers.try_iter().collect()
    }

    /// Records of mappings that were lost so far: frames of these processes may have no names.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// A stack whose code is known.
struct Placed {
    id: u32,
    pid: u32,
    /// Addresses and what stands there, leaf first.
    frames: Vec<(u64, Option<Place>)>,
}

/// Follows what processes map, and tells what stands at the addresses that are asked for. Reads no
/// file, so that the records are taken out in time.
fn follow(
    mut records: Records,
    questions: &Receiver<Question>,
    placed: &Sender<Placed>,
    lost: &AtomicU64,
) {
    let mut code = Code::default();
    // First, as the records tell what becomes of it.
    records::mapped_now()
        .iter()
        .for_each(|change| code.apply(change));
    loop {
        let first = questions.recv_timeout(DRAIN);
        let ended = matches!(first, Err(RecvTimeoutError::Disconnected));
        let asked: Vec<_> = first.into_iter().chain(questions.try_iter()).collect();
        let complete_ns = records.take(|change| code.apply(&change));
        lost.store(records.lost(), Ordering::Relaxed);
        for question in asked {
            // Nobody waits for it any more.
            let _ = placed.send(place(&code, &question));
        }
        code.forget_before(complete_ns.saturating_sub(KEPT_NS));
        if ended {
            break;
        }
    }
}

fn place(code: &Code, question: &Question) -> Placed {
    let frames = question.addresses.iter().enumerate();
    Placed {
        id: question.id,
        pid: question.pid,
        frames: frames
            .map(|(depth, &address)| {
                // A return address may stand behind the end of the function that called.
                let call = address.saturating_sub(u64::from(depth > 0));
                (call, code.find(question.pid, question.at_ns, call))
            })
            .collect(),
    }
}

/// Names stacks; those that have come meanwhile together, as reading a file takes longest.
fn name(placed: &Receiver<Placed>, answers: &Sender<Stack>) {
    let mut files = Files::new();
    while let Ok(first) = placed.recv() {
        let stacks: Vec<_> = iter::once(first).chain(placed.try_iter()).collect();
        files.read(stacks.iter().flat_map(|stack| {
            let places = stack.frames.iter().filter_map(|(_, place)| place.as_ref());
            places.map(|place| (stack.pid, place))
        }));
        for stack in stacks {
            let mut frames = Vec::new();
            for (address, place) in &stack.frames {
                let Some(place) = place else {
                    // No code stands there: this and what is further out was read from a stack
                    // without frame pointers, and is no caller.
                    frames.push(UNKNOWN.to_owned());
                    break;
                };
                match files.names(stack.pid, *address, place) {
                    Some(names) => frames.extend(names),
                    None => frames.push(stand_in(&place.file.path)),
                }
            }
            // Nobody waits for it any more.
            let _ = answers.send(Stack {
                id: stack.id,
                frames,
            });
        }
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
