//! The tools that read exports, installed once into the target directory.

use crate::command::{command, run, target_dir};
use crate::packages;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;

/// What Python reads with.
const WHEELS: &[&str] = &["pandas==2.*", "perfetto==0.59.*"];
/// What the browser shows.
const SPEEDSCOPE: &str = "speedscope@1";

/// Installs what is missing; gives the directory that holds `venv` and `node_modules`.
///
/// # Errors
/// apt-get, pip or npm failed.
pub fn equip() -> Result<PathBuf> {
    packages::install(packages::EXPORTS)?;
    if which("npm").is_none() {
        packages::install(&["npm"])?;
    }
    let directory = target_dir().join("exports");
    fs::create_dir_all(&directory)?;
    let venv = directory.join("venv");
    if !venv.join("equipped").exists() {
        run(command("python3", &["-m", "venv"]).arg(&venv))?;
        run(command(venv.join("bin/pip"), &["install", "--quiet"]).args(WHEELS))?;
        fs::write(venv.join("equipped"), "")?;
    }
    if !directory
        .join("node_modules/speedscope/package.json")
        .exists()
    {
        let install = ["install", "--no-audit", "--no-fund", "--prefix"];
        run(command("npm", &install).arg(&directory).arg(SPEEDSCOPE))?;
    }
    Ok(directory)
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}
