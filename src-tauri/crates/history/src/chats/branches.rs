//! The tree of a chat as a person works on it: looking at another branch, an answer that is written over, a copy of a
//! branch, and where the model's memory begins.

use api::{AnswerState, ChatSummary, CompactionMark, Part, StoredMessage};
use protocol::{Content, Role};
use sqlx::SqliteConnection;

use crate::json::to_json;
use crate::messages::parts::insert_parts;
use crate::messages::read::{read_branch, read_message};
use crate::messages::rules::check_idle;
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

impl History {
    /// Looks at the branch that goes through this message, down to its newest end. Returns the chat.
    pub async fn show_branch(&self, message: &str) -> Result<String> {
        let mut transaction = self.write().await?;
        let (chat, leaf) = newest_leaf(&mut transaction, message).await?;
        set_head(&mut transaction, &chat, Some(&leaf)).await?;
        transaction.commit().await?;
        Ok(chat)
    }

    /// Stores an answer in a person's words beside one that has ended, and looks at it. Its thoughts stay. Fails with
    /// [`Error::NoEdit`] for every other message and for answers that call tools, and with [`Error::Busy`] while the
    /// chat has a running answer.
    pub async fn edit_answer(&self, message: &str, text: &str) -> Result<StoredMessage> {
        // Read and copied under one lock, so that another process changes nothing in between.
        let mut transaction = self.write().await?;
        let before = read_message(&mut *transaction, message).await?;
        let is_call = |part: &Part| matches!(part.content, Content::ToolCall { .. });
        if before.role != Role::Assistant || before.state == AnswerState::Streaming || before.parts.iter().any(is_call)
        {
            return Err(Error::NoEdit);
        }
        let (id, now) = (new_id(), now());
        let mut parts = before.parts;
        parts.retain(|part| !matches!(part.content, Content::Text { .. }));
        parts.push(Part::at(Content::text(text), now));
        check_idle(&mut transaction, &before.chat).await?;
        change!(
            &mut transaction,
            "message",
            "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, finished_at, model, settings,
                    finish_reason, edited)
             SELECT ?2, m.chat_id, m.parent_id, m.role, 'complete', ?3, ?3, m.model, m.settings, 'stop', 1
               FROM messages m JOIN chats c ON c.id = m.chat_id WHERE m.id = ?1 AND c.deleted_at IS NULL";
            message, &id, now
        )
        .await?;
        insert_parts(&mut transaction, &id, &parts).await?;
        set_head(&mut transaction, &before.chat, Some(&id)).await?;
        transaction.commit().await?;
        self.message(&id).await
    }

    /// Copies the branch that ends with this message into a new chat of this title, which has the settings of its own
    /// and lies in the same project. Fails with [`Error::Busy`] if an answer in it is being written.
    pub async fn fork_chat(&self, message: &str, title: &str) -> Result<ChatSummary> {
        let mut transaction = self.write().await?;
        let branch = read_branch(&mut *transaction, message, None).await?;
        if branch.iter().any(|message| message.state == AnswerState::Streaming) {
            return Err(Error::Busy);
        }
        let (chat, now) = (new_id(), now());
        let origin = branch.last().map(|message| message.chat.clone()).unwrap_or_default();
        change!(
            &mut transaction,
            "chat",
            "INSERT INTO chats (id, title, created_at, updated_at, settings, project_id)
             SELECT ?2, ?3, ?4, ?4, settings, project_id FROM chats WHERE id = ?1 AND deleted_at IS NULL";
            &origin, &chat, title, now
        )
        .await?;
        let mut parent: Option<String> = None;
        for message in &branch {
            let id = new_id();
            run!(
                &mut transaction,
                "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, finished_at, model,
                        model_revision, template_hash, tokens, finish_reason, notices, usage, timing, settings,
                        thinking_tokens, thinking_ended, ended_by, error, tool_call_id, compaction_mark, edited)
                 SELECT ?2, ?3, ?4, role, state, created_at, finished_at, model, model_revision, template_hash, tokens,
                        finish_reason, notices, usage, timing, settings, thinking_tokens, thinking_ended, ended_by,
                        error, tool_call_id, compaction_mark, edited FROM messages WHERE id = ?1";
                &message.id, &id, &chat, &parent
            )
            .await?;
            run!(
                &mut transaction,
                "INSERT INTO parts (message_id, position, kind, content, started_at, ended_at)
                 SELECT ?2, position, kind, content, started_at, ended_at FROM parts WHERE message_id = ?1";
                &message.id, &id
            )
            .await?;
            parent = Some(id);
        }
        set_head(&mut transaction, &chat, parent.as_deref()).await?;
        transaction.commit().await?;
        Ok(self.chat_head(&chat).await?.0.summary)
    }

    /// Marks a message: the model sees nothing up to and including it; `None` removes the mark. Returns the chat.
    pub async fn set_compaction_mark(&self, message: &str, mark: Option<&CompactionMark>) -> Result<String> {
        let mut transaction = self.write().await?;
        let sql = "UPDATE messages SET compaction_mark = ?2 WHERE id = ?1 RETURNING chat_id";
        let chat = value!(&mut *transaction, sql; message, mark.map(to_json)).await?;
        transaction.commit().await?;
        chat.ok_or(Error::NotFound("message"))
    }

    /// Takes back a turn of which the model could read nothing: question and empty answer go, and the question becomes
    /// the draft if there is none. `title` is the one that the question gave the chat, which goes with it. Returns
    /// whether it was there and still the end of its branch.
    pub async fn retract_turn(&self, question: &StoredMessage, answer: &str, title: &str) -> Result<bool> {
        let mut transaction = self.write().await?;
        let deleted = run!(
            &mut transaction,
            "DELETE FROM messages WHERE id = ?1 AND parent_id = ?2 AND state = 'streaming'
                AND NOT EXISTS (SELECT 1 FROM parts p WHERE p.message_id = ?1)
                AND NOT EXISTS (SELECT 1 FROM messages other
                                 WHERE other.parent_id = ?1 OR other.parent_id = ?2 AND other.id <> ?1)";
            answer, &question.id
        );
        if deleted.await? == 0 {
            return Ok(false);
        }
        run!(&mut transaction, "DELETE FROM messages WHERE id = ?"; &question.id).await?;
        let content: Vec<&Content> = question.parts.iter().map(|part| &part.content).collect();
        run!(
            &mut transaction,
            "UPDATE chats SET head = coalesce(head, ?2), draft = CASE draft WHEN '[]' THEN ?3 ELSE draft END,
                    title = CASE WHEN title <> ?4 OR EXISTS (SELECT 1 FROM messages m WHERE m.chat_id = ?1)
                                 THEN title ELSE '' END
              WHERE id = ?1";
            &question.chat, &question.parent, to_json(&content), title
        )
        .await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// The chat of a message, and the newest end of the branches that go through it.
pub(crate) async fn newest_leaf(db: &mut SqliteConnection, message: &str) -> Result<(String, String)> {
    let leaf = row!(
        db,
        "WITH RECURSIVE below (id) AS (
             SELECT id FROM messages WHERE id = ?
             UNION ALL
             SELECT child.id FROM below JOIN messages child ON child.parent_id = below.id)
         SELECT m.chat_id, m.id FROM below JOIN messages m ON m.id = below.id
          WHERE NOT EXISTS (SELECT 1 FROM messages child WHERE child.parent_id = m.id)
          ORDER BY m.created_at DESC, m.id DESC LIMIT 1";
        message
    );
    leaf.await?.ok_or(Error::NotFound("message"))
}

/// Looks at the branch that ends with this message, or at none.
pub(crate) async fn set_head(db: &mut SqliteConnection, chat: &str, head: Option<&str>) -> Result<()> {
    run!(db, "UPDATE chats SET head = ?2 WHERE id = ?1"; chat, head).await?;
    Ok(())
}
