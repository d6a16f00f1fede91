//! Frames of plain text, one for each tick.

use super::source::Opened;
use super::text::{Frame, Stretch};
use crate::signals::{Blocked, Signals};
use anyhow::{Context as _, Result};
use cil_trace_core::history::tables::View;
use cil_trace_core::history::{History, Span};
use jiff::tz::TimeZone;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Write as _, stdout};
use std::time::Duration;
use tokio::time::interval;

/// How often it is asked whether anybody still reads.
const ASK: Duration = Duration::from_millis(200);

/// Prints so many frames, or frames without end. Ends when told to, when nobody reads any more, or
/// with the recording.
///
/// # Errors
///
/// If the source fails or standard output cannot be written.
pub async fn run(opened: Opened, frames: Option<u64>, blocked: Blocked) -> Result<()> {
    let signals = Signals::new(&blocked)?;
    let mut history = History::new(opened.header.clone(), opened.keep());
    let mut ticks = opened.ticks;
    let zone = TimeZone::system();
    let mut asking = interval(ASK);
    let mut frame = 0;
    while frames.is_none_or(|frames| frame < frames) {
        let tick = tokio::select! {
            biased;
            signal = signals.next() => {
                signal.context("cannot read signals")?;
                return Ok(());
            }
            _ = asking.tick() => {
                if nobody_reads() {
                    return Ok(());
                }
                continue;
            }
            tick = ticks.tick(frame) => tick?,
        };
        let Some(tick) = tick else {
            return Ok(());
        };
        let index = tick.index;
        history.push(tick);
        let separator = if frame == 0 { "" } else { "\n" };
        print(&format!("{separator}{}", text(&history, index, &zone)))?;
        frame += 1;
    }
    Ok(())
}

fn text(history: &History, index: u64, zone: &TimeZone) -> String {
    let view = View {
        history,
        dev: None,
        span: Span::Tick,
        index,
    };
    let stretch = &Stretch::of(view);
    Frame { view, stretch }.batch(zone)
}

fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("standard output")
}

/// Whether standard output is a pipe whose reader has gone. With a long interval that would show
/// only at the next frame.
fn nobody_reads() -> bool {
    let out = stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(PollFlags::ERR)
}
