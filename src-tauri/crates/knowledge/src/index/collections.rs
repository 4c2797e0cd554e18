//! Collections and what is known of their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteRow;
use sqlx::Row;
use uuid::Uuid;

use super::columns::{bytes_of, from_json, now, path_of, source_columns, source_of, to_json};
use super::database::Index;
use super::definition::Definition;
use crate::folder::{Rules, SkipReason, Source, Stamp};
use crate::reading::Described;
use crate::{Error, Result};

/// A collection of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// A UUIDv7.
    pub id: String,
    /// Its name for the user.
    pub name: String,
    /// The place of its files.
    pub source: Source,
    /// The files that count.
    pub rules: Rules,
    /// True if its files are not read until the person says so.
    pub is_paused: bool,
    /// When its folder was last looked through, in Unix milliseconds; none if it never was.
    pub synced_at: Option<i64>,
    /// How many files and folders were left out then.
    pub left_out: BTreeMap<SkipReason, u64>,
}

/// The content of the index: exact at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files whose text is in the index.
    pub read: u64,
    /// Files that wait to be read.
    pub waiting: u64,
    /// Files that cannot be read.
    pub failed: u64,
    /// Files that are left out, by nobody's choice.
    pub skipped: u64,
    /// Images that no model has read yet, also those that one failed at.
    pub images: u64,
    /// Passages.
    pub passages: u64,
    /// Bytes of the texts of the files that were read.
    pub text_bytes: u64,
}

/// The outcome of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// It is to be read.
    Waiting,
    /// Its text is in the index.
    Read {
        /// The number of its passages.
        passages: u64,
        /// The bytes of its text.
        text_bytes: u64,
    },
    /// It cannot be read. Says why.
    Failed(protocol::Error),
    /// It was left out. None: for a reason that only another version knows.
    Skipped(Option<SkipReason>),
}

/// A file of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its path below the folder, or its absolute path.
    pub path: PathBuf,
    /// Its state when it was read or left out.
    pub stamp: Stamp,
    /// Its outcome.
    pub state: FileState,
}

impl Index {
    /// Adds a collection; returns its id. Its files are found by [`Index::sync`].
    ///
    /// # Errors
    /// Those of writing the index.
    pub async fn add_collection(&self, name: &str, source: &Source, rules: &Rules) -> Result<String> {
        let id = Uuid::now_v7().to_string();
        self.add_collection_with_id(&id, name, source, rules).await?;
        Ok(id)
    }

    /// [`Index::add_collection`] with an id that is known before. One that is there stays as it is.
    ///
    /// # Errors
    /// Those of writing the index.
    pub async fn add_collection_with_id(&self, id: &str, name: &str, source: &Source, rules: &Rules) -> Result<()> {
        let (kind, paths) = source_columns(source);
        let definition = Definition {
            id: id.to_owned(),
            name: name.to_owned(),
            kind: kind.to_owned(),
            paths,
            rules: to_json(rules),
            created_at: now(),
            is_paused: false,
        };
        self.insert_collection(&definition).await
    }

    pub(super) async fn insert_collection(&self, new: &Definition) -> Result<()> {
        let mut transaction = self.write().await?;
        let sql = "INSERT INTO collections (id, name, kind, paths, rules, created_at, is_paused)
                   VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING";
        sqlx::query(sql)
            .bind(&new.id)
            .bind(&new.name)
            .bind(&new.kind)
            .bind(&new.paths)
            .bind(&new.rules)
            .bind(new.created_at)
            .bind(new.is_paused)
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    /// Forgets a collection with all that was read of it. Its files on the disk stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none with this id; those of writing the index.
    pub async fn remove_collection(&self, id: &str) -> Result<()> {
        let mut transaction = self.write().await?;
        let removed = sqlx::query("DELETE FROM collections WHERE id = ?")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        match removed.rows_affected() {
            0 => Err(Error::NotFound("collection")),
            _ => Ok(()),
        }
    }

    /// Changes the name of a collection, and whether its files are read.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none with this id; those of writing the index.
    pub async fn change_collection(&self, id: &str, name: &str, is_paused: bool) -> Result<()> {
        let mut transaction = self.write().await?;
        let changed = sqlx::query("UPDATE collections SET name = ?2, is_paused = ?3 WHERE id = ?1")
            .bind(id)
            .bind(name)
            .bind(is_paused)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        match changed.rows_affected() {
            0 => Err(Error::NotFound("collection")),
            _ => Ok(()),
        }
    }

    /// All collections, the oldest first.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn collections(&self) -> Result<Vec<Collection>> {
        let sql = "SELECT id, name, kind, paths, rules, is_paused, synced_at, left_out FROM collections
                    ORDER BY created_at, id";
        let rows = sqlx::query(sql).fetch_all(&self.readers).await?;
        let collection = |row: &SqliteRow| {
            Ok(Collection {
                id: row.try_get("id")?,
                name: row.try_get("name")?,
                source: source_of(row.try_get("kind")?, row.try_get("paths")?),
                rules: from_json(row.try_get("rules")?),
                is_paused: row.try_get("is_paused")?,
                synced_at: row.try_get("synced_at")?,
                left_out: from_json(row.try_get("left_out")?),
            })
        };
        rows.iter().map(collection).collect()
    }

    /// A collection.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none with this id; those of reading the index.
    pub async fn collection(&self, id: &str) -> Result<Collection> {
        let all = self.collections().await?;
        let found = all.into_iter().find(|collection| collection.id == id);
        found.ok_or(Error::NotFound("collection"))
    }

    /// Counts what is in a collection, or in all of them.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn counts(&self, collection: Option<&str>) -> Result<Counts> {
        let sql = "SELECT CASE WHEN is_image AND state <> 'read' THEN 'image' ELSE state END AS outcome, count(*),
                          sum(passages), sum(text_bytes)
                     FROM files WHERE ?1 IS NULL OR collection = ?1 GROUP BY outcome";
        let rows: Vec<(String, i64, i64, i64)> = sqlx::query_as(sql).bind(collection).fetch_all(&self.readers).await?;
        let mut counts = Counts::default();
        for (state, files, passages, bytes) in rows {
            let files = files.unsigned_abs();
            match state.as_str() {
                "read" => counts.read = files,
                "waiting" => counts.waiting = files,
                "failed" => counts.failed = files,
                "image" => counts.images = files,
                _ => counts.skipped = files,
            }
            counts.passages += passages.unsigned_abs();
            counts.text_bytes += bytes.unsigned_abs();
        }
        Ok(counts)
    }

    /// The images of a collection that no model has read yet, in the order of their paths.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn unread_images(&self, collection: &str) -> Result<Vec<PathBuf>> {
        let sql = "SELECT path FROM files WHERE collection = ? AND is_image AND state <> 'read' ORDER BY path";
        let rows: Vec<(Vec<u8>,)> = sqlx::query_as(sql).bind(collection).fetch_all(&self.readers).await?;
        Ok(rows.into_iter().map(|(path,)| path_of(path)).collect())
    }

    /// The text that a model wrote of an image; `None` if none did, or if there is no such file.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn described(&self, collection: &str, path: &Path) -> Result<Option<Described>> {
        let sql = "SELECT hash, described_by, description FROM files WHERE collection = ? AND path = ?";
        let row = sqlx::query(sql)
            .bind(collection)
            .bind(bytes_of(path))
            .fetch_optional(&self.readers)
            .await?;
        Ok(row.as_ref().map(described_of).transpose()?.flatten())
    }

    /// The files of a collection in the order of their paths.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn files(&self, collection: &str) -> Result<Vec<StoredFile>> {
        let sql = "SELECT path, size, modified, state, reason, passages, text_bytes FROM files
                    WHERE collection = ? ORDER BY path";
        let rows = sqlx::query(sql).bind(collection).fetch_all(&self.readers).await?;
        rows.iter().map(|row| Ok(stored_file(row)?)).collect()
    }
}

fn stored_file(row: &SqliteRow) -> sqlx::Result<StoredFile> {
    let number = |name: &str| row.try_get::<i64, _>(name).map(i64::unsigned_abs);
    let reason: Option<String> = row.try_get("reason")?;
    Ok(StoredFile {
        path: path_of(row.try_get("path")?),
        stamp: Stamp {
            size: number("size")?,
            modified: row.try_get("modified")?,
        },
        state: match row.try_get("state")? {
            "read" => FileState::Read {
                passages: number("passages")?,
                text_bytes: number("text_bytes")?,
            },
            "waiting" => FileState::Waiting,
            "failed" => FileState::Failed(failure(reason.unwrap_or_default())),
            _ => FileState::Skipped(reason.and_then(|word| serde_json::from_value(word.into()).ok())),
        },
    })
}

/// The text that a model wrote of the image in a row.
pub(super) fn described_of(row: &SqliteRow) -> sqlx::Result<Option<Described>> {
    let hash: Option<Vec<u8>> = row.try_get("hash")?;
    let hash = hash.and_then(|hash| hash.try_into().ok());
    let (model, text) = (row.try_get("described_by")?, row.try_get("description")?);
    Ok(match (hash, model, text) {
        (Some(hash), Some(model), Some(text)) => Some(Described { hash, model, text }),
        _ => None,
    })
}

/// Why a file cannot be read. Earlier versions stored a sentence.
fn failure(stored: String) -> protocol::Error {
    let error = serde_json::from_str(&stored);
    error.unwrap_or_else(|_| protocol::Error::new(protocol::ErrorCode::FileBroken, stored))
}
