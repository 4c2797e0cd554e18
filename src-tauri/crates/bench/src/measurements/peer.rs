use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};
use protocol::FolderSource;
use serde::de::DeserializeOwned;

/// The BLAS of ours, to be loaded into the peer before its own: the wheels of MLX for Linux bring a slow one.
pub fn preload() -> Option<OsString> {
    std::env::var_os("PONDER_ORACLE_PRELOAD")
}

/// Measures a model with a script that runs mlx-lm or mlx-vlm and prints its figures as a last line of JSON. `preload`
/// is a library that it loads before all others.
///
/// # Errors
/// When there is no Python for it, or the script fails or prints something else.
pub fn measure<T: DeserializeOwned>(
    script: &Path,
    model: &FolderSource,
    preload: Option<&OsStr>,
    arguments: &[String],
) -> Result<T> {
    let python = std::env::var_os("PONDER_ORACLE_PYTHON")
        .context("PONDER_ORACLE_PYTHON names no Python with mlx-lm; use ./dev bench")?;
    let mut command = Command::new(python);
    // The peer finds an MLX of its own; ours must not come first there.
    command.env_remove("LD_LIBRARY_PATH");
    command.arg(script).arg("--model").arg(&model.path);
    if let Some(path) = std::env::var_os("PONDER_ORACLE_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    let output = command.args(arguments).output();
    let output = output.context("the peer could not be started")?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        bail!(
            "the peer failed: {}",
            reason.lines().last().unwrap_or("no reason given")
        );
    }
    let mut lines = output.stdout.split(|byte| *byte == b'\n');
    let line = lines.rfind(|line| !line.is_empty());
    serde_json::from_slice(line.unwrap_or_default()).context("the peer printed something else than its figures")
}
