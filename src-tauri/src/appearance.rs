//! What of the windows' appearance is not the pages' own: zoom, the title bar, and how a page looks before it has read what is set.

use protocol::{Appearance, Theme};
use tauri::{AppHandle, Manager, WebviewWindow};

use crate::state::App;

/// What is set now.
pub fn current(app: &AppHandle) -> Appearance {
    app.state::<App>().chat.follow_settings().borrow().appearance.clone()
}

/// Tells a page how to look, before anything of it is drawn.
pub fn script(appearance: &Appearance) -> String {
    let appearance = serde_json::json!(appearance);
    format!("globalThis.ponderAppearance = {appearance};")
}

/// Lets all windows look so.
pub fn apply_everywhere(app: &AppHandle, appearance: &Appearance) {
    for window in app.webview_windows().values() {
        apply(window, appearance);
    }
}

/// Lets a window look so.
pub fn apply(window: &WebviewWindow, appearance: &Appearance) {
    if let Err(error) = window.set_zoom(f64::from(appearance.zoom) / 100.0) {
        tracing::warn!("a window keeps its zoom: {error}");
    }
    // Elsewhere the frame belongs to the desktop, which has one theme for all of its windows.
    if cfg!(target_os = "macos") {
        let theme = match appearance.theme {
            Theme::System => None,
            Theme::Light => Some(tauri::Theme::Light),
            Theme::Dark => Some(tauri::Theme::Dark),
        };
        if let Err(error) = window.set_theme(theme) {
            tracing::warn!("a window keeps its theme: {error}");
        }
    }
}
