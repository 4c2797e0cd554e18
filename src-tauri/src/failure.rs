//! The window that says why the app could not start, for people who started it by a double click and see no terminal.

use std::path::Path;

use anyhow::{Context, Result};
use protocol::{Error, ErrorCode, WindowName};

use crate::commands::{self, Failure};
use crate::{window, words};

/// Shows the reason until the window is closed. The page has no capability, and of the commands those alone that need no opened app.
///
/// # Errors
/// When no window can be opened either.
pub fn show(reason: &anyhow::Error, data_dir: Option<&Path>) -> Result<()> {
    let error = reason.downcast_ref::<Error>();
    // What can be done is offered for chats that cannot be opened; anything else needs another remedy.
    let history = data_dir.is_some() && error.is_some_and(|error| error.code == ErrorCode::Storage);
    // Whatever else stands in the way of a start is a folder or a file as well.
    let error = error
        .cloned()
        .unwrap_or_else(|| Error::new(ErrorCode::Storage, format!("{reason:#}")));
    let told = serde_json::json!({"error": error, "history": history});
    let script = format!("globalThis.ponderFailure = {told};");
    let mut builder = tauri::Builder::default();
    if let Some(data_dir) = data_dir {
        builder = builder.manage(Failure {
            data_dir: data_dir.to_owned(),
        });
    }
    let app = builder
        .invoke_handler(commands::all())
        .setup(move |app| {
            // What is set lies where nothing could be opened.
            window::builder(app, WindowName::Failure, words::of(None))
                .initialization_script(&script)
                .build()?;
            Ok(())
        })
        .build(crate::context())
        .context("no window could be opened to say so")?;
    app.run_return(|_, _| {});
    Ok(())
}
