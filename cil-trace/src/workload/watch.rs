//! Waits for the end of a recording: the command's, a process's, a duration's, or a signal's.
//!
//! Owns no loop and no tick: the recorder selects between [`Watch::ended`] and its own timer.

use super::pidfd::Pidfd;
use super::spawn::Started;
use super::tree::Tree;
use super::wait::{ExitInfo, reap};
use crate::signals::{Blocked, Received, Signals, stops};
use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nix::unistd::{getpgid, getpgrp};
use rustix::io::Errno;
use rustix::process::Pid;
use std::future::pending;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long a command has between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// How a recording ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The command ended, of itself or by a signal or the duration, and was waited for.
    Exited(ExitInfo),
    /// The duration of a recording without a command is over.
    Duration,
    /// The process of `-p` has ended.
    ProcessGone,
    /// A signal ended a recording without a command.
    Stopped,
    /// A second interrupt: the command was killed and not waited for.
    Aborted,
}

impl Ended {
    /// The exit status of `record`, if nothing of its own fails.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Exited(exit) => exit.exit_code(),
            Self::Duration | Self::ProcessGone | Self::Stopped => 0,
            Self::Aborted => 128 + Signal::SIGINT as u8,
        }
    }
}

/// What a recording lasts as long as.
#[derive(Debug)]
pub struct Subject(Kind);

#[derive(Debug)]
enum Kind {
    Command(Command),
    Process(Pidfd),
    Nothing,
}

impl Subject {
    /// The command that was started. Needs a tokio runtime.
    ///
    /// # Errors
    /// Descriptors run out.
    pub fn command(started: Started) -> Result<Self> {
        let Started {
            pid,
            pidfd,
            started,
        } = started;
        let pidfd = Pidfd::new(pidfd).context("cannot wait for the command")?;
        Ok(Self(Kind::Command(Command {
            pid,
            pidfd,
            started,
            wall: None,
            ending: None,
        })))
    }

    /// The process of `-p`. Needs a tokio runtime.
    ///
    /// # Errors
    /// There is no such process.
    pub fn process(pid: u32) -> Result<Self> {
        let opened = match i32::try_from(pid).ok().and_then(Pid::from_raw) {
            Some(pid) => Pidfd::open(pid),
            None => Err(Errno::SRCH.into()),
        };
        let remedy = match opened.as_ref().map_err(Errno::from_io_error) {
            Err(Some(Errno::SRCH)) => "there is no such process; `ps -e` lists those there are",
            Err(Some(Errno::INVAL | Errno::NOENT)) => {
                "it is a thread: give its process, the Tgid in /proc/PID/status"
            }
            _ => "cannot wait for it",
        };
        Ok(Self(Kind::Process(
            opened.with_context(|| format!("-p {pid}: {remedy}"))?,
        )))
    }

    /// Nothing but a duration or a signal ends the recording.
    #[must_use]
    pub const fn everything() -> Self {
        Self(Kind::Nothing)
    }
}

impl Kind {
    /// Returns when it has ended. Nothing is lost when the future is dropped.
    async fn ended(&mut self) -> io::Result<()> {
        match self {
            Self::Command(command) => command.ended().await,
            Self::Process(pidfd) => pidfd.ended().await,
            Self::Nothing => pending().await,
        }
    }
}

/// A command of ours, as it runs.
#[derive(Debug)]
struct Command {
    pid: Pid,
    pidfd: Pidfd,
    started: std::time::Instant,
    wall: Option<Duration>,
    /// It and its descendants, once the duration is over.
    ending: Option<Tree>,
}

impl Command {
    async fn ended(&mut self) -> io::Result<()> {
        self.pidfd.ended().await?;
        self.wall.get_or_insert_with(|| self.started.elapsed());
        match &self.ending {
            // A shell dies of TERM at once; what it ran may still be cleaning up.
            Some(tree) => tree.ended().await,
            None => Ok(()),
        }
    }

    /// Passes a signal on, unless it has come to the command as it has come here.
    fn pass_on(
        &self,
        Received {
            signal,
            from_terminal,
        }: Received,
    ) -> io::Result<()> {
        let pid = nix::unistd::Pid::from_raw(self.pid.as_raw_nonzero().get());
        if from_terminal && getpgid(Some(pid)) == Ok(getpgrp()) {
            return Ok(());
        }
        match signal {
            // A key's signal goes to all, as the key's would: a shell leaves it to what it runs.
            Signal::SIGINT | Signal::SIGQUIT => self.signal_all(signal),
            _ => self.pidfd.signal(signal),
        }
    }

    fn signal_all(&self, signal: Signal) -> io::Result<()> {
        let mut tree = Tree::default();
        tree.grow(self.pid)?;
        tree.signal(signal)
    }

    /// The duration is over: TERM to all, and KILL if called again. Returns when to call again.
    fn end(&mut self) -> io::Result<Option<Instant>> {
        let (signal, again) = match self.ending {
            None => (Signal::SIGTERM, Some(Instant::now() + GRACE)),
            Some(_) => (Signal::SIGKILL, None),
        };
        let tree = self.ending.get_or_insert_default();
        tree.grow(self.pid)?;
        tree.signal(signal)?;
        Ok(again)
    }
}

/// Waits for the end of a recording.
#[derive(Debug)]
pub struct Watch {
    signals: Signals,
    subject: Subject,
    deadline: Option<Instant>,
    interrupted: bool,
    stopped: bool,
}

impl Watch {
    /// From now on, for at most `duration`. Needs a tokio runtime.
    ///
    /// # Errors
    /// Descriptors run out.
    pub fn new(subject: Subject, signals: &Blocked, duration: Option<Duration>) -> Result<Self> {
        Ok(Self {
            signals: Signals::new(signals)?,
            subject,
            deadline: duration.map(|duration| Instant::now() + duration),
            interrupted: false,
            stopped: false,
        })
    }

    /// Whether a signal asked for the end, of the command and of whatever would come after it.
    #[must_use]
    pub const fn stopped(&self) -> bool {
        self.stopped
    }

    /// Whether the command was ended because its time was over.
    #[must_use]
    pub const fn expired(&self) -> bool {
        matches!(
            &self.subject.0,
            Kind::Command(Command {
                ending: Some(_),
                ..
            })
        )
    }

    /// Returns at the end of the recording, once. Nothing is lost when the future is dropped before.
    ///
    /// Signals: the first interrupt ends the command, the second aborts; others are passed on to
    /// it. Without a command each ends the recording.
    ///
    /// # Errors
    /// The command cannot be signalled or waited for; it may be running still.
    pub async fn ended(&mut self) -> Result<Ended> {
        let Self {
            signals,
            subject: Subject(subject),
            deadline,
            interrupted,
            stopped,
        } = self;
        loop {
            tokio::select! {
                biased;
                received = signals.next() => {
                    let received = received.context("cannot read signals")?;
                    *stopped |= stops(received.signal);
                    let Kind::Command(command) = &*subject else { return Ok(Ended::Stopped) };
                    let interrupt = received.signal == Signal::SIGINT;
                    if interrupt && *interrupted {
                        command.signal_all(Signal::SIGKILL).context("cannot kill the command")?;
                        return Ok(Ended::Aborted);
                    }
                    if interrupt {
                        *interrupted = true;
                        log::warn!("interrupted; waiting for the command to end (again: kill it)");
                    }
                    command.pass_on(received).with_context(|| {
                        format!("cannot pass {} on to the command", received.signal)
                    })?;
                }
                ended = subject.ended() => {
                    ended.context("cannot wait for the end")?;
                    let Kind::Command(command) = subject else { return Ok(Ended::ProcessGone) };
                    let exit = reap(command.pid, command.wall.unwrap_or_default());
                    return Ok(Ended::Exited(exit.context("cannot wait for the command")?));
                }
                () = expired(*deadline) => {
                    let Kind::Command(command) = subject else { return Ok(Ended::Duration) };
                    *deadline = command.end().context("--duration: cannot end the command")?;
                }
            }
        }
    }
}

async fn expired(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
