//! The windows. Each is one page of the interface; [`frame`] says how it looks at first and [`builder`] makes any of them.
//! Only the chat window is opened at the start, because each window costs a web process.

use protocol::WindowName;
use tauri::{AppHandle, Manager, WebviewUrl, WebviewWindow, WebviewWindowBuilder, Wry};

use crate::navigation;
use crate::state::App;

/// How a window looks when it is opened for the first time. Sizes are logical pixels.
struct Frame {
    title: &'static str,
    size: (f64, f64),
    least: (f64, f64),
}

fn frame(name: WindowName) -> Frame {
    let (title, size, least) = match name {
        WindowName::Chat => ("Ponder", (1180.0, 860.0), (480.0, 400.0)),
        WindowName::Models => ("Models", (900.0, 640.0), (480.0, 360.0)),
        WindowName::Settings => ("Settings", (760.0, 620.0), (440.0, 360.0)),
        WindowName::Failure => ("Ponder could not start", (600.0, 340.0), (360.0, 240.0)),
    };
    Frame { title, size, least }
}

/// A window that is about to be opened, confined to Ponder's own pages.
pub fn builder<M: Manager<Wry>>(app: &M, name: WindowName) -> WebviewWindowBuilder<'_, Wry, M> {
    let Frame { title, size, least } = frame(name);
    let page = WebviewUrl::App(format!("index.html?window={}", name.as_str()).into());
    let window = WebviewWindowBuilder::new(app, name.as_str(), page)
        .title(title)
        .inner_size(size.0, size.1)
        .min_inner_size(least.0, least.1);
    navigation::confine(app, window)
}

/// Brings a window to the front; opens it if it is not open.
///
/// # Errors
/// When the window system refuses.
pub fn show(app: &AppHandle, name: WindowName) -> tauri::Result<()> {
    if let Some(window) = open_window(app, name) {
        window.unminimize()?;
        window.show()?;
        return window.set_focus();
    }
    // What the web views keep lies in the data folder, so that moving that folder moves all of it.
    let window = builder(app, name).data_directory(app.state::<App>().data_dir.join("webview"));
    // The chat window's page takes what is dropped itself: a browser drops bitmaps, of which the shell would hear an address alone.
    let window = match name {
        WindowName::Chat => window.disable_drag_drop_handler(),
        WindowName::Models | WindowName::Settings | WindowName::Failure => window,
    };
    // The chat window's sidebar reaches up to the traffic lights.
    #[cfg(target_os = "macos")]
    let window = match name {
        WindowName::Chat => window.title_bar_style(tauri::TitleBarStyle::Overlay).hidden_title(true),
        WindowName::Models | WindowName::Settings | WindowName::Failure => window,
    };
    window.build().map(drop)
}

/// Called after a window was closed. Without the chat window there is no way back to it, so the others close as well, and
/// with the last window the app ends.
pub fn closed(app: &AppHandle, label: &str) {
    if label != WindowName::Chat.as_str() {
        return;
    }
    for name in WindowName::ALL.into_iter().filter(|name| *name != WindowName::Chat) {
        if let Some(Err(error)) = open_window(app, name).map(|window| window.close()) {
            tracing::warn!("the {} window could not be closed: {error}", name.as_str());
        }
    }
}

fn open_window(app: &AppHandle, name: WindowName) -> Option<WebviewWindow> {
    app.get_webview_window(name.as_str())
}
