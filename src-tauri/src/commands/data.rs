//! The data on disk.

use std::path::PathBuf;

use api::{DataKind, DataUse, HistoryContents};
use command::command;
use protocol::{Reason, Result};
use tauri::{Manager, State, WebviewWindow};

use crate::app::state::App;
use crate::system::failed;
use crate::windows::question::{self, Answer, Question};
use crate::words;

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

/// Adds what can be read of a damaged file that a repair set aside at this time, in milliseconds since 1970, and is not
/// here.
#[command(settings)]
pub async fn add_from_set_aside(app: State<'_, App>, set_aside_at: i64) -> Result<HistoryContents> {
    app.chat.library().add_from_set_aside(set_aside_at).await
}

/// Shows the folder with a kind of the data in the system's file browser.
#[command(settings)]
pub async fn reveal_data(app: State<'_, App>, kind: DataKind) -> Result<()> {
    let inside = match kind {
        DataKind::Chats => None,
        DataKind::Attachments => Some(app.chat.library().attachments_folder()),
        DataKind::Models => {
            let models = app.models.clone();
            let folders = app.run_blocking(move || Ok(models.folders())).await?;
            folders.into_iter().next().map(|folder| PathBuf::from(folder.path))
        }
    };
    // A folder without files may not have been made yet.
    let folder = inside
        .filter(|path| path.is_dir())
        .unwrap_or_else(|| app.data_dir.clone());
    tauri_plugin_opener::open_path(&folder, None::<&str>)
        .map_err(failed(Reason::NoFileBrowser, "no program showed the folder"))
}

/// Deletes all chats for good, if the user agrees in a dialog of the system, which also offers to delete the backups.
/// False if they decline.
#[command(settings)]
pub async fn delete_all_chats(window: WebviewWindow, app: State<'_, App>) -> Result<bool> {
    let words = words::current(window.app_handle());
    let has_backups = !app.chat.library().data_use().await?.backups.is_empty();
    let text = match has_backups {
        true => format!("{}\n\n{}", words.delete_text, words.backups_text),
        false => words.delete_text.to_owned(),
    };
    let question = Question {
        title: words.delete_question,
        text,
        yes: words.delete_chats,
        more: has_backups.then_some(words.delete_backups),
        no: words.cancel,
    };
    let answer = question::ask(&window, question).await;
    if answer == Answer::No {
        return Ok(false);
    }
    app.chat.library().delete_all_chats(answer == Answer::More).await?;
    Ok(true)
}
