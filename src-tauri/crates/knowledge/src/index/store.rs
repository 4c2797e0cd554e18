//! Writing what came of a file: all of it in one transaction, or nothing.

use std::path::Path;

use sqlite::words::segmented;
use sqlx::SqliteConnection;

use super::columns::{bytes_of, signed, to_json};
use super::database::Index;
use crate::folder::{SkipReason, Stamp};
use crate::passages::{Passage, PATH_SIGN};
use crate::reading::Outcome;
use crate::Result;

impl Index {
    /// Stores what came of a file, in the place of what was read of it before. False if the index does not know the
    /// file, because it, or its collection, was forgotten meanwhile.
    ///
    /// # Errors
    /// Those of writing the index, which is as it was then.
    pub async fn store(&self, collection: &str, path: &Path, outcome: &Outcome, recipe: &str) -> Result<bool> {
        self.store_if(collection, path, None, outcome, recipe).await
    }

    /// [`Index::store`], unless the bytes that the index knows of the file have another hash than this one. False then,
    /// too.
    ///
    /// # Errors
    /// Those of [`Index::store`].
    pub async fn store_if(
        &self,
        collection: &str,
        path: &Path,
        hash: Option<&[u8; 32]>,
        outcome: &Outcome,
        recipe: &str,
    ) -> Result<bool> {
        let mut transaction = self.write().await?;
        let sql = "SELECT id, hash FROM files WHERE collection = ? AND path = ?";
        let row: Option<(i64, Option<Vec<u8>>)> = sqlx::query_as(sql)
            .bind(collection)
            .bind(bytes_of(path))
            .fetch_optional(&mut *transaction)
            .await?;
        let Some((file, known)) = row else { return Ok(false) };
        if hash.is_some_and(|hash| known.as_deref() != Some(hash)) {
            return Ok(false);
        }
        match outcome {
            Outcome::Same { stamp } => {
                sqlx::query("UPDATE files SET size = ?, modified = ? WHERE id = ?")
                    .bind(signed(stamp.size))
                    .bind(stamp.modified)
                    .bind(file)
                    .execute(&mut *transaction)
                    .await?;
            }
            Outcome::Read {
                hash,
                stamp,
                text,
                passages,
                described_by,
            } => {
                remove_passages(&mut transaction, file).await?;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                for passage in passages {
                    insert(&mut transaction, file, &name, text, passage).await?;
                }
                let state = State {
                    stamp: Some(*stamp),
                    hash: Some(hash),
                    state: "read",
                    reason: None,
                    passages: passages.len() as u64,
                    text_bytes: text.len() as u64,
                    is_image: described_by.is_some(),
                    described_by: described_by.as_deref(),
                    description: described_by.as_ref().map(|_| text.as_str()),
                };
                update(&mut transaction, file, state, recipe).await?;
            }
            Outcome::Failed { hash, stamp, error } => {
                let error = to_json(error);
                remove_passages(&mut transaction, file).await?;
                let state = State {
                    stamp: Some(*stamp),
                    hash: Some(hash),
                    state: "failed",
                    reason: Some(&error),
                    ..State::default()
                };
                update(&mut transaction, file, state, recipe).await?;
            }
            Outcome::Image { hash, stamp, error } => {
                let error = error.as_ref().map(to_json);
                remove_passages(&mut transaction, file).await?;
                let state = State {
                    stamp: Some(*stamp),
                    hash: Some(hash),
                    state: if error.is_some() { "failed" } else { "skipped" },
                    reason: error.as_deref().or(Some(SkipReason::Image.word())),
                    is_image: true,
                    ..State::default()
                };
                update(&mut transaction, file, state, recipe).await?;
            }
            Outcome::Skipped(SkipReason::Gone) => {
                sqlx::query("DELETE FROM files WHERE id = ?")
                    .bind(file)
                    .execute(&mut *transaction)
                    .await?;
            }
            // It is read once it rests; what was read before is found until then.
            Outcome::Skipped(SkipReason::Changing) => return Ok(true),
            Outcome::Skipped(reason) => {
                remove_passages(&mut transaction, file).await?;
                let state = State {
                    state: "skipped",
                    reason: Some(reason.word()),
                    ..State::default()
                };
                update(&mut transaction, file, state, recipe).await?;
            }
        }
        transaction.commit().await?;
        Ok(true)
    }
}

async fn remove_passages(db: &mut SqliteConnection, file: i64) -> Result<()> {
    sqlx::query("DELETE FROM passages WHERE file = ?")
        .bind(file)
        .execute(db)
        .await?;
    Ok(())
}

async fn insert(db: &mut SqliteConnection, file: i64, name: &str, text: &str, passage: &Passage) -> Result<()> {
    let headings = passage.heading_path();
    let part = &text[passage.bytes.clone()];
    let inserted = sqlx::query(
        "INSERT INTO passages (file, headings, text, page, first_line, last_line, start_byte, end_byte)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(file)
    .bind(&headings)
    .bind(part)
    .bind(passage.page.map(i64::from))
    .bind(i64::from(passage.lines.0))
    .bind(i64::from(passage.lines.1))
    .bind(signed(passage.bytes.start as u64))
    .bind(signed(passage.bytes.end as u64))
    .execute(&mut *db)
    .await?;
    let titles = format!("{name}{PATH_SIGN}{headings}");
    sqlx::query("INSERT INTO words (rowid, headings, text) VALUES (?, ?, ?)")
        .bind(inserted.last_insert_rowid())
        .bind(segmented(&titles).as_ref())
        .bind(segmented(part).as_ref())
        .execute(db)
        .await?;
    Ok(())
}

/// The columns of a file. Without a stamp it stays as it was found.
#[derive(Default)]
struct State<'a> {
    stamp: Option<Stamp>,
    hash: Option<&'a [u8; 32]>,
    state: &'static str,
    reason: Option<&'a str>,
    passages: u64,
    text_bytes: u64,
    is_image: bool,
    described_by: Option<&'a str>,
    description: Option<&'a str>,
}

async fn update(db: &mut SqliteConnection, file: i64, new: State<'_>, recipe: &str) -> Result<()> {
    sqlx::query(
        "UPDATE files SET size = coalesce(?, size), modified = coalesce(?, modified), hash = ?, recipe = ?, state = ?,
                reason = ?, passages = ?, text_bytes = ?, is_image = ?, described_by = ?, description = ?
          WHERE id = ?",
    )
    .bind(new.stamp.map(|stamp| signed(stamp.size)))
    .bind(new.stamp.map(|stamp| stamp.modified))
    .bind(new.hash.map(<[u8; 32]>::as_slice))
    .bind(recipe)
    .bind(new.state)
    .bind(new.reason)
    .bind(signed(new.passages))
    .bind(signed(new.text_bytes))
    .bind(new.is_image)
    .bind(new.described_by)
    .bind(new.description)
    .bind(file)
    .execute(db)
    .await?;
    Ok(())
}
