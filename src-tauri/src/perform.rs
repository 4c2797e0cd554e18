//! Commands, wherever they come from: a menu, the tray, keys that a page heard. Those of the chat window are handed to its page.

use protocol::{Arrival, Command, Error, ErrorCode, Result, WindowName};
use tauri::{AppHandle, Emitter, EventTarget, Manager, Wry};

use crate::commands::COMMAND;
use crate::menu::{self, Commands};
use crate::{arrivals, command_link, quick, quit, tray, window};

/// Does what an entry of a menu stands for.
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
        // What a person asked for is not answered by silence.
        if let Err(error) = perform(&app, command, front).await {
            arrivals::add(&app, Arrival::Refused { error });
        }
    });
}

/// Does a command; `window` is the one that it is asked for in.
///
/// # Errors
/// When it cannot be done.
pub async fn perform(app: &AppHandle, command: Command, window: Option<WindowName>) -> Result<()> {
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
        Command::CloseWindow => window.map_or(Ok(()), |window| window::close(app, window)).map_err(refused),
        Command::InstallCommand => {
            arrivals::add(app, command_link::install()?);
            Ok(())
        }
        Command::Quit => {
            quit::request(app);
            Ok(())
        }
        // Those of the chat window are done.
        _ => Ok(()),
    }
}

fn refused(error: tauri::Error) -> Error {
    Error::new(ErrorCode::Engine, format!("the window system did not do it: {error}"))
}
