//! The window that says why the app could not start, for people who started it by a double click and see no terminal.

use anyhow::{Context, Result};
use tauri::{WebviewUrl, WebviewWindowBuilder};

/// Shows the reason until the window is closed. The page can call nothing: it has no capability and no command.
///
/// # Errors
/// When no window can be opened either.
pub fn show(reason: &anyhow::Error) -> Result<()> {
    let script = format!("globalThis.ponderFailure = {};", serde_json::Value::from(format!("{reason:#}")));
    let app = tauri::Builder::default()
        .setup(move |app| {
            WebviewWindowBuilder::new(app, "failure", WebviewUrl::App("index.html?window=failure".into()))
                .title("Ponder could not start")
                .inner_size(600.0, 340.0)
                .initialization_script(&script)
                .build()?;
            Ok(())
        })
        .build(crate::context())
        .context("no window could be opened to say so")?;
    app.run_return(|_, _| {});
    Ok(())
}
