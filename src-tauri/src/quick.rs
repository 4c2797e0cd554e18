//! Quick entry: a small window over everything for one question, shown and hidden by keys that are heard everywhere, by the tray, or by
//! `--quick-entry`, to which desktops that keep keys to themselves can give a key.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use protocol::{Absence, WindowName};
use tauri::{AppHandle, Emitter, EventTarget, LogicalSize, Manager};
use tauri_plugin_global_shortcut::{GlobalShortcutExt, ShortcutState};

use crate::commands::QUICK_SHOWN;
use crate::window;

/// The argument with which a start shows quick entry in the app that runs.
pub const QUICK_ENTRY: &str = "--quick-entry";

/// How wide the window is, and between which heights it follows what it shows, in logical pixels.
const WIDTH: f64 = 640.0;
const HEIGHTS: (f64, f64) = (64.0, 560.0);

/// The keys, as far as they are heard.
#[derive(Default)]
pub struct QuickEntry {
    /// Whether the plugin is there that hears them. It costs a thread that wakes up, so it is started with the first keys that are set.
    listening: AtomicBool,
    heard: Mutex<Option<String>>,
    refused: Mutex<Option<String>>,
    /// The program that had the focus before. Elsewhere the window system gives it back by itself.
    #[cfg(target_os = "macos")]
    front: Mutex<Option<crate::front::Front>>,
}

impl QuickEntry {
    /// Why the keys that are set are not heard.
    pub fn refused(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why no keys are heard while another program is in front; `None`: they are.
pub fn absence() -> Option<Absence> {
    let wayland = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "x11" && value != "tty");
    let absent = cfg!(target_os = "linux") && (wayland("WAYLAND_DISPLAY") || wayland("XDG_SESSION_TYPE"));
    absent.then_some(Absence::Wayland)
}

/// Hears these keys from now on, or none.
pub fn apply(app: &AppHandle, keys: Option<String>) {
    let handle = app.clone();
    let done = app.run_on_main_thread(move || {
        let entry = handle.state::<QuickEntry>();
        let mut heard = entry.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if *heard == keys {
            return;
        }
        let set = listen(&handle, &entry, keys.as_deref());
        if let Err(reason) = &set {
            tracing::warn!("the keys of quick entry are not heard: {reason}");
        }
        *entry.refused.lock().unwrap_or_else(PoisonError::into_inner) = set.err();
        *heard = keys;
    });
    if let Err(error) = done {
        tracing::warn!("the keys of quick entry are as they were: {error}");
    }
}

fn listen(app: &AppHandle, entry: &QuickEntry, keys: Option<&str>) -> Result<(), String> {
    if absence().is_some() {
        return Ok(());
    }
    let said = |error: &dyn std::fmt::Display| error.to_string();
    if !entry.listening.load(Ordering::Relaxed) {
        if keys.is_none() {
            return Ok(());
        }
        app.plugin(tauri_plugin_global_shortcut::Builder::new().build())
            .map_err(|error| said(&error))?;
        entry.listening.store(true, Ordering::Relaxed);
    }
    let shortcuts = app.global_shortcut();
    shortcuts.unregister_all().map_err(|error| said(&error))?;
    let Some(keys) = keys else {
        // On X11 the plugin's library keeps to itself that keys are given back until it asks the server for others; here for some that hardly a keyboard has.
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
    pressed.map_err(|error| said(&error))
}

/// Shows the window, with the focus where a question is written.
///
/// # Errors
/// When the window system refuses.
pub fn show(app: &AppHandle) -> tauri::Result<()> {
    #[cfg(target_os = "macos")]
    if !window::is_visible(app, WindowName::Quick) {
        let entry = app.state::<QuickEntry>();
        *entry.front.lock().unwrap_or_else(PoisonError::into_inner) = crate::front::Front::other();
    }
    window::show(app, WindowName::Quick)?;
    #[cfg(target_os = "linux")]
    take_focus(app)?;
    app.emit_to(EventTarget::webview_window(WindowName::Quick.as_str()), QUICK_SHOWN, ())
}

/// Asks the window manager for the focus with the time of now. GTK knows nothing of keys that are heard everywhere, and a window that it
/// shows with the time of the last click in this app stays without the focus if another program was clicked since.
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
        // Wayland's windows have no such time; there the compositor decides.
        let surface = window.window().and_then(|surface| surface.downcast::<gdkx11::X11Window>().ok());
        if let Some(surface) = surface {
            window.present_with_time(gdkx11::functions::x11_get_server_time(&surface));
        }
    })
}

/// Hides the window; who had the focus before has it again.
pub fn hide(app: &AppHandle) {
    #[cfg(target_os = "macos")]
    let front = take_front(app);
    window::hide(app, WindowName::Quick);
    #[cfg(target_os = "macos")]
    if let Some(front) = front {
        front.give_back(app);
    }
}

/// The focus went elsewhere, where it stays when the window is hidden.
#[cfg_attr(
    not(target_os = "macos"),
    expect(unused_variables, reason = "macOS alone leaves the focus to the app")
)]
pub fn left(app: &AppHandle) {
    #[cfg(target_os = "macos")]
    take_front(app);
}

#[cfg(target_os = "macos")]
fn take_front(app: &AppHandle) -> Option<crate::front::Front> {
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

/// Makes the window as high as what it shows, within limits.
///
/// # Errors
/// When the window system refuses.
pub fn fit(app: &AppHandle, height: f64) -> tauri::Result<()> {
    let height = if height.is_finite() {
        height.clamp(HEIGHTS.0, HEIGHTS.1)
    } else {
        HEIGHTS.0
    };
    match app.get_webview_window(WindowName::Quick.as_str()) {
        Some(window) => window.set_size(LogicalSize::new(WIDTH, height)),
        None => Ok(()),
    }
}
