//! The windows. Each is one page of the interface; [`frame`] says how it looks at first and [`builder`] makes any of them.
//! Only the chat window is opened at the start, because each window costs a web process.

use std::time::Duration;

use protocol::{Command, WindowName};
use tauri::{AppHandle, Emitter, EventTarget, Manager, WebviewUrl, WebviewWindow, WebviewWindowBuilder, Wry};

use crate::commands::COMMAND;
use crate::quit::Quit;
use crate::state::App;
#[cfg(target_os = "linux")]
use crate::web_process;
use crate::words::{self, Words};
use crate::{appearance, navigation};

/// How a window looks when it is opened for the first time. Sizes are logical pixels.
struct Frame {
    size: (f64, f64),
    least: (f64, f64),
}

fn frame(name: WindowName) -> Frame {
    let (size, least) = match name {
        WindowName::Chat => ((1180.0, 860.0), (480.0, 400.0)),
        WindowName::Models => ((900.0, 640.0), (480.0, 360.0)),
        WindowName::Settings => ((760.0, 620.0), (440.0, 360.0)),
        WindowName::Quick => ((640.0, 64.0), (320.0, 48.0)),
        WindowName::Failure => ((600.0, 340.0), (360.0, 240.0)),
    };
    Frame { size, least }
}

/// A window that is about to be opened, confined to Ponder's own pages.
pub fn builder<'a, M: Manager<Wry>>(app: &'a M, name: WindowName, words: &Words) -> WebviewWindowBuilder<'a, Wry, M> {
    page(app, name, "", words)
}

/// The same, with more in the address of its page.
fn page<'a, M: Manager<Wry>>(app: &'a M, name: WindowName, more: &str, words: &Words) -> WebviewWindowBuilder<'a, Wry, M> {
    let Frame { size, least } = frame(name);
    let page = WebviewUrl::App(format!("index.html?window={}{more}", name.as_str()).into());
    let window = WebviewWindowBuilder::new(app, name.as_str(), page)
        .title(words.title(name))
        .inner_size(size.0, size.1)
        .min_inner_size(least.0, least.1);
    navigation::confine(app, window)
}

/// Brings a window to the front; opens it if it is not open.
///
/// # Errors
/// When the window system refuses.
pub fn show(app: &AppHandle, name: WindowName) -> tauri::Result<()> {
    // Who opens a window again does not want the app to end as soon as nothing runs.
    app.state::<Quit>().call_off();
    if let Some(window) = open_window(app, name) {
        window.unminimize()?;
        window.show()?;
        return window.set_focus();
    }
    open(app, name, "", true)
}

/// Opens the chat window, which a start at login does not show.
///
/// # Errors
/// When the window system refuses.
pub fn open_chat(app: &AppHandle, visible: bool) -> tauri::Result<()> {
    open(app, WindowName::Chat, "", visible)
}

/// Shows what is built into Ponder.
///
/// # Errors
/// When the window system refuses.
pub fn show_about(app: &AppHandle) -> tauri::Result<()> {
    if open_window(app, WindowName::Settings).is_none() {
        return open(app, WindowName::Settings, "&page=about", true);
    }
    show(app, WindowName::Settings)?;
    app.emit_to(EventTarget::webview_window(WindowName::Settings.as_str()), COMMAND, Command::About)
}

fn open(app: &AppHandle, name: WindowName, more: &str, visible: bool) -> tauri::Result<()> {
    let look = appearance::current(app);
    // What the web views keep lies in the data folder, so that moving that folder moves all of it.
    let window = page(app, name, more, words::current(app))
        .visible(visible)
        .data_directory(app.state::<App>().data_dir.join("webview"));
    let window = window.initialization_script(appearance::script(&look));
    let window = match name {
        // The chat window's page takes what is dropped itself: a browser drops bitmaps, of which the shell would hear an address alone.
        WindowName::Chat => window.disable_drag_drop_handler(),
        WindowName::Quick => window
            .decorations(false)
            .always_on_top(true)
            .visible_on_all_workspaces(true)
            .skip_taskbar(true)
            .center(),
        WindowName::Models | WindowName::Settings | WindowName::Failure => window,
    };
    // The chat window's sidebar reaches up to the traffic lights.
    #[cfg(target_os = "macos")]
    let window = match name {
        WindowName::Chat => window.title_bar_style(tauri::TitleBarStyle::Overlay).hidden_title(true),
        WindowName::Models | WindowName::Settings | WindowName::Quick | WindowName::Failure => window,
    };
    let window = window.build()?;
    #[cfg(target_os = "linux")]
    web_process::follow(window.as_ref())?;
    appearance::apply(&window, &look);
    #[cfg(target_os = "macos")]
    if name == WindowName::Quick {
        crate::front::over_full_screen(&window);
    }
    Ok(())
}

/// Lets the titles of all windows speak this language.
///
/// # Errors
/// When the window system refuses.
pub fn speak(app: &AppHandle, words: &Words) -> tauri::Result<()> {
    WindowName::ALL
        .into_iter()
        .filter_map(|name| Some((name, open_window(app, name)?)))
        .try_for_each(|(name, window)| window.set_title(words.title(name)))
}

/// How long macOS takes to bring a window back from the full screen. Nothing tells when it has.
const FROM_FULL_SCREEN: Duration = Duration::from_millis(1500);

/// Hides a window; its page stays as it is.
pub fn hide(app: &AppHandle, name: WindowName) {
    let Some(window) = open_window(app, name) else {
        return;
    };
    let hide = move |window: &WebviewWindow| {
        if let Err(error) = window.hide() {
            tracing::warn!("the {} window could not be hidden: {error}", name.as_str());
        }
    };
    // On macOS the screen of its own that a window fills would stay, black and empty.
    if cfg!(target_os = "macos") && window.is_fullscreen().unwrap_or(false) && window.set_fullscreen(false).is_ok() {
        tauri::async_runtime::spawn(async move {
            tokio::time::sleep(FROM_FULL_SCREEN).await;
            hide(&window);
        });
        return;
    }
    hide(&window);
}

/// Whether a window is open and not hidden.
pub fn is_visible(app: &AppHandle, name: WindowName) -> bool {
    open_window(app, name).is_some_and(|window| window.is_visible().unwrap_or(false))
}

/// Whether any window is open and not hidden, quick entry apart.
#[cfg(target_os = "macos")]
pub fn is_any_visible(app: &AppHandle) -> bool {
    WindowName::ALL
        .into_iter()
        .any(|name| name != WindowName::Quick && is_visible(app, name))
}

/// Asks a window to close, as its own button does.
///
/// # Errors
/// When the window system refuses.
pub fn close(app: &AppHandle, name: WindowName) -> tauri::Result<()> {
    open_window(app, name).map_or(Ok(()), |window| window.close())
}

/// Lets a window fill the screen, or no longer.
///
/// # Errors
/// When the window system refuses.
pub fn toggle_full_screen(app: &AppHandle, name: WindowName) -> tauri::Result<()> {
    match open_window(app, name) {
        Some(window) => window.set_fullscreen(!window.is_fullscreen()?),
        None => Ok(()),
    }
}

/// The window of this label.
pub fn name_of(label: &str) -> Option<WindowName> {
    WindowName::ALL.into_iter().find(|name| name.as_str() == label)
}

/// Whether a window may close that is asked to; one that may not has been hidden, or its page asks something.
pub fn may_close(app: &AppHandle, label: &str) -> bool {
    match name_of(label) {
        Some(WindowName::Chat) => crate::quit::may_close(app),
        // It stays ready as long as there is an app to open it again.
        Some(WindowName::Quick) if open_window(app, WindowName::Chat).is_some() => {
            crate::quick::hide(app);
            false
        }
        _ => true,
    }
}

/// Called after a window was closed. Without the chat window there is no way back to it, so the others close as well, and
/// with the last window the app ends.
pub fn closed(app: &AppHandle, label: &str) {
    if label != WindowName::Chat.as_str() {
        return;
    }
    for name in WindowName::ALL.into_iter().filter(|name| *name != WindowName::Chat) {
        // Quick entry would hide instead.
        let end = |window: WebviewWindow| {
            if name == WindowName::Quick {
                window.destroy()
            } else {
                window.close()
            }
        };
        if let Some(Err(error)) = open_window(app, name).map(end) {
            tracing::warn!("the {} window could not be closed: {error}", name.as_str());
        }
    }
}

fn open_window(app: &AppHandle, name: WindowName) -> Option<WebviewWindow> {
    app.get_webview_window(name.as_str())
}
