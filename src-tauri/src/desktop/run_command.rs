//! Runs commands from any source: a menu, the tray, keys that a page received. Those of the chat window are passed to
//! its page.

use api::{Command, OpenRequest, WindowName};
use protocol::{Error, ErrorCode, Result};
use tauri::{AppHandle, Emitter, EventTarget, Manager, Wry};

use crate::desktop::menu::{self, Commands};
use crate::desktop::open_requests;
use crate::desktop::quit;
use crate::desktop::tray;
use crate::events::COMMAND;
use crate::system::command_link;
use crate::windows::quick;
use crate::windows::window;

/// Runs the command of a menu entry.
pub fn chosen(app: &AppHandle, entry: &str) {
    if entry == tray::SHOW {
        return window::show(app, WindowName::Chat)
            .unwrap_or_else(|error| tracing::warn!("the chat window did not come to the front: {error}"));
    }
    let Some(command) = menu::command_of(entry) else {
        return;
    };
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        let front = app.state::<Commands<Wry>>().front();
        // A failed command must not be silent.
        if let Err(error) = run(&app, command, front).await {
            open_requests::add(&app, OpenRequest::Refused { error });
        }
    });
}

/// Runs a command; `window` is the window that it came from.
///
/// # Errors
/// Those of the command.
pub async fn run(app: &AppHandle, command: Command, window: Option<WindowName>) -> Result<()> {
    if command.is_of_chat() {
        if command.opens_chat_window() {
            window::show(app, WindowName::Chat).map_err(refused)?;
        }
        let target = EventTarget::webview_window(WindowName::Chat.as_str());
        return app.emit_to(target, COMMAND, command).map_err(refused);
    }
    match command {
        Command::Models => window::show(app, WindowName::Models).map_err(refused),
        Command::Settings => window::show(app, WindowName::Settings).map_err(refused),
        Command::About => window::show_about(app).map_err(refused),
        Command::QuickEntry => quick::show(app).map_err(refused),
        command if command.is_of_page() => {
            let target = EventTarget::webview_window(window.unwrap_or(WindowName::Chat).as_str());
            app.emit_to(target, COMMAND, command).map_err(refused)
        }
        Command::FullScreen => window
            .map_or(Ok(()), |window| window::toggle_full_screen(app, window))
            .map_err(refused),
        Command::CloseWindow => window
            .map_or(Ok(()), |window| window::close(app, window))
            .map_err(refused),
        Command::InstallCommand => {
            open_requests::add(app, command_link::install()?);
            Ok(())
        }
        Command::Quit => {
            quit::request(app);
            Ok(())
        }
        // The chat window runs the rest.
        _ => Ok(()),
    }
}

fn refused(error: tauri::Error) -> Error {
    Error::new(ErrorCode::Engine, format!("the window system did not do it: {error}"))
}
