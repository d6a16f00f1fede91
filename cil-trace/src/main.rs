//! The cil-trace command: everything is in the library, so that tests reach it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cil_trace::run(std::env::args_os()))
}
