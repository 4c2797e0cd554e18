//! What Ponder keeps on the disk.

use api::DataUse;
use protocol::{Error, ErrorCode, Result};
use tauri::State;

use crate::app::state::App;

#[tauri::command]
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

#[tauri::command]
pub async fn back_up_now(app: State<'_, App>) -> Result<()> {
    app.chat.library().back_up_now().await
}

/// Shows the folder of all data in the system's file browser.
#[tauri::command]
pub async fn reveal_data_folder(app: State<'_, App>) -> Result<()> {
    tauri_plugin_opener::open_path(&app.data_dir, None::<&str>)
        .map_err(|error| Error::new(ErrorCode::NotFound, format!("no program showed the folder: {error}")))
}

#[tauri::command]
pub async fn delete_all_chats(app: State<'_, App>, backups: bool) -> Result<()> {
    app.chat.library().delete_all_chats(backups).await
}
