//! What the app shares with the desktop: what is brought to it, its end, quick entry, what the desktop can do.

use std::collections::BTreeSet;

use api::{Arrival, Command, Desktop, ImportReport, QuitChoice, Unfinished};
use protocol::{Error, ErrorCode, Result};
use tauri::ipc::Response;
use tauri::{AppHandle, State, WebviewWindow, Wry};

use crate::app::state::App;
use crate::desktop::menu::Commands;
use crate::desktop::notify;
use crate::desktop::open_requests::{self, OpenRequest, OpenRequests};
use crate::desktop::quit;
use crate::desktop::run_command;
use crate::desktop::tray;
use crate::system::command_link;
use crate::system::login::Login;
use crate::windows::quick;
use crate::windows::quick::QuickEntry;
use crate::windows::window;

/// What the desktop can do of what can be set.
#[tauri::command]
pub async fn desktop(login: State<'_, Login>, quick_entry: State<'_, QuickEntry>) -> Result<Desktop> {
    // What cannot be read does not keep the rest of the page away; who switches it is told.
    let open_at_login = login.is_on().unwrap_or_else(|error| {
        tracing::warn!("{error}");
        false
    });
    Ok(Desktop {
        tray: tray::absence().await,
        global_shortcut: quick::absence(),
        notifications: notify::absence().await,
        command: command_link::absence(),
        open_at_login,
        shortcut_refused: quick_entry.refused(),
    })
}

/// Does a command that is not the page's own.
#[tauri::command]
pub async fn run_command(handle: AppHandle, window: WebviewWindow, command: Command) -> Result<()> {
    run_command::run(&handle, command, window::name_of(window.label())).await
}

/// The chat window's page says what it can do now, for the menus.
#[tauri::command]
pub async fn set_available_commands(commands: State<'_, Commands<Wry>>, available: BTreeSet<Command>) -> Result<()> {
    commands.set_available(available);
    Ok(())
}

/// What was brought to the app since this was asked last.
#[tauri::command]
pub async fn take_arrivals(arrivals: State<'_, OpenRequests>) -> Result<Vec<Arrival>> {
    Ok(arrivals.take())
}

/// The bytes of a file that was brought, once.
#[tauri::command]
pub async fn arrived_file(app: State<'_, App>, arrivals: State<'_, OpenRequests>, key: String) -> Result<Response> {
    let path = arrivals.take_file(&key)?;
    let bytes = app
        .run_blocking(move || open_requests::read_file(&path, open_requests::LONGEST_FILE))
        .await?;
    Ok(Response::new(bytes))
}

/// Imports the chats of a file that was brought.
#[tauri::command]
pub async fn import_arrived(
    app: State<'_, App>,
    arrivals: State<'_, OpenRequests>,
    key: String,
) -> Result<ImportReport> {
    let path = arrivals.take_file(&key)?;
    let bytes = app
        .run_blocking(move || open_requests::read_file(&path, chat::LONGEST_IMPORT))
        .await?;
    app.chat.library().import(bytes).await
}

/// What runs while the app is asked to end.
#[tauri::command]
pub async fn unfinished(handle: AppHandle) -> Result<Unfinished> {
    quit::unfinished(&handle).await
}

/// Answers whether the app may end.
#[tauri::command]
pub async fn quit(handle: AppHandle, choice: QuitChoice) -> Result<()> {
    quit::choose(&handle, choice);
    Ok(())
}

/// Opens the app at login from now on, or no longer.
#[tauri::command]
pub async fn open_at_login(login: State<'_, Login>, on: bool) -> Result<()> {
    login.set(on)
}

#[tauri::command]
pub async fn hide_quick_entry(handle: AppHandle) -> Result<()> {
    quick::hide(&handle);
    Ok(())
}

/// Makes quick entry as high as what it shows.
#[tauri::command]
pub async fn fit_quick_entry(handle: AppHandle, height: f64) -> Result<()> {
    quick::fit(&handle, height)
        .map_err(|error| Error::new(ErrorCode::Engine, format!("the window keeps its size: {error}")))
}

/// Shows a chat in the chat window.
#[tauri::command]
pub async fn show_chat(handle: AppHandle, id: String) -> Result<()> {
    quick::left(&handle);
    open_requests::open(&handle, vec![OpenRequest::Chat(id)]);
    Ok(())
}
