//! The window that says why the app could not start, for people who started it by a double click and see no terminal.

use std::path::Path;

use anyhow::{Context, Result};
use protocol::{ErrorCode, WindowName};

use crate::commands::{self, Failure};
use crate::window;

/// Shows the reason until the window is closed. The page has no capability, and of the commands those alone that need no opened app.
///
/// # Errors
/// When no window can be opened either.
pub fn show(reason: &anyhow::Error, data_dir: Option<&Path>) -> Result<()> {
    // What can be done is offered for chats that cannot be opened; anything else needs another remedy.
    let storage = reason
        .downcast_ref::<protocol::Error>()
        .is_some_and(|error| error.code == ErrorCode::Storage);
    let told = serde_json::json!({"message": format!("{reason:#}"), "history": storage && data_dir.is_some()});
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
            window::builder(app, WindowName::Failure).initialization_script(&script).build()?;
            Ok(())
        })
        .build(crate::context())
        .context("no window could be opened to say so")?;
    app.run_return(|_, _| {});
    Ok(())
}
