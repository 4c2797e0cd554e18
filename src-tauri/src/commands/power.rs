//! What slows the computer down.

use api::Slowdown;

#[tauri::command]
pub async fn slowed_by() -> Option<Slowdown> {
    ::power::slowdown()
}
