//! The two ways to compile the eBPF crate: rustup's nightly, or Debian's own Rust.
//!
//! `bpf-linker` must be built against the LLVM of the compiler whose output it links, so each way
//! has its own. What a way means for the compilation itself is `cil-trace/build.rs`'s business.

use crate::command::{cargo, command, output, run};
use crate::packages;
use anyhow::{Context, Result, bail};
use std::env;
use std::path::Path;
use std::process::Command;

/// Tells `cil-trace/build.rs` which toolchain compiles the eBPF crate; unset, it builds a stub.
pub const VARIABLE: &str = "CIL_TRACE_EBPF_TOOLCHAIN";

/// The last release that fits Debian's LLVM 22.
const DEBIAN_LINKER: &str = "0.10.4";
const DEBIAN_LLVM: &str = "/usr/lib/llvm-22";
const DEBIAN_LLVM_LIBRARY: &str = "libLLVM.so.22";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Toolchain {
    /// `rustup toolchain install nightly --component rust-src`
    Rustup,
    /// `rustc-web` and its companions
    Debian,
}

impl Toolchain {
    /// The toolchain that [`VARIABLE`] names; else rustup's, if complete; else Debian's.
    ///
    /// # Errors
    /// The variable holds something else, or this machine can have neither.
    pub fn detect() -> Result<Self> {
        match env::var(VARIABLE).as_deref() {
            Ok("rustup") => return Ok(Self::Rustup),
            Ok("debian") => return Ok(Self::Debian),
            Ok(other) => bail!("{VARIABLE}={other}: it can be rustup or debian"),
            Err(_) => {}
        }
        if nightly_has_source() {
            Ok(Self::Rustup)
        } else if packages::is_debian() {
            Ok(Self::Debian)
        } else {
            bail!(
                "no Rust compiler for eBPF: rustup toolchain install nightly --component rust-src"
            )
        }
    }

    /// The value of [`VARIABLE`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Rustup => "rustup",
            Self::Debian => "debian",
        }
    }

    /// The Debian packages that it consists of.
    pub fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Rustup => &[],
            Self::Debian => &[
                "rustc-web",
                "rust-web-src",
                "rust-web-clippy",
                "cargo-web",
                "llvm-22-dev",
            ],
        }
    }

    /// Builds `bpf-linker` unless a fitting one is in `PATH`: about two minutes of CPU time.
    ///
    /// # Errors
    /// The build failed.
    pub fn install_linker(self) -> Result<()> {
        if self.has_linker() {
            return Ok(());
        }
        let mut install = cargo();
        install.args(["install", "bpf-linker", "--locked", "--force"]);
        if self == Self::Debian {
            // Without LLVM_PREFIX an older llvm-config may be found, and the link fails.
            install
                .arg(format!("--version={DEBIAN_LINKER}"))
                .args(["--no-default-features", "--features", "llvm-22"])
                .env("LLVM_PREFIX", DEBIAN_LLVM);
        }
        // The target directory of this workspace is no place for another program's build.
        install.env_remove("CARGO_TARGET_DIR");
        run(&mut install).context("bpf-linker links eBPF objects; without it nothing can be traced")
    }

    fn has_linker(self) -> bool {
        let Some(linker) = in_path("bpf-linker") else {
            return false;
        };
        match self {
            Self::Rustup => true,
            Self::Debian => {
                let version = output(Command::new(&linker).arg("--version")).unwrap_or_default();
                let libraries = output(Command::new("ldd").arg(&linker)).unwrap_or_default();
                version.contains(DEBIAN_LINKER) && libraries.contains(DEBIAN_LLVM_LIBRARY)
            }
        }
    }

    /// `cargo clippy` for the eBPF crate, or why this toolchain has none.
    pub fn clippy(self) -> Result<Command, &'static str> {
        let mut clippy = match self {
            Self::Rustup => {
                let nightly = ["run", "nightly", "cargo", "clippy"];
                if output(command("rustup", &nightly).arg("--version")).is_err() {
                    return Err("rustup component add clippy --toolchain nightly");
                }
                command("rustup", &nightly)
            }
            Self::Debian => {
                // Not `cargo clippy`: that finds rustup's clippy first, which is another version.
                const DRIVER: &str = "/usr/bin/clippy-driver";
                if !Path::new(DRIVER).exists() {
                    return Err("apt-get install rust-web-clippy");
                }
                let mut cargo = command("/usr/bin/cargo", &["check"]);
                cargo
                    .env("RUSTC", "/usr/bin/rustc")
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("RUSTC_WORKSPACE_WRAPPER", DRIVER);
                cargo
            }
        };
        clippy
            .current_dir(crate::command::root())
            .env_remove("RUSTUP_TOOLCHAIN")
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                format!(
                    "--cfg=bpf_target_arch=\"{}\"\x1f-Dwarnings",
                    env::consts::ARCH
                ),
            )
            .args(["--package", "cil-trace-ebpf", "--release"])
            .args(["-Z", "build-std=core", "--target", "bpfel-unknown-none"]);
        Ok(clippy)
    }
}

fn nightly_has_source() -> bool {
    output(&mut command(
        "rustup",
        &["run", "nightly", "rustc", "--print", "sysroot"],
    ))
    .is_ok_and(|sysroot| {
        Path::new(sysroot.trim())
            .join("lib/rustlib/src/rust/library/core/Cargo.toml")
            .exists()
    })
}

fn in_path(program: &str) -> Option<std::path::PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}
