//! The windows. Each is one page of the interface; [`frame`] says how it looks at first and [`builder`] makes any of
//! them. Only the chat window is opened at the start, because each window costs a web process.

use std::time::Duration;

use api::{PageRequest, WindowName};
use protocol::{Error, ErrorCode};
use serde::Serialize;
use tauri::{AppHandle, Emitter, EventTarget, Manager, WebviewUrl, WebviewWindow, WebviewWindowBuilder, Wry};

use crate::app::state::App;
use crate::events::SHOW_PAGE;
use crate::system::navigation;
#[cfg(target_os = "linux")]
use crate::system::web_process;
pub use crate::windows::open_windows::{name_of, open_window};
use crate::windows::pending_quit::Quit;
#[cfg(target_os = "linux")]
use crate::windows::previews::Previews;
use crate::windows::{appearance, places};
use crate::words::{self, Words};

/// The initial size and limits of a window, in logical pixels.
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
        WindowName::Consent => ((520.0, 640.0), (360.0, 360.0)),
        WindowName::Failure => ((620.0, 440.0), (360.0, 240.0)),
    };
    Frame { size, least }
}

/// A builder of a window that is confined to Ponder's own pages.
pub fn builder<'a, M: Manager<Wry>>(app: &'a M, name: WindowName, words: &Words) -> WebviewWindowBuilder<'a, Wry, M> {
    page(app, name, "", words)
}

/// The same, with more in the URL of its page.
fn page<'a, M: Manager<Wry>>(
    app: &'a M,
    name: WindowName,
    more: &str,
    words: &Words,
) -> WebviewWindowBuilder<'a, Wry, M> {
    let Frame { size, least } = frame(name);
    let page = WebviewUrl::App(format!("index.html?window={}{more}", name.as_str()).into());
    let window = WebviewWindowBuilder::new(app, name.as_str(), page)
        .title(words.title(name))
        .inner_size(size.0, size.1)
        .min_inner_size(least.0, least.1);
    navigation::confine(app, window)
}

/// Brings a window to the front, opening it if needed.
///
/// # Errors
/// When the window system refuses.
pub fn show(app: &AppHandle, name: WindowName) -> tauri::Result<()> {
    // A window that is opened again cancels quitting after the running work.
    app.state::<Quit>().call_off();
    if let Some(window) = open_window(app, name) {
        window.unminimize()?;
        window.show()?;
        return window.set_focus();
    }
    open(app, name, "", true)
}

/// Opens the chat window; a start at login keeps it hidden.
///
/// # Errors
/// When the window system refuses.
pub fn open_chat(app: &AppHandle, visible: bool) -> tauri::Result<()> {
    open(app, WindowName::Chat, "", visible)
}

/// Shows that the history is damaged, what is left of it, and what can be done.
///
/// # Errors
/// When the window system refuses.
pub fn show_damage(app: &AppHandle) -> tauri::Result<()> {
    show(app, WindowName::Failure)
}

/// The script that gives the failure window its error, and says whether the history can be mended and the app runs.
pub fn failure_script(error: &Error, history: bool, running: bool) -> String {
    let told = serde_json::json!({"error": error, "history": history, "running": running});
    format!("globalThis.ponderFailure = {told};")
}

/// Brings a window to the front at one of its pages, opening it if needed.
///
/// # Errors
/// When the window system refuses.
pub fn show_page(app: &AppHandle, asked: &PageRequest) -> tauri::Result<()> {
    let name = asked.page.window();
    if open_window(app, name).is_none() {
        return open(app, name, &address(asked), true);
    }
    show(app, name)?;
    send(app, name, SHOW_PAGE, asked)
}

/// The part of a window's address that asks for a page. A row comes from another page, so it cannot add anything else.
fn address(asked: &PageRequest) -> String {
    let is_name = |row: &&String| row.chars().all(|letter| letter.is_ascii_alphanumeric());
    let row = asked.row.as_ref().filter(is_name);
    let row = row.map(|row| format!("&row={row}")).unwrap_or_default();
    format!("&page={}{row}", asked.page.as_str())
}

/// Sends an event to the page of a window.
///
/// # Errors
/// When the window system refuses.
pub fn send<S: Serialize + Clone>(app: &AppHandle, name: WindowName, event: &str, payload: S) -> tauri::Result<()> {
    app.emit_to(EventTarget::webview_window(name.as_str()), event, payload)
}

fn open(app: &AppHandle, name: WindowName, more: &str, visible: bool) -> tauri::Result<()> {
    let look = appearance::current(app);
    // The web views' data is in the data folder, so moving that folder moves all of it.
    let window = page(app, name, more, words::current(app))
        .visible(visible)
        .data_directory(app.state::<App>().data_dir.join("webview"));
    let window = window.initialization_script(appearance::script(&look));
    let window = places::put(app, window, name, frame(name).size);
    let window = match name {
        // The chat window's page handles drops itself: browsers drop bitmaps, of which the shell would only receive a
        // URL.
        WindowName::Chat => window.disable_drag_drop_handler(),
        WindowName::Quick => window
            .decorations(false)
            .always_on_top(true)
            .visible_on_all_workspaces(true)
            .skip_taskbar(true)
            .center(),
        WindowName::Failure => {
            let error = Error::new(ErrorCode::HistoryDamaged, "the history is damaged");
            window
                .title(words::current(app).history_damaged)
                .initialization_script(failure_script(&error, true, true))
        }
        WindowName::Models | WindowName::Settings | WindowName::Consent => window,
    };
    // The chat window's sidebar reaches up to the traffic lights.
    #[cfg(target_os = "macos")]
    let window = match name {
        WindowName::Chat => window.title_bar_style(tauri::TitleBarStyle::Overlay).hidden_title(true),
        WindowName::Models | WindowName::Settings | WindowName::Quick | WindowName::Consent | WindowName::Failure => {
            window
        }
    };
    let window = window.build()?;
    #[cfg(target_os = "linux")]
    follow_process(app, &window, name)?;
    appearance::apply(&window, &look);
    #[cfg(target_os = "macos")]
    if name == WindowName::Quick {
        crate::system::frontmost_app::over_full_screen(&window);
    }
    Ok(())
}

/// Reloads the page of a window whose process ends, and ends it if a preview in it never does.
#[cfg(target_os = "linux")]
fn follow_process(app: &AppHandle, window: &WebviewWindow, name: WindowName) -> tauri::Result<()> {
    web_process::follow(window.as_ref())?;
    if name != WindowName::Chat {
        return Ok(());
    }
    let app = app.clone();
    web_process::end_if_stuck(window.as_ref(), move || app.state::<Previews>().is_any_open())
}

/// Applies a language to the titles of all windows.
///
/// # Errors
/// When the window system refuses.
pub fn speak(app: &AppHandle, words: &Words) -> tauri::Result<()> {
    WindowName::ALL
        .into_iter()
        .filter_map(|name| Some((name, open_window(app, name)?)))
        .try_for_each(|(name, window)| window.set_title(words.title(name)))
}

/// The time that macOS takes to leave the full screen. No event reports the end.
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
    // On macOS the full-screen space of the window would stay, black and empty.
    if cfg!(target_os = "macos") && window.is_fullscreen().unwrap_or(false) && window.set_fullscreen(false).is_ok() {
        tauri::async_runtime::spawn(async move {
            tokio::time::sleep(FROM_FULL_SCREEN).await;
            hide(&window);
        });
        return;
    }
    hide(&window);
}

/// True if a window is open and not hidden.
pub fn is_visible(app: &AppHandle, name: WindowName) -> bool {
    open_window(app, name).is_some_and(|window| window.is_visible().unwrap_or(false))
}

/// True if any window except quick entry is open and not hidden.
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

/// Toggles the full screen of a window.
///
/// # Errors
/// When the window system refuses.
pub fn toggle_full_screen(app: &AppHandle, name: WindowName) -> tauri::Result<()> {
    match open_window(app, name) {
        Some(window) => window.set_fullscreen(!window.is_fullscreen()?),
        None => Ok(()),
    }
}
