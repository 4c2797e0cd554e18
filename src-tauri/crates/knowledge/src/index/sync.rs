//! Comparing a folder with the index.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::collections::described_of;
use super::columns::{bytes_of, hex, now, path_of, signed, to_json};
use super::database::Index;
use crate::folder::{FoundFile, SkipReason, Stamp, Walk};
use crate::reading::Described;
use crate::{Error, Result};

/// The rows that one statement writes.
const ROWS: usize = 2000;

/// A file that is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileToRead {
    /// The file.
    pub file: FoundFile,
    /// The hash of the bytes that its passages are of, if those would be made in the same way: the same bytes need not
    /// be read again.
    pub known: Option<[u8; 32]>,
    /// The text that a model wrote of it, if it is an image.
    pub described: Option<Described>,
}

/// The outcome of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The files that are new, have changed, or whose passages were made in another way; in the order of their paths.
    pub read: Vec<FileToRead>,
    /// How many files are as they were.
    pub kept: u64,
    /// The files that are not there any more, which the index has forgotten.
    pub forgotten: Vec<PathBuf>,
    /// How many files and folders are left out by nobody's choice.
    pub skipped: u64,
}

/// The row of a file.
struct Stored {
    path: Vec<u8>,
    stamp: Stamp,
    hash: Option<Vec<u8>>,
    recipe: Option<String>,
    state: String,
    is_image: bool,
    described: Option<Described>,
}

impl Stored {
    /// True if its bytes were looked at.
    fn is_done(&self) -> bool {
        self.state == "read" || self.state == "failed" || self.is_image
    }
}

/// A row that is to be written.
type NewState<'a> = (&'a [u8], Stamp, &'static str, Option<&'static str>);

impl Index {
    /// Forgets what was read of all files; collections stay.
    ///
    /// # Errors
    /// Those of writing the index.
    pub async fn forget_all_files(&self) -> Result<()> {
        let mut transaction = self.write().await?;
        sqlx::query("DELETE FROM files").execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Brings the list of files up to what was found in the folder: forgets those that are gone with their passages,
    /// notes those that are left out, and tells which ones are to be read. Files of folders that could not be listed stay
    /// as they are. `recipe` names how passages are made; files that were read by another one are read again.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the collection is gone; those of writing the index, which is as it was then.
    pub async fn sync(&self, collection: &str, walk: &Walk, recipe: &str) -> Result<Changes> {
        let mut transaction = self.write().await?;
        let mut stored = stored(&mut transaction, collection).await?;
        let mut changes = Changes::default();
        let mut states: Vec<NewState<'_>> = Vec::new();
        for file in &walk.files {
            let path = bytes_of(&file.path);
            let row = stored.remove(path);
            let is_same = |row: &Stored| {
                row.is_done()
                    && row.recipe.as_deref() == Some(recipe)
                    && row.stamp == file.stamp
                    && file.stamp.modified != 0
            };
            if row.as_ref().is_some_and(is_same) {
                changes.kept += 1;
                continue;
            }
            let known = row.as_ref().filter(|row| row.recipe.as_deref() == Some(recipe));
            let known = known
                .and_then(|row| row.hash.as_deref())
                .and_then(|hash| hash.try_into().ok());
            // The text that was read of it before is found until the new text is there.
            if row.as_ref().is_none_or(|row| row.state == "skipped" && !row.is_image) {
                states.push((path, file.stamp, "waiting", None));
            }
            changes.read.push(FileToRead {
                file: file.clone(),
                known,
                described: row.and_then(|row| row.described),
            });
        }
        let unlisted = |path: &std::path::Path| walk.unlisted.iter().any(|folder| path.starts_with(folder));
        for file in &walk.skipped {
            let path = bytes_of(&file.path);
            let row = stored.remove(path);
            changes.skipped += 1;
            if !(row.is_some_and(|row| row.is_done()) && file.reason == SkipReason::Unreadable) {
                states.push((path, file.stamp, "skipped", Some(file.reason.word())));
            }
        }
        let gone = stored.into_values().map(|row| path_of(row.path));
        changes.forgotten = gone.filter(|path| !unlisted(path)).collect();
        changes.forgotten.sort();
        forget(&mut transaction, collection, &changes.forgotten).await?;
        for rows in states.chunks(ROWS) {
            note(&mut transaction, collection, rows).await?;
        }
        sqlx::query("UPDATE collections SET synced_at = ?, left_out = ? WHERE id = ?")
            .bind(now())
            .bind(to_json(&walk.left_out))
            .bind(collection)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(changes)
    }
}

/// The rows of a collection by path.
async fn stored(db: &mut SqliteConnection, collection: &str) -> Result<HashMap<Vec<u8>, Stored>> {
    let sql = "SELECT count(*) FROM collections WHERE id = ?";
    let (here,): (i64,) = sqlx::query_as(sql).bind(collection).fetch_one(&mut *db).await?;
    if here == 0 {
        return Err(Error::NotFound("collection"));
    }
    let sql = "SELECT path, size, modified, hash, recipe, state, is_image, described_by, description FROM files
                WHERE collection = ?";
    let rows = sqlx::query(sql).bind(collection).fetch_all(db).await?;
    let row = |row: &SqliteRow| {
        let path: Vec<u8> = row.try_get("path")?;
        let stored = Stored {
            path: path.clone(),
            stamp: Stamp {
                size: row.try_get::<i64, _>("size")?.unsigned_abs(),
                modified: row.try_get("modified")?,
            },
            hash: row.try_get("hash")?,
            recipe: row.try_get("recipe")?,
            state: row.try_get("state")?,
            is_image: row.try_get("is_image")?,
            described: described_of(row)?,
        };
        Ok((path, stored))
    };
    rows.iter().map(row).collect()
}

async fn forget(db: &mut SqliteConnection, collection: &str, paths: &[PathBuf]) -> Result<()> {
    for paths in paths.chunks(ROWS) {
        let paths: Vec<String> = paths.iter().map(|path| hex(bytes_of(path))).collect();
        sqlx::query("DELETE FROM files WHERE collection = ? AND path IN (SELECT unhex(value) FROM json_each(?))")
            .bind(collection)
            .bind(to_json(&paths))
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

/// Writes states of files that have no passages, and takes away those that they had.
async fn note(db: &mut SqliteConnection, collection: &str, rows: &[NewState<'_>]) -> Result<()> {
    let row = |(path, stamp, state, reason): &NewState<'_>| {
        json!([hex(path), signed(stamp.size), stamp.modified, state, reason])
    };
    let rows: Vec<serde_json::Value> = rows.iter().map(row).collect();
    let rows = to_json(&rows);
    sqlx::query(
        "DELETE FROM passages WHERE file IN (
             SELECT files.id FROM json_each(?2) CROSS JOIN files
              WHERE files.collection = ?1 AND files.path = unhex(value ->> 0))",
    )
    .bind(collection)
    .bind(&rows)
    .execute(&mut *db)
    .await?;
    sqlx::query(
        "INSERT INTO files (collection, path, size, modified, state, reason)
         SELECT ?1, unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?2) WHERE true
         ON CONFLICT (collection, path) DO UPDATE SET
             size = excluded.size, modified = excluded.modified, state = excluded.state, reason = excluded.reason,
             hash = NULL, recipe = NULL, passages = 0, text_bytes = 0, is_image = 0, described_by = NULL,
             description = NULL",
    )
    .bind(collection)
    .bind(&rows)
    .execute(db)
    .await?;
    Ok(())
}
