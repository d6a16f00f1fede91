//! Sets up, builds, tests, shows and measures cil-trace: `cargo xtask COMMAND`.
//!
//! Depends on none of the workspace's crates: it must run before any of them compiles, and it
//! knows the tool only by its command line.

mod apt;
mod bench;
mod build;
mod command;
mod demo;
mod exports;
mod interrupt;
mod level;
mod offsets;
mod packages;
mod scratch;
mod screen;
mod setup;
mod soak;
mod style;
mod tally;
mod test;
mod toolchain;
mod vm;
mod workload;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about, disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what building and testing need: Debian packages and bpf-linker
    Setup,
    /// Build target/release/cil-trace with its eBPF programs inside
    Build,
    /// Install what is missing and run every test
    Test {
        /// Run this level only (repeatable)
        #[arg(long = "level", value_name = "NAME")]
        levels: Vec<level::Level>,
        /// Boot this kernel, or `all` of them, for the level `vm`
        #[arg(
            long,
            value_name = "KERNEL",
            default_value = "6.12",
            conflicts_with = "no_vm"
        )]
        vm: vm::Selection,
        /// Boot none
        #[arg(long)]
        no_vm: bool,
    },
    /// Record a benchmark on a scratch XFS, print the report, leave recording and pictures in demo/
    Demo,
    /// Boot a Debian kernel in QEMU with the tool inside and run a command on an XFS there
    Vm(vm::Options),
    /// Make the offsets of kernels anew that do not describe their modules' types, from Debian packages
    Offsets(offsets::Options),
    /// Measure start-up time, memory and slow-down of recording, speed and errors of comparing, what
    /// a screen of top and what tracing every lock costs
    Bench {
        /// Measure this only (repeatable)
        #[arg(value_name = "WHAT", value_parser = bench::names())]
        parts: Vec<String>,
        /// How often runs with and without tracing take turns, instead of what each part has itself
        #[arg(long)]
        pairs: Option<usize>,
    },
    /// Run what takes long, to see that it stays as it is
    Soak(soak::Options),
    /// The demo's own workload: create, write, fsync and unlink in DIR
    #[command(hide = true)]
    Workload {
        dir: PathBuf,
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// A workload of locks: create and unlink empty files in DIR; prints the nanoseconds
    /// that it took, and those of CPU time
    #[command(hide = true)]
    Churn {
        dir: PathBuf,
        #[arg(long, default_value_t = 2)]
        threads: u32,
        #[arg(long, default_value_t = 60_000)]
        files: u64,
    },
    /// Print CLOCK_MONOTONIC in nanoseconds
    #[command(hide = true)]
    Now,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Setup => setup::all().map(|_| ExitCode::SUCCESS),
        Command::Build => build::release().map(|_| ExitCode::SUCCESS),
        Command::Test { levels, vm, no_vm } => {
            let kernels = if no_vm { Vec::new() } else { vm.0 };
            test::run(&levels, &kernels)
        }
        Command::Demo => demo::run().map(|()| ExitCode::SUCCESS),
        Command::Vm(options) => vm::run(&options),
        Command::Offsets(options) => offsets::run_with(&options).map(|()| ExitCode::SUCCESS),
        Command::Bench { parts, pairs } => bench::run(&parts, pairs).map(|()| ExitCode::SUCCESS),
        Command::Soak(options) => soak::run(&options).map(|()| ExitCode::SUCCESS),
        Command::Workload { dir, seconds } => {
            workload::run(&dir, seconds).map(|()| ExitCode::SUCCESS)
        }
        Command::Churn {
            dir,
            threads,
            files,
        } => {
            let (elapsed, cpu) = workload::churn(&dir, threads, files)?;
            println!("{} {}", elapsed.as_nanos(), cpu.as_nanos());
            Ok(ExitCode::SUCCESS)
        }
        Command::Now => {
            println!("{}", workload::monotonic_ns()?);
            Ok(ExitCode::SUCCESS)
        }
    }
}
