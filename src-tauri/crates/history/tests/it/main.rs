//! The history file as other rooms use it: a real SQLite file in a folder of its own.

#![allow(clippy::unwrap_used)]

mod answers;
mod attachments;
mod branches;
mod chats;
mod continuation;
mod damage;
mod export;
mod file;
mod import;
mod import_archive;
mod library;
mod long_chats;
mod messages;
mod migration;
mod notes;
mod project_files;
mod recovery;
mod repair;
mod search;
mod settings;
mod tool_results;
mod torture;
mod two_processes;

use std::path::PathBuf;

use api::{AnswerState, ChatSettings, Part, Position, StoredMessage, Turn};
use history::{AnswerDelta, History, NewAnswer, PartDelta};
use protocol::{Content, FinishReason};
use tempfile::TempDir;

/// A process that takes an answer over.
const OWNER: &str = "2:2@test";

/// The process that writes new answers.
const WRITER: &str = "1:1@test";

/// A history of its own; the folder goes with it.
struct Fresh {
    folder: TempDir,
    history: History,
}

impl Fresh {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(&folder.path().join("history.sqlite")).await.unwrap();
        Self { folder, history }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("history.sqlite")
    }

    async fn chat(&self) -> String {
        self.history
            .create_chat(&ChatSettings::default())
            .await
            .unwrap()
            .summary
            .id
    }

    /// A question and its finished answer.
    async fn turn(&self, chat: &str, question: &str, answer: &str) -> Turn {
        let mut turn = self
            .history
            .begin_turn(chat, &asked(question), &Position::End, question, &new_answer())
            .await
            .unwrap();
        self.end(&mut turn.answer, answer).await;
        turn
    }

    /// The id of an answer that is being written.
    async fn streaming_answer(&self, chat: &str) -> String {
        let (asked, answer) = (asked("question"), new_answer());
        let turn = self.history.begin_turn(chat, &asked, &Position::End, "", &answer).await;
        turn.unwrap().answer.id
    }

    /// Another finished answer.
    async fn sibling(&self, question: &str, answer: &str) -> StoredMessage {
        let mut message = self.history.begin_answer(question, &new_answer()).await.unwrap();
        self.end(&mut message, answer).await;
        message
    }

    async fn end(&self, message: &mut StoredMessage, text: &str) {
        message.parts = vec![part(words(text))];
        message.state = AnswerState::Complete;
        message.finish_reason = Some(FinishReason::Stop);
        message.finished_at = Some(history::now());
        self.history.finish(message, WRITER, &[]).await.unwrap();
    }
}

fn new_answer() -> NewAnswer {
    NewAnswer {
        model: "pebble".into(),
        settings: ChatSettings::default(),
        owner: WRITER.into(),
    }
}

/// A part that came in a moment.
fn part(content: Content) -> Part {
    Part {
        content,
        started_at: 1,
        ended_at: 2,
    }
}

/// A question of words.
fn asked(text: &str) -> Vec<Content> {
    vec![words(text)]
}

fn words(text: &str) -> Content {
    Content::text(text)
}

/// More text at the end of part 0.
fn delta(text: &str, tokens: &[u32]) -> AnswerDelta {
    let parts = vec![PartDelta {
        position: 0,
        content: words(text),
        started_at: 1,
        ended_at: 2,
    }];
    AnswerDelta {
        parts,
        tokens: tokens.to_vec(),
        ..AnswerDelta::default()
    }
}

fn texts(messages: &[StoredMessage]) -> Vec<String> {
    messages.iter().map(StoredMessage::text).collect()
}
