//! Collections of documents: folders and files that chats ask. Only a dialog of the system adds one, so no page gains
//! anything by calling the other commands.

use std::path::Path;

use api::{CheckedCitations, CollectionFile, CollectionsView, PassageText};
use command::command;
use knowledge::{check_citations, Knowledge, Rules, Source};
use protocol::{QuotedPassage, Result};
use tauri::{AppHandle, State, WebviewWindow};

use crate::app::state::App;
use crate::windows::question;
use crate::words;

/// All collections with the states of their files, and how far passages are embedded.
#[command(chat, settings)]
pub async fn collections(app: State<'_, App>) -> Result<CollectionsView> {
    Ok(app.knowledge.view().await?)
}

/// Asks for a folder in the system's dialog and begins to read it; its id, or null if the user chose none.
#[command(chat)]
pub async fn choose_collection_folder(
    window: WebviewWindow,
    handle: AppHandle,
    app: State<'_, App>,
) -> Result<Option<String>> {
    match question::choose_folder(&window, words::current(&handle).add_folder).await? {
        Some(folder) => add(&app.knowledge, Source::Folder(folder)).await.map(Some),
        None => Ok(None),
    }
}

/// Asks for files in the system's dialog and begins to read them; the id of their collection, or null if the user chose
/// none.
#[command(chat)]
pub async fn choose_collection_files(
    window: WebviewWindow,
    handle: AppHandle,
    app: State<'_, App>,
) -> Result<Option<String>> {
    let files = question::choose_files(&window, words::current(&handle).add_files).await?;
    match files.is_empty() {
        true => Ok(None),
        false => add(&app.knowledge, Source::Files(files)).await.map(Some),
    }
}

/// The files of a collection in the order of their paths.
#[command(chat)]
pub async fn collection_files(app: State<'_, App>, id: String) -> Result<Vec<CollectionFile>> {
    Ok(app.knowledge.files(&id).await?)
}

/// Gives a collection another name.
#[command(chat)]
pub async fn rename_collection(app: State<'_, App>, id: String, name: String) -> Result<()> {
    Ok(app.knowledge.rename(&id, &name).await?)
}

/// Stops reading the files of a collection, or goes on; what was read is found in both cases.
#[command(chat)]
pub async fn pause_collection(app: State<'_, App>, id: String, paused: bool) -> Result<()> {
    app.knowledge.pause(&id, paused).await?;
    if !paused {
        app.knowledge.follow(&id);
    }
    Ok(())
}

/// Looks through the folder of a collection once more.
#[command(chat)]
pub async fn update_collection(app: State<'_, App>, id: String) -> Result<()> {
    app.knowledge.follow(&id);
    Ok(())
}

/// Forgets a collection with all that was read of it. Its files stay.
#[command(chat)]
pub async fn remove_collection(app: State<'_, App>, id: String) -> Result<()> {
    Ok(app.knowledge.remove(&id).await?)
}

/// Has the chats of a project ask these collections.
#[command(chat)]
pub async fn set_project_collections(app: State<'_, App>, id: String, collections: Vec<String>) -> Result<()> {
    app.chat.projects().set_collections(&id, &collections).await
}

/// Holds the marks of a response against the passages that its chat was given.
#[command(chat)]
pub async fn citations(app: State<'_, App>, message: String) -> Result<CheckedCitations> {
    let chat = app.chat_of(&message).await;
    let (text, given) = chat.answers().with_passages(&message).await?;
    Ok(check_citations(&text, &given))
}

/// The file of a passage with the passage in it.
#[command(chat)]
pub async fn open_passage(app: State<'_, App>, passage: QuotedPassage) -> Result<PassageText> {
    Ok(app.knowledge.open_passage(&passage).await?)
}

async fn add(knowledge: &Knowledge, source: Source) -> Result<String> {
    let name = match &source {
        Source::Folder(folder) => named(folder),
        Source::Files(files) => files.first().map(|file| named(file)).unwrap_or_default(),
    };
    let id = knowledge.add(&name, &source, &Rules::default()).await?;
    knowledge.follow(&id);
    Ok(id)
}

fn named(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
