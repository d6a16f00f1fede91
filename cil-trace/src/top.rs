//! `top`: the log live, or a recording played back, on a screen or as plain text.
//!
//! Pure parts decide what is seen ([`state`], [`update`], [`view`], [`text`]); the rest feeds them
//! and draws.

mod batch;
mod detail;
mod files;
mod help;
mod screen;
pub mod sort;
mod source;
pub mod state;
pub mod tabs;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod update;
pub mod view;

use crate::options::TopOptions;
use crate::signals::Blocked;
use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use source::Opened;
use std::io::{IsTerminal as _, stdout};

/// Shows the log until told to end.
///
/// # Errors
///
/// If this machine cannot be traced, the recording not be read, or nothing be shown.
pub fn run(options: &TopOptions) -> Result<()> {
    let on_screen = options.batch.is_none() && stdout().is_terminal();
    let blocked = match on_screen {
        true => Blocked::block_also(&[Signal::SIGTSTP, Signal::SIGCONT])?,
        false => Blocked::block()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let opened = Opened::new(options)?;
        match on_screen {
            true => screen::run(opened, blocked).await,
            false => batch::run(opened, options.batch, blocked).await,
        }
    })
}
