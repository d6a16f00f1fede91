//! The screen's loop: what happens goes into the state, and the state onto the terminal.

use super::files;
use super::source::{News, Opened, Ticks};
use super::state::{Message, State};
use super::terminal::{self, Screen};
use super::theme::Theme;
use super::update::{Effect, Input};
use crate::messages;
use crate::signals::{Blocked, Signals};
use anyhow::{Context as _, Result};
use cil_trace_common::stack::StackKind;
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::time::Instant;
use tokio::task::JoinHandle;

/// Runs until told to end.
///
/// # Errors
///
/// If there is no terminal, or the source fails.
pub async fn run(opened: Opened, blocked: Blocked) -> Result<()> {
    let signals = Signals::new(&blocked)?;
    let theme = Theme::of(|name| std::env::var(name).ok());
    let (state, ticks) = opened.screen(theme);
    let screen = Screen::new().context("no screen here; --batch N prints plain text")?;
    let size = screen
        .size()
        .context("cannot tell the size of the terminal")?;
    let mut top = Top {
        state,
        ticks,
        screen,
        events: terminal::events(),
        signals,
        blocked,
        writing: None,
        shown: Instant::now(),
    };
    top.state.update(Input::Resize(size.0, size.1));
    match top.run().await {
        // Whoever looked has gone.
        Err(error) if is_gone(&error) => Ok(()),
        ended => ended,
    }
}

/// Whether the terminal is no longer there: EIO, or a pipe that nobody reads.
fn is_gone(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| {
            error.kind() == io::ErrorKind::BrokenPipe
                || error.raw_os_error() == Some(nix::errno::Errno::EIO as i32)
        })
    })
}

struct Top {
    state: State,
    ticks: Ticks,
    screen: Screen,
    events: EventStream,
    signals: Signals,
    /// The same, to ask without waiting.
    blocked: Blocked,
    /// A file that is being written meanwhile.
    writing: Option<JoinHandle<Result<String>>>,
    /// When the tick that is shown came.
    shown: Instant,
}

impl Top {
    async fn run(&mut self) -> Result<()> {
        loop {
            self.screen.draw(&self.state)?;
            let input = tokio::select! {
                biased;
                signal = self.signals.next() => {
                    match signal.context("cannot read signals")?.signal {
                        Signal::SIGTSTP => {
                            if self.screen.stop(&self.blocked)? {
                                return Ok(());
                            }
                        }
                        Signal::SIGCONT if terminal::in_foreground() => self.screen.take()?,
                        Signal::SIGCONT => {}
                        _ => return Ok(()),
                    }
                    let (columns, rows) = self.screen.size()?;
                    Some(Input::Resize(columns, rows))
                }
                event = self.events.next() => match event {
                    Some(event) => input(&event.context("cannot read keys")?),
                    None => return Ok(()),
                },
                written = written(&mut self.writing) => {
                    self.writing = None;
                    Some(Input::Message(message(written)))
                }
                news = self.ticks.next(&self.state, self.shown) => {
                    self.shown = Instant::now();
                    Some(match news {
                        Ok(News::Ticks(ticks)) => Input::Ticks(ticks),
                        Ok(News::Beat) => Input::Beat,
                        Err(error) if self.state.source.is_replay() => return Err(error),
                        // The counts are in the next.
                        Err(error) => Input::Message(failed(&error)),
                    })
                }
            };
            let effect = input.and_then(|input| self.state.update(input));
            if let Some(text) = messages::latest() {
                let failed = false;
                self.state.update(Input::Message(Message { text, failed }));
            }
            if let Some(effect) = effect
                && self.does(effect)?
            {
                return Ok(());
            }
        }
    }

    /// Does what the state cannot; whether that is the end.
    fn does(&mut self, effect: Effect) -> Result<bool> {
        match effect {
            Effect::Quit => return Ok(true),
            // Everybody in the foreground stops, as if the terminal had said so.
            Effect::Suspend => kill(Pid::from_raw(0), Signal::SIGTSTP).context("cannot stop")?,
            Effect::Redraw => self.screen.take()?,
            Effect::Interval(interval) => {
                if let Ticks::Live(window) = &mut self.ticks {
                    window.set_interval(interval);
                }
            }
            Effect::Save => {
                let session = self.state.history.total().header().clone();
                let cut = self.state.history.cut(self.state.moment);
                self.write(move || {
                    files::recording(&session, cut.context("there is no tick yet")?)
                });
            }
            Effect::Flamegraph => {
                let view = self.state.view();
                let session = view.history.total().header().clone();
                let model = view.history.model(view.span, view.index).into_owned();
                // A tab whose rows have no stacks stands for the question who asks for flushes.
                let own = self.state.tab().stacks();
                let kind = own.map_or(StackKind::Flush, |(kind, _)| kind);
                self.write(move || files::picture(&session, &model, kind));
            }
        }
        Ok(false)
    }

    /// Writes a file beside the loop, so that ticks are read meanwhile.
    fn write(&mut self, write: impl FnOnce() -> Result<String> + Send + 'static) {
        if self.writing.is_none() {
            self.writing = Some(tokio::task::spawn_blocking(write));
        }
        self.state.update(Input::Message(Message {
            text: "writing...".to_owned(),
            failed: false,
        }));
    }
}

/// What became of the file that is being written; never, if there is none. Cancel safe.
async fn written(writing: &mut Option<JoinHandle<Result<String>>>) -> Result<String> {
    match writing {
        Some(writing) => writing.await.context("writing the file failed")?,
        None => std::future::pending().await,
    }
}

fn message(written: Result<String>) -> Message {
    match written {
        Ok(text) => Message {
            text,
            failed: false,
        },
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> Message {
    Message {
        text: format!("{error:#}"),
        failed: true,
    }
}

/// What of the terminal's events is of interest.
fn input(event: &Event) -> Option<Input> {
    match event {
        Event::Key(key) => Some(Input::Key(*key)),
        Event::Resize(columns, rows) => Some(Input::Resize(*columns, *rows)),
        _ => None,
    }
}
