//! Windows and what lies outside them.

use protocol::{Error, ErrorCode, Result, WindowName};
use tauri::{AppHandle, State};

use crate::state::App;
use crate::window;

/// Opens a window of the app or brings it to the front.
#[tauri::command]
pub async fn open_window(app: AppHandle, name: WindowName) -> Result<()> {
    window::show(&app, name).map_err(|error| Error::new(ErrorCode::Engine, format!("the window could not be opened: {error}")))
}

/// Opens a web or mail address in the program the user has for it. Anything else is refused: a model writes these links.
#[tauri::command]
pub async fn open_link(url: String) -> Result<()> {
    let known = ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)));
    if !known {
        return Err(Error::new(
            ErrorCode::BadRequest,
            "only web and mail addresses are opened from a chat",
        ));
    }
    tauri_plugin_opener::open_url(&url, None::<&str>)
        .map_err(|error| Error::new(ErrorCode::NotFound, format!("no program opened the address: {error}")))
}

/// The web view says that it has painted its first frame.
#[tauri::command]
pub async fn first_paint(app: State<'_, App>) -> Result<()> {
    tracing::info!(milliseconds = app.started.elapsed().as_millis() as u64, "first paint");
    Ok(())
}
