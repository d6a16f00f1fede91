//! `top` at a terminal: it takes the terminal, and gives it back whatever happens.
//!
//! tmux is the terminal. Called with `--panic` this binary is a program that panics while it has a
//! screen; otherwise it runs the tests, one of which calls it so.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod screen;
mod tmux;

use libtest_mimic::{Arguments, Trial};
use std::process::{Command, ExitCode, Stdio};

/// Names each test by its function, so that none is listed twice.
macro_rules! trials {
    ($($test:ident),+ $(,)?) => {
        vec![$(Trial::test(stringify!($test), || {
            screen::$test();
            Ok(())
        })),+]
    };
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(screen::PANIC) {
        screen::panic();
    }
    let there = Command::new("tmux")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let mut trials = trials![
        the_terminal_comes_back_after_q,
        the_terminal_comes_back_after_sigterm,
        the_terminal_comes_back_after_sighup,
        the_terminal_comes_back_after_a_panic,
        ctrl_z_stops_and_fg_goes_on,
        a_stopped_program_ends_when_told_to,
        sigstop_and_sigcont_leave_a_screen,
        it_ends_with_its_terminal,
        a_resize_is_followed,
        no_color_is_honoured,
        keys_write_files,
        a_reader_that_goes_ends_it,
        without_a_terminal_frames_come,
    ];
    if !there {
        eprintln!("tmux is not installed: `cargo xtask setup` installs it");
        trials = trials
            .into_iter()
            .map(|trial| trial.with_ignored_flag(true))
            .collect();
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
