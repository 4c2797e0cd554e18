//! The data on disk.

use api::DataUse;
use command::command;
use protocol::{Error, ErrorCode, Result};
use tauri::State;

use crate::app::state::App;

/// The place of all data and the space that each kind takes.
#[command(settings)]
pub async fn data_use(app: State<'_, App>) -> Result<DataUse> {
    let folder = app.models.clone();
    let models = app
        .run_blocking(move || Ok(folder.list().iter().map(|model| model.bytes).sum()))
        .await?;
    Ok(DataUse {
        models,
        ..app.chat.library().data_use().await?
    })
}

/// Makes a backup of the chats and verifies it.
#[command(settings)]
pub async fn back_up_now(app: State<'_, App>) -> Result<()> {
    app.chat.library().back_up_now().await
}

/// Shows the folder of all data in the system's file browser.
#[command(settings)]
pub async fn reveal_data_folder(app: State<'_, App>) -> Result<()> {
    tauri_plugin_opener::open_path(&app.data_dir, None::<&str>)
        .map_err(|error| Error::new(ErrorCode::NotFound, format!("no program showed the folder: {error}")))
}

/// Deletes all chats for good, with the backups if that is wanted.
#[command(settings)]
pub async fn delete_all_chats(app: State<'_, App>, backups: bool) -> Result<()> {
    app.chat.library().delete_all_chats(backups).await
}
