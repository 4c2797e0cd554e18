//! What slows the computer down.

use protocol::Slowdown;

#[tauri::command]
pub async fn slowed_by() -> Option<Slowdown> {
    ::power::slowdown()
}
