//! The window that says why the app could not start, for people who started it by a double click and see no terminal.

use anyhow::{Context, Result};
use protocol::WindowName;

use crate::window;

/// Shows the reason until the window is closed. The page can call nothing: it has no capability and no command.
///
/// # Errors
/// When no window can be opened either.
pub fn show(reason: &anyhow::Error) -> Result<()> {
    let script = format!("globalThis.ponderFailure = {};", serde_json::Value::from(format!("{reason:#}")));
    let app = tauri::Builder::default()
        .setup(move |app| {
            window::builder(app, WindowName::Failure).initialization_script(&script).build()?;
            Ok(())
        })
        .build(crate::context())
        .context("no window could be opened to say so")?;
    app.run_return(|_, _| {});
    Ok(())
}
