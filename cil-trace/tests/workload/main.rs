//! The workload wrapper, seen from outside: exit statuses, signals, terminals, outputs.
//!
//! Signals, process groups and `kill -9` need a process of their own, and one whose threads all
//! started after its signals were blocked. So this binary has no libtest main: called with
//! `--wrap` it is a recorder that traces nothing, otherwise it runs the tests, which call it so.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod end;
mod identity;
mod outputs;
mod signals;
mod start;
mod wrapper;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// Names each test by its function, so that none is listed twice.
macro_rules! trials {
    ($($module:ident: $($test:ident),+;)+) => {
        vec![$($(Trial::test(concat!(stringify!($module), "::", stringify!($test)), || {
            $module::$test();
            Ok(())
        })),+),+]
    };
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|first| first == wrapper::FLAG) {
        return ExitCode::from(wrapper::main(arguments));
    }
    let trials = trials! {
        start: nothing_runs_before_the_gate_opens, nothing_runs_if_the_recorder_dies_first,
            nothing_runs_if_the_recorder_changes_its_mind, a_missing_command_is_127,
            what_cannot_be_executed_is_126, a_script_without_first_line_runs,
            the_command_finds_itself_as_without_wrapper;
        end: the_status_is_passed_on, usage_is_measured, a_daemon_is_not_waited_for,
            the_duration_ends_the_command_and_its_descendants,
            a_descendant_has_time_to_clean_up, what_ignores_term_is_killed,
            without_a_command_the_duration_ends_the_recording, a_process_is_watched_to_its_end,
            what_is_no_process_is_refused;
        signals: term_is_passed_on, an_interrupt_reaches_what_a_shell_runs,
            a_second_interrupt_aborts, a_terminals_interrupt_comes_once,
            a_terminals_interrupt_reaches_another_session,
            without_a_command_a_signal_ends_the_recording, what_is_ignored_stays_ignored,
            the_command_survives_the_recorder;
        outputs: standard_input_and_output_are_the_commands_own, captured_output_is_exact, captured_output_is_awaited,
            a_descendant_with_the_pipe_does_not_block, a_closed_reader_reaches_the_command,
            captured_output_survives_a_signal_to_the_group, captured_output_survives_the_recorder,
            result_files_are_read_or_named;
        identity: sudo_runs_as_its_caller, another_user_needs_root_and_a_name, files_go_back_to_the_caller_of_sudo;
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
