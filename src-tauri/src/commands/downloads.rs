//! Downloads: beginning, pausing, ordering, watching.

use api::Download;
use protocol::Result;
use tauri::ipc::Channel;
use tauri::State;

use crate::app::state::App;

/// The branch that models are fetched from unless another is named.
const MAIN: &str = "main";

#[tauri::command]
pub async fn download(app: State<'_, App>, id: String, revision: Option<String>) -> Result<()> {
    Ok(app
        .hub
        .downloads()
        .start(&id, revision.as_deref().unwrap_or(MAIN))
        .await?)
}

#[tauri::command]
pub async fn pause_download(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.hub.downloads().pause(&id).await?)
}

#[tauri::command]
pub async fn resume_download(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.hub.downloads().resume(&id).await?)
}

#[tauri::command]
pub async fn cancel_download(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.hub.downloads().cancel(&id).await?)
}

#[tauri::command]
pub async fn move_download(app: State<'_, App>, id: String, place: usize) -> Result<()> {
    Ok(app.hub.downloads().reorder(&id, place).await?)
}

/// Sends all downloads, then all of them again whenever one changed.
#[tauri::command]
pub async fn watch_downloads(app: State<'_, App>, on_change: Channel<Vec<Download>>) -> Result<()> {
    let mut downloads = app.hub.downloads().watch();
    tauri::async_runtime::spawn(async move {
        loop {
            let list = downloads.borrow_and_update().clone();
            // A window that was closed or reloaded takes nothing more; the downloads go on without it.
            if on_change.send(list).is_err() || downloads.changed().await.is_err() {
                break;
            }
        }
    });
    Ok(())
}
