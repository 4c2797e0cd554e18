//! Downloads: started, paused, ordered, watched.

use api::Download;
use command::command;
use protocol::Result;
use tauri::ipc::Channel;
use tauri::State;

use crate::app::state::App;

/// The branch that models are downloaded from unless another is named.
const MAIN: &str = "main";

/// Queues the download of a model, or resumes it. Without a revision it is the main branch.
#[command(chat, models)]
pub async fn download(app: State<'_, App>, id: String, revision: Option<String>) -> Result<()> {
    let revision = revision.as_deref().unwrap_or(MAIN);
    Ok(app.hub.downloads().start(&id, revision).await?)
}

/// Pauses a download.
#[command(models)]
pub async fn pause_download(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.hub.downloads().pause(&id).await?)
}

/// Resumes a download.
#[command(models)]
pub async fn resume_download(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.hub.downloads().resume(&id).await?)
}

/// Cancels a download and deletes its files, or takes a finished one off the list.
#[command(models)]
pub async fn cancel_download(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.hub.downloads().cancel(&id).await?)
}

/// Moves a download to this place in the queue, counted from 0.
#[command(models)]
pub async fn move_download(app: State<'_, App>, id: String, place: usize) -> Result<()> {
    Ok(app.hub.downloads().reorder(&id, place).await?)
}

/// Sends all downloads at once, and all of them again after every change, a few times a second at most.
#[command(chat, models)]
pub async fn watch_downloads(app: State<'_, App>, on_change: Channel<Vec<Download>>) -> Result<()> {
    let mut downloads = app.hub.downloads().watch();
    tauri::async_runtime::spawn(async move {
        loop {
            let list = downloads.borrow_and_update().clone();
            // A closed or reloaded window receives nothing more; the downloads go on without it.
            if on_change.send(list).is_err() || downloads.changed().await.is_err() {
                break;
            }
        }
    });
    Ok(())
}
