//! The preview of a page or a drawing that a response wrote.

use command::command;
use protocol::Result;
use tauri::State;

use crate::windows::previews::Previews;

/// Holds a page that a response wrote, or with `drawing` an SVG, in place of the one before. Returns the address that a
/// frame in a sandbox shows it under.
#[command(chat)]
pub async fn show_preview(previews: State<'_, Previews>, code: String, drawing: bool) -> Result<String> {
    previews.show(&code, drawing)
}

/// Forgets what the preview shows. Returns true if it showed something: a page that is new may have been ended by it.
#[command(chat)]
pub async fn close_preview(previews: State<'_, Previews>) -> Result<bool> {
    Ok(previews.close())
}
