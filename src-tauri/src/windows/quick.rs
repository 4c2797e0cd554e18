//! Quick entry: a small window over everything else for one question, shown and hidden by global shortcuts, by the
//! tray, or by `--quick-entry`, to which desktops without global shortcuts can assign a key.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use api::{UnavailableReason, WindowName};
use protocol::{Error, Reason, Result};
use tauri::{AppHandle, LogicalSize, Manager};
use tauri_plugin_global_shortcut::{GlobalShortcutExt, ShortcutState};

use crate::events::QUICK_SHOWN;
use crate::system::failed;
use crate::windows::window;

/// The argument with which a start shows quick entry in the running app.
pub const QUICK_ENTRY: &str = "--quick-entry";

/// The width of the window, and the limits of its height, which follows the content, in logical pixels.
const WIDTH: f64 = 640.0;
const HEIGHTS: (f64, f64) = (64.0, 560.0);

/// The global shortcut.
#[derive(Default)]
pub struct QuickEntry {
    /// True once the plugin is started. It costs a thread that wakes up, so the first shortcut starts it.
    listening: AtomicBool,
    heard: Mutex<Option<String>>,
    refused: Mutex<Option<Error>>,
    /// The app that had the focus before. On other systems the window system restores it.
    #[cfg(target_os = "macos")]
    front: Mutex<Option<crate::system::frontmost_app::FrontmostApp>>,
}

impl QuickEntry {
    /// The reason why the shortcut is not registered.
    pub fn refused(&self) -> Option<Error> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The reason why this desktop has no global shortcuts; `None` if it has.
pub fn unavailable_reason() -> Option<UnavailableReason> {
    let wayland =
        |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "x11" && value != "tty");
    let absent = cfg!(target_os = "linux") && (wayland("WAYLAND_DISPLAY") || wayland("XDG_SESSION_TYPE"));
    absent.then_some(UnavailableReason::Wayland)
}

/// Registers this shortcut, or none.
pub fn apply(app: &AppHandle, keys: Option<String>) {
    let handle = app.clone();
    let done = app.run_on_main_thread(move || {
        let entry = handle.state::<QuickEntry>();
        let mut heard = entry.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if *heard == keys {
            return;
        }
        let set = listen(&handle, &entry, keys.as_deref());
        if let Err(error) = &set {
            tracing::warn!("the keys of quick entry are not heard: {error}");
        }
        *entry.refused.lock().unwrap_or_else(PoisonError::into_inner) = set.err();
        *heard = keys;
    });
    if let Err(error) = done {
        tracing::warn!("the keys of quick entry are as they were: {error}");
    }
}

fn listen(app: &AppHandle, entry: &QuickEntry, keys: Option<&str>) -> Result<()> {
    if unavailable_reason().is_some() {
        return Ok(());
    }
    if !entry.listening.load(Ordering::Relaxed) {
        if keys.is_none() {
            return Ok(());
        }
        app.plugin(tauri_plugin_global_shortcut::Builder::new().build())
            .map_err(refused)?;
        entry.listening.store(true, Ordering::Relaxed);
    }
    let shortcuts = app.global_shortcut();
    shortcuts.unregister_all().map_err(refused)?;
    let Some(keys) = keys else {
        // On X11 the plugin's library flushes an unregistered shortcut only with its next request to the server; this
        // one asks for keys that hardly any keyboard has.
        #[cfg(target_os = "linux")]
        if let Err(error) = shortcuts.register("Ctrl+Alt+Shift+Super+Quote") {
            tracing::debug!("the server knows of the keys that were given back: {error}");
        }
        return Ok(());
    };
    let pressed = shortcuts.on_shortcut(keys, |app, _, event| {
        if event.state == ShortcutState::Pressed {
            toggle(app);
        }
    });
    pressed.map_err(refused)
}

fn refused(error: impl Display) -> Error {
    failed(Reason::ShortcutRefused, "the shortcut was refused")(error)
}

/// Shows the window and focuses the question.
///
/// # Errors
/// When the window system refuses.
pub fn show(app: &AppHandle) -> tauri::Result<()> {
    #[cfg(target_os = "macos")]
    if !window::is_visible(app, WindowName::Quick) {
        let entry = app.state::<QuickEntry>();
        *entry.front.lock().unwrap_or_else(PoisonError::into_inner) =
            crate::system::frontmost_app::FrontmostApp::other();
    }
    window::show(app, WindowName::Quick)?;
    #[cfg(target_os = "linux")]
    take_focus(app)?;
    window::send(app, WindowName::Quick, QUICK_SHOWN, ())
}

/// Asks the window manager for the focus with the current time. GTK does not know of global shortcuts; a window that it
/// shows with the time of the last click in this app gets no focus if another program was clicked since.
#[cfg(target_os = "linux")]
fn take_focus(app: &AppHandle) -> tauri::Result<()> {
    use gtk::glib::prelude::Cast;
    use gtk::prelude::{GtkWindowExt, WidgetExt};

    let Some(window) = app.get_webview_window(WindowName::Quick.as_str()) else {
        return Ok(());
    };
    window.clone().run_on_main_thread(move || {
        let Ok(window) = window.gtk_window() else {
            return;
        };
        // Wayland has no such time; the compositor decides.
        let surface = window
            .window()
            .and_then(|surface| surface.downcast::<gdkx11::X11Window>().ok());
        if let Some(surface) = surface {
            window.present_with_time(gdkx11::functions::x11_get_server_time(&surface));
        }
    })
}

/// Hides the window and returns the focus.
pub fn hide(app: &AppHandle) {
    #[cfg(target_os = "macos")]
    let front = take_front(app);
    window::hide(app, WindowName::Quick);
    #[cfg(target_os = "macos")]
    if let Some(front) = front {
        front.give_back(app);
    }
}

/// Records that the focus moved elsewhere, where it stays when the window is hidden.
#[cfg_attr(
    not(target_os = "macos"),
    expect(unused_variables, reason = "macOS alone leaves the focus to the app")
)]
pub fn left(app: &AppHandle) {
    #[cfg(target_os = "macos")]
    take_front(app);
}

#[cfg(target_os = "macos")]
fn take_front(app: &AppHandle) -> Option<crate::system::frontmost_app::FrontmostApp> {
    let entry = app.state::<QuickEntry>();
    let mut front = entry.front.lock().unwrap_or_else(PoisonError::into_inner);
    front.take()
}

fn toggle(app: &AppHandle) {
    if window::is_visible(app, WindowName::Quick) {
        hide(app);
    } else if let Err(error) = show(app) {
        tracing::warn!("quick entry could not be shown: {error}");
    }
}

/// Fits the height of the window to its content, within limits.
///
/// # Errors
/// When the window system refuses.
pub fn fit(app: &AppHandle, height: f64) -> tauri::Result<()> {
    let height = Some(height).filter(|height| height.is_finite()).unwrap_or(HEIGHTS.0);
    let height = height.clamp(HEIGHTS.0, HEIGHTS.1);
    match app.get_webview_window(WindowName::Quick.as_str()) {
        Some(window) => window.set_size(LogicalSize::new(WIDTH, height)),
        None => Ok(()),
    }
}
