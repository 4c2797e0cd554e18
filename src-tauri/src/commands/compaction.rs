//! The context of a chat and its compaction.

use api::{ChatView, CompactionMark, ContextUse, SummaryProgress};
use command::command;
use protocol::{Content, Result};
use tauri::ipc::Channel;
use tauri::State;

use crate::app::state::App;

/// The part of its model's context that a chat takes with this question at its end.
#[command(chat)]
pub async fn context_use(app: State<'_, App>, id: String, question: Vec<Content>) -> Result<ContextUse> {
    app.chat_of(&id).await.compaction().context_use(&id, &question).await
}

/// Compacts the chat up to and including this message, with a summary in its place; `null` restores the whole
/// conversation.
#[command(chat)]
pub async fn set_compaction_mark(
    app: State<'_, App>,
    message: String,
    mark: Option<CompactionMark>,
) -> Result<ChatView> {
    app.chat_of(&message)
        .await
        .compaction()
        .set_mark(&message, mark.as_ref())
        .await
}

/// Drops the oldest turns from the model's context, so that this question fits.
#[command(chat)]
pub async fn drop_oldest_turns(app: State<'_, App>, id: String, question: Vec<Content>) -> Result<ChatView> {
    app.chat_of(&id)
        .await
        .compaction()
        .drop_oldest_turns(&id, &question)
        .await
}

/// Replaces the oldest turns in the model's context by a summary that the model writes.
#[command(chat)]
pub async fn summarize_oldest_turns(
    app: State<'_, App>,
    id: String,
    question: Vec<Content>,
    on_progress: Channel<SummaryProgress>,
) -> Result<ChatView> {
    let chat = app.chat_of(&id).await;
    let compaction = chat.compaction();
    compaction
        .summarize_oldest_turns(&id, &question, tell(on_progress))
        .await
}

/// Hands the progress to the window; one that was closed is told nothing.
fn tell(window: Channel<SummaryProgress>) -> impl FnMut(SummaryProgress) + Send {
    move |progress| drop(window.send(progress))
}

/// Stops the summary of a chat that is being written.
#[command(chat)]
pub async fn stop_summary(app: State<'_, App>, id: String) -> Result<()> {
    app.chat_of(&id).await.compaction().stop_summary(&id);
    Ok(())
}

/// Creates a chat that starts with a summary of this one, which the model writes.
#[command(chat)]
pub async fn fork_with_summary(
    app: State<'_, App>,
    id: String,
    title: String,
    on_progress: Channel<SummaryProgress>,
) -> Result<ChatView> {
    let compaction = app.chat.compaction();
    compaction.fork_with_summary(&id, &title, tell(on_progress)).await
}
