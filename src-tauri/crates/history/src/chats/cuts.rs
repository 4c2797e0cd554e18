//! Deleting messages out of a chat. They move into a chat of their own that lies in the trash and knows where they
//! were, so that all that holds for the trash holds for them: they can be brought back for as long, and are searched
//! and purged like other chats.

use api::DeleteScope;
use protocol::Role;
use serde::{Deserialize, Serialize};
use sqlx::{Sqlite, Transaction};

use crate::chats::branches::{newest_leaf, set_head};
use crate::json::{from_json, to_json, to_word};
use crate::messages::rules::check_idle;
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// The place that deleted messages had in their chat.
#[derive(Debug, Serialize, Deserialize)]
struct CutFrom {
    chat: String,
    /// The first of them.
    root: String,
    /// The message that it came after.
    parent: Option<String>,
    /// The last of them on the branch that was looked at, if what followed it stayed.
    end: Option<String>,
    /// The messages that followed that one.
    after: Vec<String>,
    /// The head of the chat.
    head: Option<String>,
}

impl History {
    /// Deletes a message and what belongs to it out of its chat, and looks at what is left of the branch, else at the
    /// branch beside it. Returns the chat in the trash that holds it now: [`History::restore_chat`] brings it back to
    /// its place. Fails with [`Error::Busy`] while the chat has a running answer, and with [`Error::NotFound`] for the
    /// turn of a message that is not on the branch that is looked at.
    pub async fn delete_message(&self, message: &str, scope: DeleteScope) -> Result<String> {
        let mut transaction = self.write().await?;
        let found: Option<(String, Option<String>)> =
            sqlx::query_as("SELECT c.id, c.head FROM messages m JOIN chats c ON c.id = m.chat_id WHERE m.id = ? AND c.deleted_at IS NULL")
                .bind(message)
                .fetch_optional(&mut *transaction)
                .await?;
        let (chat, head) = found.ok_or(Error::NotFound("message"))?;
        check_idle(&mut transaction, &chat).await?;
        let (root, end) = match scope {
            DeleteScope::Branch => (message.to_owned(), None),
            DeleteScope::Turn => turn_of(&mut transaction, head.as_deref().unwrap_or_default(), message).await?,
        };
        let cut = cut_from(&mut transaction, chat, head, root, end).await?;
        let beside = sibling_beside(&mut transaction, &cut.root).await?;
        let trash = move_to_trash(&mut transaction, &cut).await?;
        if let Some(head) = &cut.head {
            let gone: bool = sqlx::query_scalar("SELECT chat_id <> ?2 FROM messages WHERE id = ?1")
                .bind(head)
                .bind(&cut.chat)
                .fetch_one(&mut *transaction)
                .await?;
            if gone {
                let left = match beside {
                    Some(beside) => Some(newest_leaf(&mut transaction, &beside).await?.1),
                    None => cut.parent,
                };
                set_head(&mut transaction, &cut.chat, left.as_deref()).await?;
            }
        }
        transaction.commit().await?;
        Ok(trash)
    }
}

/// The place of the messages that begin with `root` and end with `end`, or with the ends of their branches.
async fn cut_from(
    transaction: &mut Transaction<'static, Sqlite>,
    chat: String,
    head: Option<String>,
    root: String,
    end: Option<String>,
) -> Result<CutFrom> {
    let after: Vec<String> = match &end {
        Some(end) => {
            sqlx::query_scalar("SELECT id FROM messages WHERE parent_id = ? ORDER BY created_at, id")
                .bind(end)
                .fetch_all(&mut **transaction)
                .await?
        }
        None => Vec::new(),
    };
    let parent: Option<String> = sqlx::query_scalar("SELECT parent_id FROM messages WHERE id = ?")
        .bind(&root)
        .fetch_one(&mut **transaction)
        .await?;
    Ok(CutFrom {
        chat,
        root,
        parent,
        end: end.filter(|_| !after.is_empty()),
        after,
        head,
    })
}

/// The sibling right before a message, else the one right after it.
async fn sibling_beside(transaction: &mut Transaction<'static, Sqlite>, message: &str) -> Result<Option<String>> {
    let siblings: Vec<String> = sqlx::query_scalar(
        "SELECT s.id FROM messages m JOIN messages s ON s.parent_id IS m.parent_id AND s.chat_id = m.chat_id
          WHERE m.id = ? ORDER BY s.created_at, s.id",
    )
    .bind(message)
    .fetch_all(&mut **transaction)
    .await?;
    let at = siblings.iter().position(|sibling| sibling == message).unwrap_or(0);
    Ok(siblings.get(at.wrapping_sub(1)).or(siblings.get(at + 1)).cloned())
}

/// Moves messages out of their chat into one of their own in the trash, which looks at their newest end; what followed
/// them stays, after what they came after. Returns the chat in the trash.
async fn move_to_trash(transaction: &mut Transaction<'static, Sqlite>, cut: &CutFrom) -> Result<String> {
    let trash = new_id();
    sqlx::query(
        "INSERT INTO chats (id, title, created_at, updated_at, deleted_at, settings, cut_from)
         SELECT ?2, title, ?3, ?3, ?3, settings, ?4 FROM chats WHERE id = ?1",
    )
    .bind(&cut.chat)
    .bind(&trash)
    .bind(now())
    .bind(to_json(cut))
    .execute(&mut **transaction)
    .await?;
    sqlx::query(
        "WITH RECURSIVE below (id) AS (
             SELECT ?1
             UNION ALL
             SELECT m.id FROM below JOIN messages m ON m.parent_id = below.id WHERE below.id IS NOT ?2)
         UPDATE messages SET chat_id = ?3 WHERE id IN (SELECT id FROM below)",
    )
    .bind(&cut.root)
    .bind(&cut.end)
    .bind(&trash)
    .execute(&mut **transaction)
    .await?;
    sqlx::query("UPDATE messages SET parent_id = NULL WHERE id = ?")
        .bind(&cut.root)
        .execute(&mut **transaction)
        .await?;
    if let Some(end) = &cut.end {
        sqlx::query("UPDATE messages SET parent_id = ?2 WHERE parent_id = ?1")
            .bind(end)
            .bind(&cut.parent)
            .execute(&mut **transaction)
            .await?;
        // The compaction mark before the place stays.
        move_compaction_mark(transaction, end, cut.parent.as_deref()).await?;
    }
    let (_, leaf) = newest_leaf(transaction, &cut.root).await?;
    set_head(transaction, &trash, Some(&leaf)).await?;
    Ok(trash)
}

/// The first and the last message of the turn that a message of this branch belongs to. The branch is told by its end.
async fn turn_of(
    transaction: &mut Transaction<'static, Sqlite>,
    head: &str,
    message: &str,
) -> Result<(String, Option<String>)> {
    let branch: Vec<(String, String)> = sqlx::query_as(
        "WITH RECURSIVE branch (id, parent_id, role, distance) AS (
             SELECT id, parent_id, role, 0 FROM messages WHERE id = ?
             UNION ALL
             SELECT m.id, m.parent_id, m.role, branch.distance + 1
             FROM branch JOIN messages m ON m.id = branch.parent_id)
         SELECT id, role FROM branch ORDER BY distance DESC",
    )
    .bind(head)
    .fetch_all(&mut **transaction)
    .await?;
    let is_question = |(_, role): &(String, String)| *role == to_word(&Role::User);
    let at = branch
        .iter()
        .position(|(id, _)| id == message)
        .ok_or(Error::NotFound("message"))?;
    // An answer without a question before it, as a part of a chat may begin, is a turn, too.
    let first = branch[..=at].iter().rposition(is_question).unwrap_or(0);
    let next = branch[first + 1..]
        .iter()
        .position(is_question)
        .map(|next| first + next);
    Ok((branch[first].0.clone(), next.map(|last| branch[last].0.clone())))
}

/// Gives the mark of one message to another that has none.
async fn move_compaction_mark(
    transaction: &mut Transaction<'static, Sqlite>,
    from: &str,
    to: Option<&str>,
) -> Result<()> {
    sqlx::query("UPDATE messages SET compaction_mark = (SELECT compaction_mark FROM messages WHERE id = ?1) WHERE id = ?2 AND compaction_mark IS NULL")
        .bind(from)
        .bind(to)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Brings messages back to where they were deleted. Returns their chat; `None` if this is no such chat, their place is
/// gone, or calls of theirs were made again there since: a chat has each call once.
pub(crate) async fn put_back(transaction: &mut Transaction<'static, Sqlite>, trash: &str) -> Result<Option<String>> {
    let cut: Option<String> = sqlx::query_scalar(
        "SELECT cut_from FROM chats WHERE id = ? AND deleted_at IS NOT NULL AND cut_from IS NOT NULL",
    )
    .bind(trash)
    .fetch_optional(&mut **transaction)
    .await?;
    let Some(cut) = cut else { return Ok(None) };
    let cut: CutFrom = from_json("place", &cut)?;
    let there: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM chats WHERE id = ?1 AND deleted_at IS NULL)
            AND (?2 IS NULL OR EXISTS (SELECT 1 FROM messages WHERE id = ?2 AND chat_id = ?1))
            AND NOT EXISTS (SELECT 1 FROM messages own JOIN messages other ON other.chat_id = ?1
            AND other.tool_call_id = own.tool_call_id
                             WHERE own.chat_id = ?3)",
    )
    .bind(&cut.chat)
    .bind(&cut.parent)
    .bind(trash)
    .fetch_one(&mut **transaction)
    .await?;
    if !there {
        return Ok(None);
    }
    sqlx::query(
        "UPDATE messages SET chat_id = ?2, parent_id = CASE id WHEN ?3 THEN ?4 ELSE parent_id END WHERE chat_id = ?1",
    )
    .bind(trash)
    .bind(&cut.chat)
    .bind(&cut.root)
    .bind(&cut.parent)
    .execute(&mut **transaction)
    .await?;
    if let Some(end) = &cut.end {
        for after in &cut.after {
            sqlx::query("UPDATE messages SET parent_id = ?2 WHERE id = ?1 AND chat_id = ?3 AND parent_id IS ?4")
                .bind(after)
                .bind(end)
                .bind(&cut.chat)
                .bind(&cut.parent)
                .execute(&mut **transaction)
                .await?;
        }
        sqlx::query("UPDATE messages SET compaction_mark = NULL WHERE id = ?2 AND compaction_mark = (SELECT compaction_mark FROM messages WHERE id = ?1)")
            .bind(end)
            .bind(&cut.parent)
            .execute(&mut **transaction)
            .await?;
    }
    let head_is_there: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND chat_id = ?2)")
            .bind(&cut.head)
            .bind(&cut.chat)
            .fetch_one(&mut **transaction)
            .await?;
    // An answer that is being written stays in view.
    if head_is_there && check_idle(transaction, &cut.chat).await.is_ok() {
        set_head(transaction, &cut.chat, cut.head.as_deref()).await?;
    }
    sqlx::query("DELETE FROM chats WHERE id = ?")
        .bind(trash)
        .execute(&mut **transaction)
        .await?;
    Ok(Some(cut.chat))
}
