//! Collections of documents: folders and files that chats ask. Only a dialog of the system adds one, so no page gains
//! anything by calling the other commands.

use std::path::Path;
use std::sync::Arc;

use api::{ChatSettings, CheckedCitations, CollectionFile, CollectionsView, PassagePage, PassageText, Position, Turn};
use command::command;
use knowledge::{check_citations, Knowledge, Rules, Source};
use protocol::{CallProgress, Content, QuotedPassage, ReadingCost, Result, OWN_CHATS};
use tauri::ipc::Channel;
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

/// Begins to read the user's own chats as a collection, which projects and chats may ask like others.
#[command(chat)]
pub async fn add_own_chats(handle: AppHandle, app: State<'_, App>) -> Result<()> {
    app.knowledge.add_own_chats(words::current(&handle).own_chats).await?;
    app.knowledge.follow(OWN_CHATS);
    Ok(())
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

/// Begins to read the images of a collection with a vision model of this computer.
#[command(chat)]
pub async fn read_collection_images(app: State<'_, App>, id: String, model: String) -> Result<()> {
    Ok(app.knowledge.begin_images(&id, &model).await?)
}

/// Stops reading the images of a collection; those that were read stay.
#[command(chat)]
pub async fn stop_collection_images(app: State<'_, App>, id: String) -> Result<()> {
    app.knowledge.stop_images(&id);
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

/// The cost of reading all documents of a chat for its next message; without a chat, of a new one with these settings
/// in this project.
#[command(chat)]
pub async fn reading_cost(
    app: State<'_, App>,
    chat: Option<String>,
    project: Option<String>,
    settings: ChatSettings,
) -> Result<ReadingCost> {
    match chat {
        Some(chat) => app.chat_of(&chat).await.chats().reading_cost(&chat).await,
        None => app.chat.chats().reading_cost_of_new(project.as_deref(), settings).await,
    }
}

/// Reads all documents of a chat for a question, telling of each part, then asks it with the notes, as `send` does.
/// Rejects with `stopped` if `stop_reading` ended it.
#[command(chat)]
pub async fn send_after_reading(
    handle: AppHandle,
    app: State<'_, App>,
    chat: String,
    content: Vec<Content>,
    position: Position,
    on_progress: Channel<CallProgress>,
) -> Result<Turn> {
    let name = words::current(&handle).reading_notes;
    // A window that is gone hears nothing more.
    let tell = Arc::new(move |progress| drop(on_progress.send(progress)));
    let answers = app.chat_of(&chat).await.answers().clone();
    answers.send_after_reading(&chat, &content, &position, name, tell).await
}

/// Stops reading the documents of a chat; its question is not asked.
#[command(chat)]
pub async fn stop_reading(app: State<'_, App>, chat: String) -> Result<()> {
    app.chat_of(&chat).await.answers().stop_reading(&chat);
    Ok(())
}

/// A page of the file of a passage as an image of this width in pixels, with the lines of the passage that are on it. An
/// image is its own first page.
#[command(chat)]
pub async fn passage_page(app: State<'_, App>, passage: QuotedPassage, page: u32, width: u32) -> Result<PassagePage> {
    Ok(app.knowledge.page_image(&passage, page, width).await?)
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
