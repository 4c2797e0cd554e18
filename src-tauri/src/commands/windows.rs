//! Windows and links out of them.

use api::WindowName;
use command::command;
use protocol::{Error, ErrorCode, Result};
use tauri::{AppHandle, State};

use crate::app::state::App;
use crate::system::link;
use crate::windows::window;

/// Opens a window of the app or brings it to the front.
#[command(chat, models, settings)]
pub async fn open_window(app: AppHandle, name: WindowName) -> Result<()> {
    window::show(&app, name)
        .map_err(|error| Error::new(ErrorCode::Engine, format!("the window could not be opened: {error}")))
}

/// Opens a web or mail address in the user's program for it. Rejects any other address, because models write these
/// links.
#[command(all)]
pub async fn open_link(url: String) -> Result<()> {
    let url = link::understood(&url).map_err(|reason| Error::new(ErrorCode::BadRequest, reason))?;
    tauri_plugin_opener::open_url(&url, None::<&str>)
        .map_err(|error| Error::new(ErrorCode::NotFound, format!("no program opened the address: {error}")))
}

/// Reports that the web view has painted its first frame.
#[command(all)]
pub async fn first_paint(app: State<'_, App>) -> Result<()> {
    tracing::info!(milliseconds = app.started.elapsed().as_millis() as u64, "first paint");
    Ok(())
}
