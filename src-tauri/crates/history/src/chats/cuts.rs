//! Deleting messages out of a chat. They move into a chat of their own that lies in the trash and knows where they
//! were, so that all that holds for the trash holds for them: they can be brought back for as long, and are searched
//! and purged like other chats.

use std::collections::HashMap;

use api::{DeleteScope, DeletedMessages};
use protocol::Role;
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;

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
        let found: Option<(String, Option<String>)> = row!(
            &mut *transaction,
            "SELECT c.id, c.head FROM messages m JOIN chats c ON c.id = m.chat_id
              WHERE m.id = ? AND c.deleted_at IS NULL";
            message
        )
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
            let gone = "SELECT chat_id <> ?2 FROM messages WHERE id = ?1";
            if the_value!(&mut *transaction, gone; head, &cut.chat).await? {
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

    /// The messages in the trash that were deleted out of a chat, by the chat in the trash that holds them.
    pub async fn deleted_messages(&self) -> Result<HashMap<String, DeletedMessages>> {
        let cuts: Vec<(String, String, bool)> = rows!(
            &self.readers,
            "SELECT c.id, m.id, (SELECT COUNT(*) FROM messages other WHERE other.chat_id = c.id) = 1
               FROM chats c JOIN messages m ON m.chat_id = c.id AND m.parent_id IS NULL
              WHERE c.deleted_at IS NOT NULL AND c.cut_from IS NOT NULL"
        )
        .await?;
        let mut deleted = HashMap::with_capacity(cuts.len());
        for (chat, root, alone) in cuts {
            // One that cannot be read, or was deleted for good meanwhile, hides no others.
            let first = match self.message(&root).await {
                Ok(first) => first,
                Err(error) => {
                    tracing::warn!(%error, "messages in the trash are listed without their words");
                    continue;
                }
            };
            let (role, excerpt) = (first.role, beginning(&first.text()));
            deleted.insert(chat, DeletedMessages { role, excerpt, alone });
        }
        Ok(deleted)
    }
}

/// The letters of a deleted message that name it.
const EXCERPT: usize = 80;

/// The beginning of a text, with dots if it goes on.
fn beginning(text: &str) -> String {
    let mut letters = text.trim().chars();
    let beginning: String = letters.by_ref().take(EXCERPT).collect();
    match letters.next() {
        Some(_) => beginning + "…",
        None => beginning,
    }
}

/// The place of the messages that begin with `root` and end with `end`, or with the ends of their branches.
async fn cut_from(
    db: &mut SqliteConnection,
    chat: String,
    head: Option<String>,
    root: String,
    end: Option<String>,
) -> Result<CutFrom> {
    // None without an end: no parent equals NULL.
    let after = "SELECT id FROM messages WHERE parent_id = ? ORDER BY created_at, id";
    let after: Vec<String> = values!(&mut *db, after; &end).await?;
    let parent = the_value!(db, "SELECT parent_id FROM messages WHERE id = ?"; &root).await?;
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
async fn sibling_beside(db: &mut SqliteConnection, message: &str) -> Result<Option<String>> {
    let siblings: Vec<String> = values!(
        db,
        "SELECT s.id FROM messages m JOIN messages s ON s.parent_id IS m.parent_id AND s.chat_id = m.chat_id
          WHERE m.id = ? ORDER BY s.created_at, s.id";
        message
    )
    .await?;
    let at = siblings.iter().position(|sibling| sibling == message).unwrap_or(0);
    Ok(siblings.get(at.wrapping_sub(1)).or(siblings.get(at + 1)).cloned())
}

/// Moves messages out of their chat into one of their own in the trash, which looks at their newest end; what followed
/// them stays, after what they came after. Returns the chat in the trash.
async fn move_to_trash(db: &mut SqliteConnection, cut: &CutFrom) -> Result<String> {
    let trash = new_id();
    run!(
        db,
        "INSERT INTO chats (id, title, created_at, updated_at, deleted_at, settings, cut_from)
         SELECT ?2, title, ?3, ?3, ?3, settings, ?4 FROM chats WHERE id = ?1";
        &cut.chat, &trash, now(), to_json(cut)
    )
    .await?;
    run!(
        db,
        "WITH RECURSIVE below (id) AS (
             SELECT ?1
             UNION ALL
             SELECT m.id FROM below JOIN messages m ON m.parent_id = below.id WHERE below.id IS NOT ?2)
         UPDATE messages SET chat_id = ?3 WHERE id IN (SELECT id FROM below)";
        &cut.root, &cut.end, &trash
    )
    .await?;
    run!(db, "UPDATE messages SET parent_id = NULL WHERE id = ?"; &cut.root).await?;
    if let Some(end) = &cut.end {
        run!(db, "UPDATE messages SET parent_id = ?2 WHERE parent_id = ?1"; end, &cut.parent).await?;
        // The compaction mark before the place stays.
        run!(
            db,
            "UPDATE messages SET compaction_mark = (SELECT compaction_mark FROM messages WHERE id = ?1)
              WHERE id = ?2 AND compaction_mark IS NULL";
            end, &cut.parent
        )
        .await?;
    }
    let (_, leaf) = newest_leaf(db, &cut.root).await?;
    set_head(db, &trash, Some(&leaf)).await?;
    Ok(trash)
}

/// The first and the last message of the turn that a message of this branch belongs to. The branch is told by its end.
async fn turn_of(db: &mut SqliteConnection, head: &str, message: &str) -> Result<(String, Option<String>)> {
    let branch: Vec<(String, String)> = rows!(
        db,
        "WITH RECURSIVE branch (id, parent_id, role, distance) AS (
             SELECT id, parent_id, role, 0 FROM messages WHERE id = ?
             UNION ALL
             SELECT m.id, m.parent_id, m.role, branch.distance + 1
             FROM branch JOIN messages m ON m.id = branch.parent_id)
         SELECT id, role FROM branch ORDER BY distance DESC";
        head
    )
    .await?;
    let is_question = |(_, role): &(String, String)| *role == to_word(&Role::User);
    let at = branch.iter().position(|(id, _)| id == message);
    let at = at.ok_or(Error::NotFound("message"))?;
    // An answer without a question before it, as a part of a chat may begin, is a turn, too.
    let first = branch[..=at].iter().rposition(is_question).unwrap_or(0);
    let next = branch[first + 1..].iter().position(is_question);
    Ok((branch[first].0.clone(), next.map(|next| branch[first + next].0.clone())))
}

/// Brings messages back to where they were deleted. Returns their chat; `None` if this is no such chat, their place is
/// gone, or calls of theirs were made again there since: a chat has each call once.
pub(crate) async fn put_back(db: &mut SqliteConnection, trash: &str) -> Result<Option<String>> {
    let cut = "SELECT cut_from FROM chats WHERE id = ? AND deleted_at IS NOT NULL AND cut_from IS NOT NULL";
    let cut: Option<String> = value!(&mut *db, cut; trash).await?;
    let Some(cut) = cut else { return Ok(None) };
    let cut: CutFrom = from_json("place", &cut)?;
    let there: bool = the_value!(
        &mut *db,
        "SELECT EXISTS (SELECT 1 FROM chats WHERE id = ?1 AND deleted_at IS NULL)
            AND (?2 IS NULL OR EXISTS (SELECT 1 FROM messages WHERE id = ?2 AND chat_id = ?1))
            AND NOT EXISTS (SELECT 1 FROM messages own JOIN messages other ON other.chat_id = ?1
            AND other.tool_call_id = own.tool_call_id
                             WHERE own.chat_id = ?3)";
        &cut.chat, &cut.parent, trash
    )
    .await?;
    if !there {
        return Ok(None);
    }
    run!(
        db,
        "UPDATE messages SET chat_id = ?2, parent_id = CASE id WHEN ?3 THEN ?4 ELSE parent_id END WHERE chat_id = ?1";
        trash, &cut.chat, &cut.root, &cut.parent
    )
    .await?;
    if let Some(end) = &cut.end {
        for after in &cut.after {
            let back = "UPDATE messages SET parent_id = ?2 WHERE id = ?1 AND chat_id = ?3 AND parent_id IS ?4";
            run!(db, back; after, end, &cut.chat, &cut.parent).await?;
        }
        run!(
            db,
            "UPDATE messages SET compaction_mark = NULL
              WHERE id = ?2 AND compaction_mark = (SELECT compaction_mark FROM messages WHERE id = ?1)";
            end, &cut.parent
        )
        .await?;
    }
    let head_is_there = "SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND chat_id = ?2)";
    let head_is_there = the_value!(&mut *db, head_is_there; &cut.head, &cut.chat).await?;
    // An answer that is being written stays in view.
    if head_is_there && check_idle(db, &cut.chat).await.is_ok() {
        set_head(db, &cut.chat, cut.head.as_deref()).await?;
    }
    run!(db, "DELETE FROM chats WHERE id = ?"; trash).await?;
    Ok(Some(cut.chat))
}
