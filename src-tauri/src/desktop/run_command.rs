//! Runs commands from any source: a menu, the tray, keys that a page received. Those of the chat window are passed to
//! its page.

use api::{Command, OpenRequest, PageRequest, WindowName, WindowPage};
use protocol::{Error, Reason, Result};
use tauri::{AppHandle, Manager, Wry};

use crate::desktop::menu::{self, Commands};
use crate::desktop::{open_requests, quit, tray};
use crate::events::COMMAND;
use crate::system::{command_link, failed};
use crate::windows::{quick, window};

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
        return window::send(app, WindowName::Chat, COMMAND, command).map_err(refused);
    }
    let done = match command {
        Command::Models => window::show(app, WindowName::Models),
        Command::Settings => window::show(app, WindowName::Settings),
        Command::About => {
            let page = WindowPage::About;
            window::show_page(app, &PageRequest { page, row: None })
        }
        Command::QuickEntry => quick::show(app),
        command if command.is_of_page() => window::send(app, window.unwrap_or(WindowName::Chat), COMMAND, command),
        Command::FullScreen => window.map_or(Ok(()), |window| window::toggle_full_screen(app, window)),
        Command::CloseWindow => window.map_or(Ok(()), |window| window::close(app, window)),
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
    };
    done.map_err(refused)
}

fn refused(error: tauri::Error) -> Error {
    failed(Reason::WindowSystem, "the window system did not do it")(error)
}
