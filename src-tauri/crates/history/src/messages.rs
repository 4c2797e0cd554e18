//! The table `messages`: the tree of a chat, and the answers that are being written.

use protocol::{AnswerState, ChatSettings, Content, Part, Position, Role, StoredMessage, Turn, TurnWithTwoAnswers};
use sqlx::{Sqlite, SqliteExecutor, Transaction};

use crate::attachments::check_attachments;
use crate::branches::check_idle;
use crate::parts::{delete_parts, insert_parts, token_bytes};
use crate::rows::{messages, select_messages, to_json, to_word, PartOfMessage};
use crate::tool_results::close_calls;
use crate::{new_id, now, Error, History, Result};

/// An answer that is about to be written.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// The reference of the model that is asked.
    pub model: String,
    /// What it is asked with.
    pub settings: ChatSettings,
    /// The process that writes it.
    pub owner: String,
}

/// An answer that some process is writing, as the file says.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StreamingAnswer {
    /// The message.
    pub id: String,
    /// Its chat.
    pub chat: String,
    /// The process.
    pub owner: String,
    /// When it last said that it lives.
    pub heartbeat: i64,
}

impl History {
    /// A message.
    pub async fn message(&self, message: &str) -> Result<StoredMessage> {
        read_message(&self.readers, message).await
    }

    /// The messages from the first of the chat to this one.
    pub async fn branch(&self, head: &str) -> Result<Vec<StoredMessage>> {
        self.end_of_branch(head, None).await
    }

    /// The messages right before this one on its branch, so many at most, oldest first; none before the first of the chat.
    pub async fn messages_before(&self, message: &str, most: u32) -> Result<Vec<StoredMessage>> {
        let parent: Option<Option<String>> = sqlx::query_scalar("SELECT parent_id FROM messages WHERE id = ?")
            .bind(message)
            .fetch_optional(&self.readers)
            .await?;
        match parent.ok_or(Error::NotFound("message"))? {
            Some(parent) => self.end_of_branch(&parent, Some(most)).await,
            None => Ok(Vec::new()),
        }
    }

    /// The last messages of the branch that ends with this one, so many at most; `None`: all of them.
    pub(crate) async fn end_of_branch(&self, head: &str, most: Option<u32>) -> Result<Vec<StoredMessage>> {
        read_branch(&self.readers, head, most).await
    }

    /// How many messages a branch has after this one; `None` if it is not on the branch.
    pub(crate) async fn distance(&self, head: &str, message: &str) -> Result<Option<u32>> {
        Ok(sqlx::query_scalar(
            "WITH RECURSIVE branch (id, parent_id, distance) AS (
                 SELECT id, parent_id, 0 FROM messages WHERE id = ?1
                 UNION ALL
                 SELECT above.id, above.parent_id, branch.distance + 1 FROM branch JOIN messages above ON above.id = branch.parent_id)
             SELECT distance FROM branch WHERE id = ?2 LIMIT 1",
        )
        .bind(head)
        .bind(message)
        .fetch_optional(&self.readers)
        .await?)
    }

    /// All messages of a chat, every branch, parents before children.
    pub async fn tree(&self, chat: &str) -> Result<Vec<StoredMessage>> {
        let rows: Vec<PartOfMessage> = sqlx::query_as(select_messages!(
            "",
            "FROM messages m LEFT JOIN parts p ON p.message_id = m.id WHERE m.chat_id = ? ORDER BY m.rowid, p.position"
        ))
        .bind(chat)
        .fetch_all(&self.readers)
        .await?;
        messages(rows)
    }

    /// Stores a question at this position and an empty answer to it, looks at them, clears the draft, and gives the chat this title
    /// if it has none. Calls before the question that have no result get one that says that they were not run. Fails with
    /// [`Error::Busy`] while the chat has a running answer.
    pub async fn begin_turn(&self, chat: &str, content: &[Content], position: &Position, title: &str, answer: &NewAnswer) -> Result<Turn> {
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

    /// The answers that are being written beside this one, to the same question.
    pub(crate) async fn streaming_beside(&self, answer: &str) -> Result<Vec<StoredMessage>> {
        let ids: Vec<String> = sqlx::query_scalar(
            "SELECT other.id FROM messages m JOIN messages other ON other.parent_id = m.parent_id
              WHERE m.id = ?1 AND other.id <> ?1 AND other.state = 'streaming' ORDER BY other.beside",
        )
        .bind(answer)
        .fetch_all(&self.readers)
        .await?;
        let mut beside = Vec::with_capacity(ids.len());
        for id in &ids {
            beside.push(self.message(id).await?);
        }
        Ok(beside)
    }

    /// Stores an empty answer to a question, or to the result of a tool, and looks at it; other answers to it become its siblings. Fails with
    /// [`Error::Busy`] while the chat has a running answer.
    pub async fn begin_answer(&self, question: &str, answer: &NewAnswer) -> Result<StoredMessage> {
        let mut transaction = self.write().await?;
        let chat: Option<String> =
            sqlx::query_scalar("SELECT m.chat_id FROM messages m JOIN chats c ON c.id = m.chat_id WHERE m.id = ? AND c.deleted_at IS NULL")
                .bind(question)
                .fetch_optional(&mut *transaction)
                .await?;
        let chat = chat.ok_or(Error::NotFound("message"))?;
        let answer = insert_answer(&mut transaction, &chat, question, answer, now()).await?;
        transaction.commit().await?;
        self.message(&answer).await
    }

    /// Stores the end of an answer: the whole of it replaces what its deltas left, also if another process took its owner for
    /// dead and marked it interrupted. Returns it as it is read from now on. Fails with [`Error::NotFound`] if the answer has
    /// ended otherwise, or another process continues it.
    pub async fn finish(&self, answer: &StoredMessage, owner: &str, tokens: &[u32]) -> Result<StoredMessage> {
        let mut transaction = self.write().await?;
        let updated = sqlx::query(
            "UPDATE messages SET state = ?2, finished_at = ?3, model_revision = ?4, template_hash = ?5, tokens = ?6, finish_reason = ?7,
                    error = ?8, notices = ?9, usage = ?10, timing = ?11, ended_by = ?12, thinking_tokens = ?13, thinking_ended = ?14,
                    owner = NULL, heartbeat = NULL
              WHERE id = ?1 AND (owner = ?15 AND state = 'streaming' OR owner IS NULL AND state = 'interrupted')",
        )
        .bind(&answer.id)
        .bind(to_word(&answer.state))
        .bind(answer.finished_at)
        .bind(&answer.model_revision)
        .bind(&answer.template_hash)
        .bind(token_bytes(tokens))
        .bind(answer.finish_reason.as_ref().map(to_word))
        .bind(answer.error.as_ref().map(to_json))
        .bind(to_json(&answer.notices))
        .bind(answer.usage.as_ref().map(to_json))
        .bind(answer.timing.as_ref().map(to_json))
        .bind(answer.ended_by.as_ref().map(to_json))
        .bind(answer.thinking_tokens)
        .bind(answer.thinking_ended)
        .bind(owner)
        .execute(&mut *transaction)
        .await?;
        if updated.rows_affected() == 0 {
            return Err(Error::NotFound("running answer"));
        }
        delete_parts(&mut transaction, &answer.id).await?;
        insert_parts(&mut transaction, &answer.id, &answer.parts).await?;
        sqlx::query("UPDATE chats SET updated_at = ?2, unread = 1 WHERE id = ?1")
            .bind(&answer.chat)
            .bind(answer.finished_at.unwrap_or_else(now))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.message(&answer.id).await
    }

    /// All answers that are being written, as the file says.
    pub async fn running(&self) -> Result<Vec<StreamingAnswer>> {
        Ok(sqlx::query_as(
            "SELECT id, chat_id AS chat, coalesce(owner, '') AS owner, coalesce(heartbeat, 0) AS heartbeat FROM messages WHERE state = 'streaming'",
        )
        .fetch_all(&self.readers)
        .await?)
    }

    /// Marks an answer interrupted, unless its owner said that it lives since it was read. Returns whether it was marked.
    pub async fn interrupt(&self, answer: &StreamingAnswer) -> Result<bool> {
        let mut transaction = self.write().await?;
        let marked = sqlx::query(
            "UPDATE messages SET state = ?4, finished_at = heartbeat, owner = NULL, heartbeat = NULL
              WHERE id = ?1 AND state = 'streaming' AND coalesce(owner, '') = ?2 AND coalesce(heartbeat, 0) = ?3",
        )
        .bind(&answer.id)
        .bind(&answer.owner)
        .bind(answer.heartbeat)
        .bind(to_word(&AnswerState::Interrupted))
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(marked.rows_affected() > 0)
    }

    /// Asks the process that writes an answer to stop it; changes nothing if it has ended.
    pub async fn request_stop(&self, message: &str) -> Result<()> {
        self.request(sqlx::query("UPDATE messages SET stop_requested = 1 WHERE id = ?").bind(message))
            .await
    }

    /// Asks the process that writes an answer to end its thought; changes nothing if the answer has ended.
    pub async fn request_answer_now(&self, message: &str) -> Result<()> {
        self.request(sqlx::query("UPDATE messages SET end_thinking_requested = 1 WHERE id = ?").bind(message))
            .await
    }

    async fn request(&self, update: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>) -> Result<()> {
        let mut transaction = self.write().await?;
        let found = update.execute(&mut *transaction).await?;
        if found.rows_affected() == 0 {
            return Err(Error::NotFound("message"));
        }
        Ok(transaction.commit().await?)
    }

    /// The ids of the tokens that an answer was made of, in order.
    pub async fn tokens(&self, message: &str) -> Result<Vec<u32>> {
        let bytes: Option<Vec<u8>> = sqlx::query_scalar("SELECT tokens FROM messages WHERE id = ?")
            .bind(message)
            .fetch_optional(&self.readers)
            .await?;
        let bytes = bytes.ok_or(Error::NotFound("message"))?;
        Ok(bytes
            .chunks_exact(4)
            .map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]))
            .collect())
    }
}

/// A message as this connection sees it.
pub(crate) async fn read_message(connection: impl SqliteExecutor<'_>, message: &str) -> Result<StoredMessage> {
    let rows: Vec<PartOfMessage> = sqlx::query_as(select_messages!(
        "",
        "FROM messages m LEFT JOIN parts p ON p.message_id = m.id WHERE m.id = ? ORDER BY p.position"
    ))
    .bind(message)
    .fetch_all(connection)
    .await?;
    messages(rows)?.pop().ok_or(Error::NotFound("message"))
}

/// The last messages of the branch that ends with this one, as this connection sees them; `None`: all of them.
pub(crate) async fn read_branch(connection: impl SqliteExecutor<'_>, head: &str, most: Option<u32>) -> Result<Vec<StoredMessage>> {
    let rows: Vec<PartOfMessage> = sqlx::query_as(select_messages!(
        "WITH RECURSIVE branch (id, parent_id, distance) AS (
             SELECT id, parent_id, 0 FROM messages WHERE id = ?1
             UNION ALL
             SELECT above.id, above.parent_id, branch.distance + 1 FROM branch JOIN messages above ON above.id = branch.parent_id
             LIMIT ?2)",
        "FROM branch JOIN messages m ON m.id = branch.id LEFT JOIN parts p ON p.message_id = m.id
         ORDER BY branch.distance DESC, p.position"
    ))
    .bind(head)
    // A negative number is no limit.
    .bind(most.map_or(-1, i64::from))
    .fetch_all(connection)
    .await?;
    if rows.is_empty() {
        return Err(Error::NotFound("message"));
    }
    messages(rows)
}

/// Stores a complete message.
pub(crate) async fn insert_message(
    transaction: &mut Transaction<'static, Sqlite>,
    (id, chat, parent): (&str, &str, Option<&str>),
    role: Role,
    content: &[Content],
    now: i64,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, finished_at) VALUES (?1, ?2, ?3, ?4, 'complete', ?5, ?5)",
    )
    .bind(id)
    .bind(chat)
    .bind(parent)
    .bind(to_word(&role))
    .bind(now)
    .execute(&mut **transaction)
    .await?;
    let part = |content: &Content| Part {
        content: content.clone(),
        started_at: now,
        ended_at: now,
    };
    let parts: Vec<Part> = content.iter().map(part).collect();
    insert_parts(transaction, id, &parts).await
}

/// How often what a window draws of the chat has changed.
async fn revision(transaction: &mut Transaction<'static, Sqlite>, chat: &str) -> Result<i64> {
    let revision = sqlx::query_scalar("SELECT revision FROM chats WHERE id = ? AND deleted_at IS NULL")
        .bind(chat)
        .fetch_optional(&mut **transaction)
        .await?;
    revision.ok_or(Error::NotFound("chat"))
}

/// Stores a question at this position, clears the draft, and gives the chat this title if it has none.
async fn insert_question(
    transaction: &mut Transaction<'static, Sqlite>,
    chat: &str,
    content: &[Content],
    position: &Position,
    title: &str,
) -> Result<String> {
    let (question, now) = (new_id(), now());
    check_attachments(transaction, content).await?;
    let head: Option<Option<String>> = sqlx::query_scalar("SELECT head FROM chats WHERE id = ? AND deleted_at IS NULL")
        .bind(chat)
        .fetch_optional(&mut **transaction)
        .await?;
    let head = head.ok_or(Error::NotFound("chat"))?;
    let parent = match position {
        Position::End => head,
        Position::Beginning => None,
        Position::After(message) => Some(message.clone()),
    };
    let parent = match parent {
        Some(parent) => Some(close_calls(transaction, chat, &parent, now).await?),
        None => None,
    };
    insert_message(transaction, (&question, chat, parent.as_deref()), Role::User, content, now).await?;
    sqlx::query("UPDATE chats SET title = CASE title WHEN '' THEN ?2 ELSE title END, draft = '[]' WHERE id = ?1")
        .bind(chat)
        .bind(title)
        .execute(&mut **transaction)
        .await?;
    Ok(question)
}

/// Stores an empty answer and looks at it.
async fn insert_answer(
    transaction: &mut Transaction<'static, Sqlite>,
    chat: &str,
    question: &str,
    answer: &NewAnswer,
    now: i64,
) -> Result<String> {
    check_idle(transaction, chat).await?;
    let id = insert_streaming(transaction, chat, question, answer, false, now).await?;
    sqlx::query("UPDATE chats SET head = ?2, updated_at = ?3 WHERE id = ?1")
        .bind(chat)
        .bind(&id)
        .bind(now)
        .execute(&mut **transaction)
        .await?;
    Ok(id)
}

async fn insert_streaming(
    transaction: &mut Transaction<'static, Sqlite>,
    chat: &str,
    question: &str,
    answer: &NewAnswer,
    beside: bool,
    now: i64,
) -> Result<String> {
    let id = new_id();
    let inserted = sqlx::query(
        "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, model, settings, owner, heartbeat, beside)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?6, ?10)",
    )
    .bind(&id)
    .bind(chat)
    .bind(question)
    .bind(to_word(&Role::Assistant))
    .bind(to_word(&AnswerState::Streaming))
    .bind(now)
    .bind(&answer.model)
    .bind(to_json(&ChatSettings {
        model: Some(answer.model.clone()),
        system_prompt: String::new(),
        ..answer.settings.clone()
    }))
    .bind(&answer.owner)
    .bind(beside)
    .execute(&mut **transaction)
    .await;
    one_at_a_time(inserted)?;
    Ok(id)
}

/// The outcome of a statement that makes an answer streaming: an index allows one of them per chat, and one beside it.
pub(crate) fn one_at_a_time<T>(outcome: sqlx::Result<T>) -> Result<T> {
    match outcome {
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Err(Error::Busy),
        outcome => Ok(outcome?),
    }
}
