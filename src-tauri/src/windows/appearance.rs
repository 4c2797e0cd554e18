//! The part of the windows' appearance that pages do not control: zoom, the title bar, and the look of a page before it
//! has read the settings.

use api::{Appearance, Theme};
use tauri::{AppHandle, Manager, WebviewWindow};

use crate::app::state::App;

/// The current appearance.
pub fn current(app: &AppHandle) -> Appearance {
    app.state::<App>().chat.settings().follow().borrow().appearance.clone()
}

/// A script that applies the appearance before a page draws anything.
pub fn script(appearance: &Appearance) -> String {
    let appearance = serde_json::json!(appearance);
    format!("globalThis.ponderAppearance = {appearance};")
}

/// Applies the appearance to all windows.
pub fn apply_everywhere(app: &AppHandle, appearance: &Appearance) {
    for window in app.webview_windows().values() {
        apply(window, appearance);
    }
}

/// Applies the appearance to a window.
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
