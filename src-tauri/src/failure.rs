//! The window that says why the app could not start, for people who started it by a double click and see no terminal.

use std::path::Path;

use anyhow::{Context, Result};
use api::WindowName;
use protocol::{Error, ErrorCode};

use crate::commands::{self, Failure};
use crate::windows::window;
use crate::words;

/// Shows the reason until the window is closed. The page has no capability, and only the commands that work without an
/// opened app.
///
/// # Errors
/// When no window can be opened either.
pub fn show(reason: &anyhow::Error, data_dir: Option<&Path>, context: tauri::Context) -> Result<()> {
    let error = reason.downcast_ref::<Error>();
    // The remedies apply to a history that cannot be opened; other failures need other ones.
    let is_damaged = error.is_some_and(|error| error.code == ErrorCode::HistoryDamaged);
    let history = data_dir.is_some() && (is_damaged || error.is_some_and(|error| error.code == ErrorCode::Storage));
    // Any other obstacle to a start is a folder or a file as well.
    let error = error
        .cloned()
        .unwrap_or_else(|| Error::new(ErrorCode::Storage, format!("{reason:#}")));
    let script = window::failure_script(&error, history, false);
    let mut builder = tauri::Builder::default();
    if let Some(data_dir) = data_dir {
        builder = builder.manage(Failure {
            data_dir: data_dir.to_owned(),
        });
    }
    let app = builder
        .invoke_handler(commands::all())
        .setup(move |app| {
            // The settings are in the history, which could not be opened.
            let words = words::of(None);
            let title = if is_damaged {
                words.history_damaged
            } else {
                words.could_not_start
            };
            window::builder(app, WindowName::Failure, words)
                .title(title)
                .initialization_script(&script)
                .build()?;
            Ok(())
        })
        .build(context)
        .context("no window could be opened to say so")?;
    app.run_return(|_, _| {});
    Ok(())
}
