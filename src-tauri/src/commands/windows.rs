//! Windows and links out of them.

use api::{PageRequest, WindowName, WindowPage};
use command::command;
use protocol::{Error, Reason, Result};
use tauri::{AppHandle, State};

use crate::app::state::App;
use crate::system::{failed, link};
use crate::windows::window;

/// Opens a window of the app or brings it to the front.
#[command(chat, models, settings)]
pub async fn open_window(app: AppHandle, name: WindowName) -> Result<()> {
    window::show(&app, name).map_err(failed(Reason::WindowSystem, "the window could not be opened"))
}

/// Opens a window of the app at one of its pages, perhaps at a row of it, or brings it to the front and shows that.
#[command(chat, models, settings)]
pub async fn show_page(app: AppHandle, page: WindowPage, row: Option<String>) -> Result<()> {
    window::show_page(&app, &PageRequest { page, row })
        .map_err(failed(Reason::WindowSystem, "the window could not be opened"))
}

/// Opens a web or mail address in the user's program for it. Rejects any other address, because models write these
/// links; `NotFound` if no program opened it.
#[command(all)]
pub async fn open_link(url: String) -> Result<()> {
    let url = link::understood(&url).map_err(|reason| Error::because(Reason::LinkRefused, reason))?;
    // The reason names the system's launchers and their exit codes, which tell a user nothing.
    tauri_plugin_opener::open_url(&url, None::<&str>)
        .map_err(|_| Error::because(Reason::NoBrowser, "no program on this computer opened the address"))
}

/// Reports that the web view has painted its first frame.
#[command(all)]
pub async fn first_paint(app: State<'_, App>) -> Result<()> {
    tracing::info!(milliseconds = app.started.elapsed().as_millis() as u64, "first paint");
    Ok(())
}
