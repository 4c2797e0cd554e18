//! The two windows. The Models window is made when it is first asked for, because each window costs a web process.

use std::path::PathBuf;

use tauri::{AppHandle, Manager, WebviewUrl, WebviewWindowBuilder};

use crate::state::App;

const CHAT: &str = "main";
const MODELS: &str = "models";

/// Where the web views keep what is theirs, so that moving the data folder moves all of it.
fn web_data(app: &AppHandle) -> PathBuf {
    app.state::<App>().data_dir.join("webview")
}

/// Opens the chat window.
///
/// # Errors
/// When the window system refuses.
pub fn open_chat(app: &AppHandle) -> tauri::Result<()> {
    let builder = WebviewWindowBuilder::new(app, CHAT, WebviewUrl::App("index.html".into()))
        .title("Ponder")
        .inner_size(1180.0, 860.0)
        .min_inner_size(480.0, 400.0)
        .data_directory(web_data(app));
    // The sidebar reaches up to the traffic lights.
    #[cfg(target_os = "macos")]
    let builder = builder.title_bar_style(tauri::TitleBarStyle::Overlay).hidden_title(true);
    builder.build().map(drop)
}

/// Brings the chat window to the front.
pub fn show_chat(app: &AppHandle) {
    if let Some(window) = app.get_webview_window(CHAT) {
        let shown = window.unminimize().and_then(|()| window.show()).and_then(|()| window.set_focus());
        if let Err(error) = shown {
            tracing::warn!("the chat window did not come to the front: {error}");
        }
    }
}

/// Goes on after a window was closed: without the chat window there is no way back to it, so the Models window goes too and
/// with the last window the app.
pub fn closed(app: &AppHandle, label: &str) {
    if let Some(models) = app.get_webview_window(MODELS).filter(|_| label == CHAT) {
        if let Err(error) = models.close() {
            tracing::warn!("the Models window could not be closed: {error}");
        }
    }
}

/// Opens the Models window or brings it to the front.
///
/// # Errors
/// When the window system refuses.
pub fn show_models(app: &AppHandle) -> tauri::Result<()> {
    if let Some(window) = app.get_webview_window(MODELS) {
        window.unminimize()?;
        window.show()?;
        return window.set_focus();
    }
    WebviewWindowBuilder::new(app, MODELS, WebviewUrl::App("index.html?window=models".into()))
        .title("Models")
        .inner_size(900.0, 640.0)
        .min_inner_size(480.0, 360.0)
        .data_directory(web_data(app))
        .build()
        .map(drop)
}
