//! Turns: a question and the empty answers to it.

use api::{ChatSettings, Position, StoredMessage, Turn, TurnWithTwoAnswers};
use protocol::{Content, Role};
use sqlx::SqliteConnection;

use crate::attachments::check_attachments;
use crate::json::to_json;
use crate::messages::insert::insert_message;
use crate::messages::rules::{check_idle, one_at_a_time};
use crate::messages::tool_results::close_calls;
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// An answer that is about to be written.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// The reference of the model that is asked.
    pub model: String,
    /// The settings of the request.
    pub settings: ChatSettings,
    /// The process that writes it.
    pub owner: String,
}

impl History {
    /// Stores a question at this position and an empty answer to it, looks at them, clears the draft, and gives the
    /// chat this title if it has none. Calls before the question that have no result get one that says that they were
    /// not run. Fails with [`Error::Busy`] while the chat has a running answer.
    pub async fn begin_turn(
        &self,
        chat: &str,
        content: &[Content],
        position: &Position,
        title: &str,
        answer: &NewAnswer,
    ) -> Result<Turn> {
        let mut transaction = self.write().await?;
        let before = revision(&mut transaction, chat).await?;
        let question = insert_question(&mut transaction, chat, content, position, title).await?;
        let answer = insert_answer(&mut transaction, chat, &question, answer, now()).await?;
        let after = revision(&mut transaction, chat).await?;
        transaction.commit().await?;
        Ok(Turn {
            question: self.message(&question).await?,
            answer: self.message(&answer).await?,
            revision_before: before,
            revision: after,
        })
    }

    /// [`History::begin_turn`] with two empty answers; looks at the first.
    pub async fn begin_turn_with_two_answers(
        &self,
        chat: &str,
        content: &[Content],
        position: &Position,
        title: &str,
        answers: [&NewAnswer; 2],
    ) -> Result<TurnWithTwoAnswers> {
        let (now, [first, second]) = (now(), answers);
        let mut transaction = self.write().await?;
        let question = insert_question(&mut transaction, chat, content, position, title).await?;
        let first = insert_answer(&mut transaction, chat, &question, first, now).await?;
        let second = insert_streaming(&mut transaction, chat, &question, second, true, now).await?;
        transaction.commit().await?;
        Ok(TurnWithTwoAnswers {
            question: self.message(&question).await?,
            answers: [self.message(&first).await?, self.message(&second).await?],
        })
    }

    /// Stores an empty answer to a question, or to the result of a tool, and looks at it; other answers to it become
    /// its siblings. Fails with [`Error::Busy`] while the chat has a running answer.
    pub async fn begin_answer(&self, question: &str, answer: &NewAnswer) -> Result<StoredMessage> {
        let mut transaction = self.write().await?;
        let sql = "SELECT m.chat_id FROM messages m JOIN chats c ON c.id = m.chat_id
                    WHERE m.id = ? AND c.deleted_at IS NULL";
        let chat: Option<String> = value!(&mut *transaction, sql; question).await?;
        let chat = chat.ok_or(Error::NotFound("message"))?;
        let answer = insert_answer(&mut transaction, &chat, question, answer, now()).await?;
        transaction.commit().await?;
        self.message(&answer).await
    }
}

/// How often what a window draws of the chat has changed.
async fn revision(db: &mut SqliteConnection, chat: &str) -> Result<i64> {
    let sql = "SELECT revision FROM chats WHERE id = ? AND deleted_at IS NULL";
    value!(db, sql; chat).await?.ok_or(Error::NotFound("chat"))
}

/// Stores a question at this position, clears the draft, and gives the chat this title if it has none.
async fn insert_question(
    db: &mut SqliteConnection,
    chat: &str,
    content: &[Content],
    position: &Position,
    title: &str,
) -> Result<String> {
    let (question, now) = (new_id(), now());
    check_attachments(db, content).await?;
    let sql = "SELECT head FROM chats WHERE id = ? AND deleted_at IS NULL";
    let head: Option<Option<String>> = value!(&mut *db, sql; chat).await?;
    let head = head.ok_or(Error::NotFound("chat"))?;
    let parent = match position {
        Position::End => head,
        Position::Beginning => None,
        Position::After(message) => Some(message.clone()),
    };
    let parent = match parent {
        Some(parent) => Some(close_calls(db, chat, &parent, now).await?),
        None => None,
    };
    insert_message(db, (&question, chat, parent.as_deref()), Role::User, content, now).await?;
    let sql = "UPDATE chats SET title = CASE title WHEN '' THEN ?2 ELSE title END, draft = '[]' WHERE id = ?1";
    run!(db, sql; chat, title).await?;
    Ok(question)
}

/// Stores an empty answer and looks at it.
async fn insert_answer(
    db: &mut SqliteConnection,
    chat: &str,
    question: &str,
    answer: &NewAnswer,
    now: i64,
) -> Result<String> {
    check_idle(db, chat).await?;
    let id = insert_streaming(db, chat, question, answer, false, now).await?;
    run!(db, "UPDATE chats SET head = ?2, updated_at = ?3 WHERE id = ?1"; chat, &id, now).await?;
    Ok(id)
}

async fn insert_streaming(
    db: &mut SqliteConnection,
    chat: &str,
    question: &str,
    answer: &NewAnswer,
    beside: bool,
    now: i64,
) -> Result<String> {
    let id = new_id();
    let settings = ChatSettings {
        model: Some(answer.model.clone()),
        system_prompt: String::new(),
        ..answer.settings.clone()
    };
    let inserted = run!(
        db,
        "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, model, settings, owner, heartbeat,
                beside)
         VALUES (?1, ?2, ?3, 'assistant', 'streaming', ?4, ?5, ?6, ?7, ?4, ?8)";
        &id, chat, question, now, &answer.model, to_json(&settings), &answer.owner, beside
    );
    one_at_a_time(inserted.await)?;
    Ok(id)
}
