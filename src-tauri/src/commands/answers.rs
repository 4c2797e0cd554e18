//! Answers: asking, stopping, watching.

use std::time::Duration;

use api::{AnswerBody, AnswerEvent, ChatSettings, ChatView, Position, Turn, TurnWithTwoAnswers};
use protocol::{Content, Result};
use tauri::ipc::Channel;
use tauri::State;

use crate::app::state::App;

/// How long a page draws a frame.
const FRAME: Duration = Duration::from_millis(16);

#[tauri::command]
pub async fn send(app: State<'_, App>, chat: String, content: Vec<Content>, position: Position) -> Result<Turn> {
    app.chat.answers().send(&chat, &content, &position).await
}

/// Stores a question and begins two answers to it, each with settings of its own.
#[tauri::command]
pub async fn send_to_two(
    app: State<'_, App>,
    chat: String,
    content: Vec<Content>,
    position: Position,
    settings: [ChatSettings; 2],
) -> Result<TurnWithTwoAnswers> {
    app.chat
        .answers()
        .send_to_two(&chat, &content, &position, settings)
        .await
}

#[tauri::command]
pub async fn regenerate(app: State<'_, App>, message: String, settings: Option<ChatSettings>) -> Result<ChatView> {
    app.chat.answers().regenerate(&message, settings).await
}

#[tauri::command]
pub async fn stop(app: State<'_, App>, message: String) -> Result<()> {
    app.chat.answers().stop(&message).await
}

#[tauri::command]
pub async fn answer_now(app: State<'_, App>, message: String) -> Result<()> {
    app.chat.answers().answer_now(&message).await
}

#[tauri::command]
pub async fn continue_answer(app: State<'_, App>, message: String) -> Result<ChatView> {
    app.chat.answers().continue_answer(&message).await
}

/// Sends what happened to an answer after event number `from` (0: everything), then what happens.
#[tauri::command]
pub async fn attach(app: State<'_, App>, message: String, from: u64, on_event: Channel<AnswerEvent>) -> Result<()> {
    let mut events = app.chat.answers().attach(&message, from).await?;
    tauri::async_runtime::spawn(async move {
        while let Some(event) = events.recv().await {
            let joins = matches!(event.body, AnswerBody::Delta { .. });
            // A window that was closed or reloaded takes nothing more; the answer goes on without it.
            if on_event.send(event).is_err() {
                break;
            }
            // Each is a script that the page runs. Pieces that come until the page draws again go together.
            if joins {
                tokio::time::sleep(FRAME).await;
            }
        }
    });
    Ok(())
}
