//! Builds the eBPF object, by one of two toolchains, or leaves it out.
//!
//! `CIL_TRACE_EBPF_TOOLCHAIN` names the route; `cargo xtask build` sets it:
//! * `rustup`: rustup's nightly with rust-src, and bpf-linker;
//! * `debian`: Debian's rustc with its library source and LLVM, and bpf-linker built against that;
//! * unset: no object. The binary then does everything that needs no kernel, so that `cargo check`,
//!   clippy and most tests need no BPF toolchain.

use anyhow::{Context as _, Result, bail};
use aya_build::{Package, Toolchain};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const VARIABLE: &str = "CIL_TRACE_EBPF_TOOLCHAIN";
const CRATE: &str = "cil-trace-ebpf";

fn main() -> Result<()> {
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let out = PathBuf::from(env::var_os("OUT_DIR").context("OUT_DIR is not set")?);
    let toolchain = match env::var(VARIABLE).as_deref() {
        Ok("rustup") => Toolchain::Nightly,
        Ok("debian") => debian(&out)?,
        Ok(other) => bail!("{VARIABLE}={other}: it is `rustup`, `debian` or unset"),
        Err(_) => return fs::write(out.join(CRATE), []).context("writing the empty object"),
    };
    let root = format!("{}/../{CRATE}", env!("CARGO_MANIFEST_DIR"));
    // The object is made of this crate too.
    println!(
        "cargo:rerun-if-changed={}/../cil-trace-common",
        env!("CARGO_MANIFEST_DIR")
    );
    aya_build::build_ebpf(
        [Package {
            name: CRATE,
            root_dir: &root,
            ..Default::default()
        }],
        toolchain,
    )
}

/// Debian's rustc under a name that rustup knows, in a rustup home of our own: the user's stays as
/// it is.
fn debian(out: &Path) -> Result<Toolchain<'static>> {
    const NAME: &str = "debian";
    let home = out.join("rustup");
    fs::create_dir_all(&home).with_context(|| format!("creating {}", home.display()))?;
    // SAFETY: this build script has one thread.
    unsafe {
        env::set_var("RUSTUP_HOME", &home);
        // The standard library is built from source, which a stable rustc refuses otherwise.
        env::set_var("RUSTC_BOOTSTRAP", "1");
        env::remove_var("RUSTUP_TOOLCHAIN");
    }
    match Command::new("rustup")
        .args(["toolchain", "link", NAME, "/usr"])
        .status()
    {
        Ok(status) if status.success() => {}
        Ok(status) => bail!("`rustup toolchain link {NAME} /usr` failed: {status}"),
        // Without rustup, aya-build takes the cargo in PATH, which is Debian's.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).context("running rustup"),
    }
    Ok(Toolchain::Custom(NAME))
}
