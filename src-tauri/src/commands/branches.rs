//! The tree of a chat, and its reading position.

use api::{ChatSummary, ChatView, DeleteScope, ScrollPlace};
use command::command;
use protocol::Result;
use tauri::State;

use crate::app::state::App;

/// Shows the branch that this message is on.
#[command(chat)]
pub async fn show_branch(app: State<'_, App>, message: String) -> Result<ChatView> {
    app.chat_of(&message).await.chats().show_branch(&message).await
}

/// Stores another wording of an answer next to the original. The view shows the new branch.
#[command(chat)]
pub async fn edit_answer(app: State<'_, App>, message: String, text: String) -> Result<ChatView> {
    app.chat_of(&message).await.chats().edit_answer(&message, &text).await
}

/// Deletes a message from its chat. Returns the id by which `restoreChat` restores it.
#[command(chat)]
pub async fn delete_message(app: State<'_, App>, message: String, scope: DeleteScope) -> Result<String> {
    app.chat_of(&message)
        .await
        .chats()
        .delete_message(&message, scope)
        .await
}

/// Copies the branch that ends with this message into a new chat.
#[command(chat)]
pub async fn fork_chat(app: State<'_, App>, message: String, title: String) -> Result<ChatSummary> {
    app.chat.chats().fork(&message, &title).await
}

/// Marks a chat as read, because a window shows it with all its answers.
#[command(chat, quick)]
pub async fn mark_read(app: State<'_, App>, id: String) -> Result<()> {
    app.chat_of(&id).await.chats().mark_read(&id).await
}

/// Remembers the scroll position of a chat; `null` is its end.
#[command(chat, quick)]
pub async fn set_scroll_place(app: State<'_, App>, id: String, place: Option<ScrollPlace>) -> Result<()> {
    app.chat_of(&id)
        .await
        .chats()
        .set_scroll_place(&id, place.as_ref())
        .await
}
