//! Chats: listed, opened, changed.

use api::{ChatList, ChatSettings, ChatSummary, ChatView, StoredMessage};
use command::command;
use protocol::{Content, Result};
use tauri::State;

use crate::app::state::App;

/// All chats that are not in the trash.
#[command(chat)]
pub async fn chats(app: State<'_, App>) -> Result<Vec<ChatSummary>> {
    app.chat.chats().list().await
}

/// The list of chats, or the changes since the snapshot of it that a window has.
#[command(chat, settings, quick)]
pub async fn chats_since(app: State<'_, App>, snapshot: Option<u64>) -> Result<ChatList> {
    app.chat.chats().list_since(snapshot).await
}

/// One chat with the branch that is shown. As in every view of a chat, a long branch begins with its newest
/// messages.
#[command(chat, quick)]
pub async fn chat(app: State<'_, App>, id: String) -> Result<ChatView> {
    app.chat_of(&id).await.chats().open(&id).await
}

/// The messages right before this one on its branch, oldest first; none before the first.
#[command(chat, quick)]
pub async fn earlier_messages(app: State<'_, App>, message: String) -> Result<Vec<StoredMessage>> {
    app.chat_of(&message).await.chats().earlier_messages(&message).await
}

/// Creates an empty chat; without settings it starts as the user has set new chats.
#[command(chat, quick)]
pub async fn create_chat(app: State<'_, App>, settings: Option<ChatSettings>) -> Result<ChatView> {
    let settings = match settings {
        Some(settings) => settings,
        None => app.chat.chats().new_settings().await?,
    };
    app.chat.chats().create(settings).await
}

/// The settings that a new chat starts with.
#[command(chat, quick)]
pub async fn new_chat_settings(app: State<'_, App>) -> Result<ChatSettings> {
    app.chat.chats().new_settings().await
}

/// Gives a chat another title.
#[command(chat)]
pub async fn rename_chat(app: State<'_, App>, id: String, title: String) -> Result<()> {
    app.chat.chats().rename(&id, &title).await
}

/// Pins a chat to the top of the list, or unpins it.
#[command(chat)]
pub async fn pin_chat(app: State<'_, App>, id: String, pinned: bool) -> Result<()> {
    app.chat.chats().pin(&id, pinned).await
}

/// Moves a chat to the trash.
#[command(chat)]
pub async fn delete_chat(app: State<'_, App>, id: String) -> Result<()> {
    app.chat.library().delete(&id).await
}

/// Takes a chat, or messages that were deleted, out of the trash.
#[command(chat)]
pub async fn restore_chat(app: State<'_, App>, id: String) -> Result<ChatSummary> {
    app.chat_of(&id).await.library().restore(&id).await
}

/// Stores the settings of a chat, which apply from its next answer on.
#[command(chat, quick)]
pub async fn set_chat_settings(app: State<'_, App>, id: String, settings: ChatSettings) -> Result<()> {
    app.chat_of(&id).await.chats().set_settings(&id, &settings).await
}

/// Rejects settings that no chat may have, by the argument `field`; for a chat that does not exist yet.
#[command(chat, quick)]
pub async fn check_chat_settings(settings: ChatSettings) -> Result<()> {
    settings.check()
}

/// Stores the unsent question of a chat.
#[command(chat, quick)]
pub async fn set_draft(app: State<'_, App>, id: String, draft: Vec<Content>) -> Result<()> {
    app.chat_of(&id).await.chats().set_draft(&id, &draft).await
}

/// Begins a temporary chat, of which nothing is written; the one before it is gone.
#[command(chat)]
pub async fn begin_temporary_chat(app: State<'_, App>, settings: ChatSettings) -> Result<ChatView> {
    app.temporary.begin(&app.chat, settings).await
}

/// The temporary chat, if there is one.
#[command(chat)]
pub async fn temporary_chat(app: State<'_, App>) -> Result<Option<ChatView>> {
    app.temporary.view().await
}

/// Makes the temporary chat a normal one, with the same ids.
#[command(chat)]
pub async fn keep_temporary_chat(app: State<'_, App>) -> Result<()> {
    app.temporary.keep(&app.chat).await
}

/// Ends the temporary chat, of which nothing is left.
#[command(chat)]
pub async fn close_temporary_chat(app: State<'_, App>) -> Result<()> {
    app.temporary.close().await;
    Ok(())
}
