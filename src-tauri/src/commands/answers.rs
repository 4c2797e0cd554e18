//! Answers: asked for, stopped, followed.

use std::time::Duration;

use api::{AnswerBody, AnswerEvent, ChatSettings, ChatView, Position, Turn, TurnWithTwoAnswers};
use command::command;
use protocol::{Content, Result};
use tauri::ipc::Channel;
use tauri::State;

use crate::app::state::App;

/// The time between two frames of a page.
const FRAME: Duration = Duration::from_millis(16);

/// Stores a question and begins its answer, which `attach` shows as it grows. An edited question goes where the
/// earlier one stands.
#[command(chat, quick)]
pub async fn send(app: State<'_, App>, chat: String, content: Vec<Content>, position: Position) -> Result<Turn> {
    app.chat_of(&chat)
        .await
        .answers()
        .send(&chat, &content, &position)
        .await
}

/// Stores a question and begins two answers to it, each with its own settings. The chat shows the first.
#[command(chat)]
pub async fn send_to_two(
    app: State<'_, App>,
    chat: String,
    content: Vec<Content>,
    position: Position,
    settings: [ChatSettings; 2],
) -> Result<TurnWithTwoAnswers> {
    app.chat_of(&chat)
        .await
        .answers()
        .send_to_two(&chat, &content, &position, settings)
        .await
}

/// Begins another answer next to this one, with these settings or those of the chat. The view shows the new branch.
#[command(chat)]
pub async fn regenerate(app: State<'_, App>, message: String, settings: Option<ChatSettings>) -> Result<ChatView> {
    app.chat_of(&message)
        .await
        .answers()
        .regenerate(&message, settings)
        .await
}

/// Stops an answer and keeps what it has said.
#[command(chat, quick)]
pub async fn stop(app: State<'_, App>, message: String) -> Result<()> {
    app.chat_of(&message).await.answers().stop(&message).await
}

/// Ends the thinking of an answer, so that its text follows.
#[command(chat, quick)]
pub async fn answer_now(app: State<'_, App>, message: String) -> Result<()> {
    app.chat_of(&message).await.answers().answer_now(&message).await
}

/// Continues the last answer of the branch, which ended early. The view shows it streaming.
#[command(chat)]
pub async fn continue_answer(app: State<'_, App>, message: String) -> Result<ChatView> {
    app.chat_of(&message).await.answers().continue_answer(&message).await
}

/// Follows an answer, whichever process writes it, after event number `from` (0: from its beginning) until
/// `finished` or `detached`.
#[command(chat, quick)]
pub async fn attach(app: State<'_, App>, message: String, from: u64, on_event: Channel<AnswerEvent>) -> Result<()> {
    let mut events = app.chat_of(&message).await.answers().attach(&message, from).await?;
    tauri::async_runtime::spawn(async move {
        while let Some(event) = events.recv().await {
            let joins = matches!(event.body, AnswerBody::Delta { .. });
            // A closed or reloaded window receives nothing more; the answer goes on without it.
            if on_event.send(event).is_err() {
                break;
            }
            // Each event is a script that the page runs, so deltas of one frame are sent together.
            if joins {
                tokio::time::sleep(FRAME).await;
            }
        }
    });
    Ok(())
}
