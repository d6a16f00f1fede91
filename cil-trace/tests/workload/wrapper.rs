//! A recorder that traces nothing, and the tests' handle on it.

use anyhow::{Context as _, Result};
use cil_trace::options::{Invocation, RecordOptions, Target};
use cil_trace::signals::Blocked;
use cil_trace::workload::{Collected, Ended, Outputs, Prepared, Subject, Watch, chown_back};
use cil_trace::{cli, error};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;

/// Turns this binary into the recorder; `record`'s arguments follow.
pub const FLAG: &str = "--wrap";
/// A FIFO; the gate opens when somebody opens it for writing.
pub const HOLD: &str = "WRAP_HOLD";
/// A file that is handed over as a recording is.
pub const GIVE: &str = "WRAP_GIVE";

/// What the recorder does, as `record` does it.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    match Blocked::block().and_then(|blocked| record(arguments, &blocked)) {
        Ok((ended, collected)) => {
            eprintln!("{ended:?}\n{collected:?}");
            ended.exit_code()
        }
        Err(failure) => {
            eprintln!("{failure:#}");
            error::status(&failure, error::RECORD)
        }
    }
}

fn record(
    arguments: impl Iterator<Item = OsString>,
    blocked: &Blocked,
) -> Result<(Ended, Collected)> {
    let line = ["cil-trace", "record"]
        .map(OsString::from)
        .into_iter()
        .chain(arguments);
    let Invocation::Record(RecordOptions {
        target, duration, ..
    }) = cli::parse(line)?
    else {
        unreachable!("record was asked for");
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut outputs = None;
        let subject = match target {
            Target::Command(options) => {
                let outputs = outputs.insert(Outputs::start(&options, blocked)?);
                let prepared = Prepared::new(&options, outputs, blocked)?;
                if let Some(fifo) = std::env::var_os(HOLD) {
                    eprintln!("{}", prepared.pid());
                    std::fs::File::open(fifo).context("cannot open the FIFO")?;
                }
                Subject::command(prepared.go()?)?
            }
            Target::Process(pid) => Subject::process(pid)?,
            Target::Everything => Subject::everything(),
        };
        let mut watch = Watch::new(subject, blocked, duration)?;
        eprintln!("watching");
        let ended = watch.ended().await?;
        let collected = match (outputs, ended) {
            (Some(outputs), Ended::Exited(_)) => outputs.collect().await?,
            _ => Collected::default(),
        };
        if let Some(file) = std::env::var_os(GIVE) {
            chown_back(file.as_ref())?;
        }
        Ok((ended, collected))
    })
}

/// A running recorder.
pub struct Wrapper {
    child: Child,
    pub stdin: Option<ChildStdin>,
    stdout: Box<dyn BufRead + Send>,
    stderr: BufReader<ChildStderr>,
}

/// How a recorder ended.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// The recorder as a command, with `record`'s arguments.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(FLAG).args(arguments);
    command
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Finished {
    Wrapper::start(&mut command(arguments)).finish()
}

impl Wrapper {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: Box::new(BufReader::new(child.stdout.take().unwrap())),
            stderr: BufReader::new(child.stderr.take().unwrap()),
            child,
        }
    }

    /// Starts it, and returns when it has said `watching` and the command `ready`.
    pub fn ready(arguments: &[&str]) -> Self {
        let mut wrapper = Self::start(&mut command(arguments));
        wrapper.expect_error("watching");
        wrapper.expect("ready");
        wrapper
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// The next line of the command.
    pub fn line(&mut self) -> String {
        line(&mut self.stdout)
    }

    pub fn expect(&mut self, wanted: &str) {
        assert_eq!(self.line(), wanted);
    }

    /// The next line of the recorder, or of the command's standard error.
    pub fn error_line(&mut self) -> String {
        line(&mut self.stderr)
    }

    pub fn expect_error(&mut self, wanted: &str) {
        assert_eq!(self.error_line(), wanted);
    }

    /// Waits for its end, and for the end of all that holds its standard output.
    pub fn finish(mut self) -> Finished {
        drop(self.stdin.take());
        let mut output = std::mem::replace(&mut self.stdout, nothing());
        let reader = thread::spawn(move || {
            let mut stdout = Vec::new();
            output.read_to_end(&mut stdout).map(|_| stdout)
        });
        let (status, stderr) = self.status();
        Finished {
            status,
            stdout: reader.join().unwrap().unwrap(),
            stderr,
        }
    }

    /// Waits for its end alone, reading no further than its last line: a descendant of the command
    /// may hold the pipes.
    pub fn status(&mut self) -> (ExitStatus, String) {
        let mut stderr = String::new();
        while !stderr.contains("\nCollected") && self.stderr.read_line(&mut stderr).unwrap() > 0 {}
        (self.child.wait().unwrap(), stderr)
    }

    /// Stops reading the standard output.
    pub fn close_stdout(&mut self) {
        self.stdout = nothing();
    }
}

/// A reader that is at its end.
fn nothing() -> Box<dyn BufRead + Send> {
    Box::new(std::io::empty())
}

impl Finished {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
