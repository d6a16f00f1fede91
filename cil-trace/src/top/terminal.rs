//! The terminal, taken for the screen and given back whatever happens.
//!
//! Owns the modes of the terminal, and nothing that is drawn.

use super::state::State;
use super::view;
use crate::messages;
use crate::signals::Blocked;
use anyhow::{Context as _, Result};
use crossterm::cursor;
use crossterm::event::EventStream;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::unistd::{getpgrp, tcgetpgrp};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::fs::File;
use std::io::{BufWriter, Stdout, Write as _, stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Set before the first screen, so that a panic's message is seen.
static HOOK: Once = Once::new();

/// A screen. The terminal is given back when it is dropped, or when the program panics.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn new() -> Result<Self> {
        HOOK.call_once(|| {
            let others = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                give_back();
                others(panic);
            }));
        });
        let mut screen = Self { terminal: blank()? };
        screen.take()?;
        Ok(screen)
    }

    /// Takes the terminal, at first or again, and draws everything at the next drawing.
    ///
    /// # Errors
    ///
    /// If it cannot be written to.
    pub fn take(&mut self) -> Result<()> {
        TAKEN.store(true, Ordering::SeqCst);
        messages::hold();
        // A shell that saw us stopped has set its own modes, of which the library knows nothing.
        disable_raw_mode()
            .and_then(|()| enable_raw_mode())
            .context("cannot read single keys from the terminal")?;
        // What was drawn before is gone. Not `clear`, which asks the terminal where its cursor is,
        // while the answer goes to whoever reads the keys.
        self.terminal = blank()?;
        execute!(
            stdout(),
            EnterAlternateScreen,
            Clear(ClearType::All),
            cursor::Hide
        )
        .context("cannot write to the terminal")
    }

    /// Draws the state.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be written to.
    pub fn draw(&mut self, state: &State) -> std::io::Result<()> {
        self.terminal.draw(|frame| view::draw(state, frame))?;
        self.terminal.backend_mut().flush()
    }

    /// Columns and rows.
    ///
    /// # Errors
    ///
    /// If the terminal does not say.
    pub fn size(&self) -> std::io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Stops this process as Ctrl-Z does, until it is continued in the foreground; whether it was
    /// told to end instead. Nothing stops where nobody could continue it: the kernel ignores the
    /// signal then.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be taken again.
    pub fn stop(&mut self, blocked: &Blocked) -> Result<bool> {
        give_back();
        let stop = SigSet::from(Signal::SIGTSTP);
        loop {
            // It is blocked, to be read as data; for a moment it does what it does by itself.
            raise(Signal::SIGTSTP).context("cannot stop")?;
            stop.thread_unblock().context("cannot stop")?;
            stop.thread_block().context("cannot stop")?;
            if blocked.asked_to_stop()?.is_some() {
                return Ok(true);
            }
            if in_foreground() {
                return self.take().map(|()| false);
            }
        }
    }
}

/// A terminal on which nothing has been drawn.
fn blank() -> Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    let backend = CrosstermBackend::new(BufWriter::new(stdout()));
    Terminal::new(backend).context("cannot tell the size of the terminal")
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Keys, resizes and the like.
#[must_use]
pub fn events() -> EventStream {
    EventStream::new()
}

/// Gives the terminal back, if it is ours. What fails is not to be helped: the terminal may be gone.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = stdout();
    let _ = queue!(out, LeaveAlternateScreen, cursor::Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
    messages::release();
}

/// Whether keys come to us; without a terminal there is nobody else.
#[must_use]
pub fn in_foreground() -> bool {
    let Ok(terminal) = File::open("/dev/tty") else {
        return true;
    };
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}
