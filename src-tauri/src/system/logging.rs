//! The log file: one a day, a week of them, never a word of a chat.

use std::path::Path;

use anyhow::{Context, Result};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::{Builder, Rotation};
use tracing_subscriber::EnvFilter;

/// Starts logging to `folder`; lines that are logged before the guard is dropped reach the file.
///
/// # Errors
/// When the folder cannot be written.
pub fn start(folder: &Path) -> Result<WorkerGuard> {
    let unwritable = || format!("the log folder {} cannot be written", folder.display());
    // The appender complains if it looks for old files in a missing folder.
    std::fs::create_dir_all(folder).with_context(unwritable)?;
    let files = Builder::new()
        .rotation(Rotation::DAILY)
        .filename_prefix("ponder")
        .filename_suffix("log")
        .max_log_files(7)
        .build(folder)
        .with_context(unwritable)?;
    let (writer, guard) = tracing_appender::non_blocking(files);
    let filter = EnvFilter::try_from_env("PONDER_LOG").unwrap_or_else(|_| EnvFilter::new("info,sqlx=warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(writer)
        .init();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "started");
    Ok(guard)
}
