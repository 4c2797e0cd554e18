//! The windows that are open, by their names.

use api::WindowName;
use tauri::{AppHandle, Manager, WebviewWindow};

/// The window of this label.
pub fn name_of(label: &str) -> Option<WindowName> {
    WindowName::ALL.into_iter().find(|name| name.as_str() == label)
}

/// The window of this name, if it is open.
pub fn open_window(app: &AppHandle, name: WindowName) -> Option<WebviewWindow> {
    app.get_webview_window(name.as_str())
}
