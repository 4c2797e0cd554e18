//! The app on the desktop: links and files that are brought to it, quitting, quick entry, menus.

use std::collections::BTreeSet;

use api::{Command, Desktop, ImportReport, OpenRequest, QuitChoice, RunningWork};
use command::command;
use protocol::{Reason, Result};
use tauri::ipc::Response;
use tauri::{AppHandle, State, WebviewWindow, Wry};

use crate::app::state::App;
use crate::desktop::menu::Commands;
use crate::desktop::open_requests::{self, OpenRequests, OpenTarget};
use crate::desktop::{notify, quit, run_command, tray};
use crate::system::login::Login;
use crate::system::{command_link, failed};
use crate::windows::quick::{self, QuickEntry};
use crate::windows::window;

/// The abilities of the desktop that settings depend on.
#[command(settings)]
pub async fn desktop(login: State<'_, Login>, quick_entry: State<'_, QuickEntry>) -> Result<Desktop> {
    // The rest of the page works without it, and switching it reports the error.
    let open_at_login = login.is_on().unwrap_or_else(|error| {
        tracing::warn!("{error}");
        false
    });
    Ok(Desktop {
        tray: tray::unavailable_reason().await,
        global_shortcut: quick::unavailable_reason(),
        notifications: notify::unavailable_reason().await,
        command: command_link::unavailable_reason(),
        open_at_login,
        shortcut_refused: quick_entry.refused(),
    })
}

/// Runs a menu command that is not the page's own.
#[command(all)]
pub async fn run_command(handle: AppHandle, window: WebviewWindow, command: Command) -> Result<()> {
    run_command::run(&handle, command, window::name_of(window.label())).await
}

/// Tells the menus which commands the chat window can run now, and which switches among them are on.
#[command(chat)]
pub async fn set_available_commands(
    commands: State<'_, Commands<Wry>>,
    available: BTreeSet<Command>,
    checked: BTreeSet<Command>,
) -> Result<()> {
    commands.set_available(available, checked);
    Ok(())
}

/// The links and files that were brought to the app since the last call.
#[command(chat)]
pub async fn take_open_requests(requests: State<'_, OpenRequests>) -> Result<Vec<OpenRequest>> {
    Ok(requests.take())
}

/// The bytes of a file that was brought, once.
#[command(chat)]
pub async fn opened_file(app: State<'_, App>, requests: State<'_, OpenRequests>, key: String) -> Result<Response> {
    let path = requests.take_file(&key)?;
    let bytes = app
        .run_blocking(move || open_requests::read_file(&path, open_requests::LONGEST_FILE))
        .await?;
    Ok(Response::new(bytes))
}

/// Imports the chats of a file that was brought.
#[command(chat)]
pub async fn import_opened(
    app: State<'_, App>,
    requests: State<'_, OpenRequests>,
    key: String,
) -> Result<ImportReport> {
    let path = requests.take_file(&key)?;
    let bytes = app
        .run_blocking(move || open_requests::read_file(&path, chat::LONGEST_IMPORT))
        .await?;
    app.chat.library().import(bytes).await
}

/// The answers and downloads that run while the app is asked to quit.
#[command(chat)]
pub async fn running_work(handle: AppHandle) -> Result<RunningWork> {
    quit::running_work(&handle).await
}

/// Answers the question of quitting while something runs.
#[command(chat)]
pub async fn quit(handle: AppHandle, choice: QuitChoice) -> Result<()> {
    quit::choose(&handle, choice);
    Ok(())
}

/// Switches opening the app at login on or off.
#[command(settings)]
pub async fn open_at_login(login: State<'_, Login>, on: bool) -> Result<()> {
    login.set(on)
}

/// Hides quick entry.
#[command(quick)]
pub async fn hide_quick_entry(handle: AppHandle) -> Result<()> {
    quick::hide(&handle);
    Ok(())
}

/// Makes quick entry as high as its content, in pixels.
#[command(quick)]
pub async fn fit_quick_entry(handle: AppHandle, height: f64) -> Result<()> {
    quick::fit(&handle, height).map_err(failed(Reason::WindowSystem, "the window keeps its size"))
}

/// Shows a chat in the chat window.
#[command(quick)]
pub async fn show_chat(handle: AppHandle, id: String) -> Result<()> {
    quick::left(&handle);
    open_requests::open(&handle, vec![OpenTarget::Chat(id)]);
    Ok(())
}
