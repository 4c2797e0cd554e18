//! The icon in the menu bar or the tray, if the user wants one. On Linux it needs a desktop that shows it; without one
//! the app never hides its window.

use std::sync::atomic::{AtomicBool, Ordering};

use api::{Command, UnavailableReason, WindowName};
use tauri::image::Image;
use tauri::menu::{Menu, MenuItem, PredefinedMenuItem};
use tauri::tray::TrayIconBuilder;
use tauri::{AppHandle, Manager, Runtime};

use crate::desktop::menu;
#[cfg(target_os = "linux")]
use crate::system::session_bus;
use crate::windows::window;
use crate::words::{self, Words};

const ID: &str = "ponder";

/// A template image in the menu bar, which the system colors; Linux panels show images as they are, on light and on
/// dark.
#[cfg(target_os = "macos")]
const ICON: &[u8] = include_bytes!("../../../icons/menubar.png");
#[cfg(not(target_os = "macos"))]
const ICON: &[u8] = include_bytes!("../../../icons/32x32.png");

/// The entry that shows the chat window; the others are commands.
pub const SHOW: &str = "show";

/// The service that shows tray icons.
#[cfg(target_os = "linux")]
const WATCHER: &str = "org.kde.StatusNotifierWatcher";

/// True if the user wants the icon.
#[derive(Default)]
pub struct Tray {
    wanted: AtomicBool,
    #[cfg(target_os = "linux")]
    followed: AtomicBool,
}

/// True if the icon is visible.
pub fn is_shown(app: &AppHandle) -> bool {
    app.tray_by_id(ID).is_some()
}

/// True if the app stays reachable without a window: in the Dock, or by the tray icon.
pub fn stays_without_windows(app: &AppHandle) -> bool {
    cfg!(target_os = "macos") || is_shown(app)
}

/// The reason why this desktop has no tray; `None` if it has.
pub async fn unavailable_reason() -> Option<UnavailableReason> {
    #[cfg(target_os = "linux")]
    if !session_bus::offers(WATCHER, false).await {
        return Some(UnavailableReason::NoTray);
    }
    None
}

/// Shows or removes the icon.
pub async fn apply(app: &AppHandle, wanted: bool) {
    let tray = app.state::<Tray>();
    tray.wanted.store(wanted, Ordering::Relaxed);
    set(app, wanted && unavailable_reason().await.is_none());
    #[cfg(target_os = "linux")]
    if wanted && !tray.followed.swap(true, Ordering::Relaxed) {
        tauri::async_runtime::spawn(linux::follow(app.clone()));
    }
}

fn set(app: &AppHandle, shown: bool) {
    let handle = app.clone();
    let done = app.run_on_main_thread(move || match (shown, is_shown(&handle)) {
        (true, false) => {
            if let Err(error) = build(&handle) {
                tracing::warn!("the icon of the app cannot be shown: {error}");
            }
        }
        (false, true) => {
            drop(handle.remove_tray_by_id(ID));
            // A hidden window would have no way back.
            if !stays_without_windows(&handle) {
                window::show(&handle, WindowName::Chat)
                    .unwrap_or_else(|error| tracing::warn!("the window stays hidden: {error}"));
            }
        }
        _ => {}
    });
    if let Err(error) = done {
        tracing::warn!("the icon of the app is not as it is set: {error}");
    }
}

fn build(app: &AppHandle) -> tauri::Result<()> {
    TrayIconBuilder::with_id(ID)
        .icon(Image::from_bytes(ICON)?)
        .icon_as_template(true)
        .tooltip("Ponder")
        .menu(&entries(app, words::current(app))?)
        .build(app)
        .map(drop)
}

/// Applies a language to the icon's menu, if there is an icon.
///
/// # Errors
/// When the window system refuses.
pub fn speak(app: &AppHandle, words: &Words) -> tauri::Result<()> {
    match app.tray_by_id(ID) {
        Some(tray) => tray.set_menu(Some(entries(app, words)?)),
        None => Ok(()),
    }
}

fn entries<R: Runtime>(app: &AppHandle<R>, words: &Words) -> tauri::Result<Menu<R>> {
    let entry = |command| MenuItem::with_id(app, menu::id(command), words.command(command), true, None::<&str>);
    Menu::with_items(
        app,
        &[
            &MenuItem::with_id(app, SHOW, words.show, true, None::<&str>)?,
            &entry(Command::NewChat)?,
            &entry(Command::QuickEntry)?,
            &PredefinedMenuItem::separator(app)?,
            &entry(Command::Quit)?,
        ],
    )
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::Ordering;

    use futures::StreamExt;
    use tauri::{AppHandle, Manager};
    use zbus::fdo::DBusProxy;
    use zbus::Connection;

    use super::{set, Tray, WATCHER};

    /// Watches for a tray that appears or disappears.
    pub async fn follow(app: AppHandle) {
        let followed = async {
            let connection = Connection::session().await?;
            let bus = DBusProxy::new(&connection).await?;
            let mut owners = bus.receive_name_owner_changed_with_args(&[(0, WATCHER)]).await?;
            while let Some(change) = owners.next().await {
                let there = change.args()?.new_owner().is_some();
                set(&app, there && app.state::<Tray>().wanted.load(Ordering::Relaxed));
            }
            zbus::Result::Ok(())
        };
        if let Err(error) = followed.await {
            tracing::warn!("whether the desktop shows the icon is not known: {error}");
        }
    }
}
