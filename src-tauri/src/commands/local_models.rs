//! The models on this computer: verified, repaired, updated, shown, removed; and their folders.

use std::path::{Path, PathBuf};

use api::{ModelFolderEntry, ModelShelf, Removal, Update, Verification, VerifyProgress, WindowName};
use command::command;
use protocol::{ModelSource, Reason, Result};
use tauri::ipc::Channel;
use tauri::{AppHandle, Emitter, Manager, State, WebviewWindow};

use super::{CHAT_WITH, MODELS_CHANGED};
use crate::app::state::App;
use crate::events;
use crate::system::failed;
use crate::windows::{question, window};
use crate::words;

/// Reads every file of a model again and compares it with the hub's checksums.
#[command(models)]
pub async fn verify_model(
    app: State<'_, App>,
    reference: String,
    on_progress: Channel<VerifyProgress>,
) -> Result<Verification> {
    let stop = app.stop.child_token();
    Ok(app.hub.upkeep().verify(&reference, stop, tell(on_progress)).await?)
}

/// Reads every file of a model again, downloads the wrong and missing ones, and returns what is still wrong.
#[command(models)]
pub async fn repair_model(
    app: State<'_, App>,
    reference: String,
    on_progress: Channel<VerifyProgress>,
) -> Result<Verification> {
    let stop = app.stop.child_token();
    app.hub.upkeep().repair(&reference, stop, tell(on_progress)).await
}

/// Reports the progress of a check to its window. The check goes on if the window was closed.
fn tell(on_progress: Channel<VerifyProgress>) -> impl FnMut(VerifyProgress) + Send + Clone + 'static {
    move |progress| drop(on_progress.send(progress))
}

/// The consequences of removing a model; nothing is removed yet.
#[command(models)]
pub async fn removal_of(app: State<'_, App>, reference: String) -> Result<Removal> {
    app.hub.removals().plan(&reference, app.chat.models()).await
}

/// Removes a model; true if it can be put back until it is freed.
#[command(models)]
pub async fn remove_model(handle: AppHandle, app: State<'_, App>, reference: String) -> Result<bool> {
    let kept = app.hub.removals().trash(&reference, app.chat.models()).await;
    models_changed(&handle);
    kept
}

/// Puts a removed model back.
#[command(models)]
pub async fn put_back_model(handle: AppHandle, app: State<'_, App>, reference: String) -> Result<()> {
    let back = app.hub.removals().restore(&reference, app.chat.models()).await;
    models_changed(&handle);
    back
}

/// Deletes the files of a removed model.
#[command(models)]
pub async fn free_model(app: State<'_, App>, reference: String) -> Result<()> {
    app.hub.removals().free(&reference).await
}

/// The newer version of a model on the hub; `null` if there is none.
#[command(models)]
pub async fn update_of(app: State<'_, App>, reference: String) -> Result<Option<Update>> {
    Ok(app.hub.upkeep().update_of(&reference).await?)
}

/// The references of the models on this computer that can draft the answers of this one, the smallest first.
#[command(models)]
pub async fn draft_models(app: State<'_, App>, reference: String) -> Result<Vec<String>> {
    let models = app.models.clone();
    // Whole tokenizers are read.
    app.run_blocking(move || Ok(models.draft_models(&reference))).await
}

/// Shows the model's folder in the system's file browser.
#[command(models)]
pub async fn reveal_model(app: State<'_, App>, reference: String) -> Result<()> {
    let models = app.models.clone();
    let listed = app.run_blocking(move || Ok(models.list())).await?;
    let model = listed.into_iter().find(|model| model.reference == reference);
    let path = PathBuf::from(model.ok_or(hub::Error::NotFound(reference))?.path);
    let what = format!("the file manager did not show {}", path.display());
    tauri_plugin_opener::reveal_item_in_dir(&path).map_err(failed(Reason::NoFileBrowser, &what))
}

/// The folders in which models are looked for.
#[command(models, settings)]
pub async fn model_folders(app: State<'_, App>) -> Result<Vec<ModelFolderEntry>> {
    let models = app.models.clone();
    app.run_blocking(move || Ok(models.folders())).await
}

/// Adds a folder in which models are looked for.
#[command(models, settings)]
pub async fn add_model_folder(handle: AppHandle, app: State<'_, App>, path: String) -> Result<()> {
    app.models.add_folder(Path::new(&path))?;
    app.store_folders().await?;
    models_changed(&handle);
    Ok(())
}

/// Asks for a folder in the system's dialog and adds it; false if the user chose none.
#[command(models, settings)]
pub async fn choose_model_folder(window: WebviewWindow, handle: AppHandle, app: State<'_, App>) -> Result<bool> {
    let Some(folder) = question::choose_folder(&window, words::current(&handle).add_folder).await? else {
        return Ok(false);
    };
    app.models.add_folder(&folder)?;
    app.store_folders().await?;
    models_changed(&handle);
    Ok(true)
}

/// Stops looking for models in a folder; its files stay.
#[command(models, settings)]
pub async fn forget_model_folder(handle: AppHandle, app: State<'_, App>, path: String) -> Result<()> {
    app.models.remove_folder(Path::new(&path));
    app.store_folders().await?;
    models_changed(&handle);
    Ok(())
}

/// Lets a model be loaded whatever memory it needs, until the app ends.
#[command(chat)]
pub async fn load_anyway(app: State<'_, App>, reference: String) -> Result<()> {
    if let ModelSource::Folder(folder) = app.models.resolve(&reference)? {
        app.memory_guard.allow(&folder.path);
    }
    Ok(())
}

/// Starts a new chat with this model in the chat window.
#[command(models)]
pub async fn chat_with(handle: AppHandle, app: State<'_, App>, reference: String) -> Result<()> {
    app.models.resolve(&reference)?;
    window::show(&handle, WindowName::Chat)
        .and_then(|()| handle.emit(CHAT_WITH, reference))
        .map_err(failed(Reason::WindowSystem, "the chat window did not hear of it"))
}

/// Tells every window to list the models again, and has documents embedded by a model that has just come.
pub fn models_changed(handle: &AppHandle) {
    events::tell(handle, MODELS_CHANGED, (), "a change of the models");
    if let Some(app) = handle.try_state::<App>() {
        app.embed_documents();
    }
}
