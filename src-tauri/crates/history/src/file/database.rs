//! Opening the file: folders, connections, migrations.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Sqlite, SqlitePool, Transaction};
use tokio::time::sleep;

use crate::file::privacy;
use crate::{Error, Result};

/// Every step from an empty file to the present tables by its number, to which it sets `user_version` at its end. A
/// released step never changes.
const MIGRATIONS: &[(i64, &str)] = &[
    (1, include_str!("../../migrations/0001_first.sql")),
    (2, include_str!("../../migrations/0002_thinking.sql")),
    (3, include_str!("../../migrations/0003_parts_and_settings.sql")),
    (4, include_str!("../../migrations/0004_errors.sql")),
    (5, include_str!("../../migrations/0005_attachments.sql")),
    (6, include_str!("../../migrations/0006_branches.sql")),
    (7, include_str!("../../migrations/0007_finding_and_keeping.sql")),
    (8, include_str!("../../migrations/0008_files.sql")),
    (9, include_str!("../../migrations/0009_two_answers.sql")),
    (10, include_str!("../../migrations/0010_folder_files.sql")),
    (11, include_str!("../../migrations/0011_image_codes.sql")),
    (12, include_str!("../../migrations/0012_projects_and_compaction.sql")),
];

/// Without these nothing can be read or written.
const TABLES: [&str; 8] = [
    "chats",
    "messages",
    "parts",
    "settings",
    "attachments",
    "projects",
    "project_files",
    "search_documents",
];

/// Lists the words of the full-text index; a connection has it for itself, the file knows nothing of it.
const SEARCH_WORDS: &str = "CREATE VIRTUAL TABLE temp.search_words USING fts5vocab('main', 'search_index', 'instance')";

/// The folder beside the file in which images lie.
const ATTACHMENTS: &str = "attachments";

/// A repaired file is called so until it takes the place of the damaged one.
pub(super) const REPAIR_DRAFT: &str = "history.repaired.sqlite";

/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The open history file. Clones share its connections.
#[derive(Debug, Clone)]
pub struct History {
    pub(crate) readers: SqlitePool,
    /// One connection: SQLite has one writer at a time, and a queue is fairer than its waiting.
    writer: SqlitePool,
    /// The file itself.
    pub(crate) path: PathBuf,
    /// The folder of the attachments.
    pub(crate) attachments: PathBuf,
    read_only: bool,
}

impl History {
    /// Opens the file, creates it and its folders if they are missing, and brings its tables up to date.
    pub async fn open(path: &Path) -> Result<Self> {
        finish_repair(path);
        let begun = Instant::now();
        loop {
            match Self::open_file(path).await {
                // SQLite does not wait while another process turns a new file into one with a write-ahead log.
                Err(Error::Locked) if begun.elapsed() < BUSY_TIMEOUT => sleep(Duration::from_millis(20)).await,
                opened => {
                    return opened.map_err(|source| Error::Open {
                        path: path.to_owned(),
                        source: Box::new(source),
                    })
                }
            }
        }
    }

    /// Opens a file that is of the present format for reading alone: everything that would be stored fails with
    /// [`Error::ReadOnly`].
    pub async fn open_read_only(path: &Path) -> Result<Self> {
        let history = Self {
            read_only: true,
            ..Self::open(path).await?
        };
        sqlx::query("PRAGMA query_only = on").execute(&history.writer).await?;
        Ok(history)
    }

    pub(crate) async fn open_file(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            privacy::make_folder(folder).map_err(Error::Folder)?;
        }
        privacy::make_file(path);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Stored data survives a power cut, too; an answer is stored a few times a second, so the wait for the disk
            // is never noticed.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            // On a full disk SQLite ends the transaction by itself, which sqlx does not notice: a connection that
            // believes to be in the middle of one is replaced.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect_lazy_with(options.clone());
        let readers = SqlitePoolOptions::new()
            .max_connections(4)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    // Of a damaged file the search does without.
                    if let Err(error) = sqlx::raw_sql(SEARCH_WORDS).execute(&mut *connection).await {
                        tracing::debug!(%error, "the words of the index cannot be listed");
                    }
                    sqlx::raw_sql("PRAGMA query_only = on")
                        .execute(connection)
                        .await
                        .map(drop)
                })
            })
            .connect_lazy_with(options);
        let history = Self {
            readers,
            writer,
            path: path.to_owned(),
            attachments: path.with_file_name(ATTACHMENTS),
            read_only: false,
        };
        history.migrate().await?;
        history.check_tables().await?;
        if let Some(folder) = path.parent() {
            history.adopt_folders_file(folder).await?;
        }
        Ok(history)
    }

    async fn migrate(&self) -> Result<()> {
        let known = MIGRATIONS.iter().map(|(version, _)| *version).max().unwrap_or_default();
        // The version is read under the write lock, so that of two processes only one makes the tables.
        let mut transaction = self.write().await?;
        let found: i64 = sqlx::query_scalar("PRAGMA user_version")
            .fetch_one(&mut *transaction)
            .await?;
        if found > known {
            return Err(Error::Newer { found, known });
        }
        for (_, step) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
            sqlx::raw_sql(*step).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// True if it was opened for reading alone.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails with [`Error::Damaged`] if a table is gone that the migrations made.
    async fn check_tables(&self) -> Result<()> {
        let here: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type = 'table'")
            .fetch_all(&self.readers)
            .await?;
        match TABLES.iter().find(|table| !here.iter().any(|name| name == *table)) {
            Some(table) => {
                tracing::warn!(table, "a table of the history is missing");
                Err(Error::Damaged)
            }
            None => Ok(()),
        }
    }

    /// A transaction that holds the write lock from its start. A lock taken later could fail instead of waiting.
    pub(crate) async fn write(&self) -> Result<Transaction<'static, Sqlite>> {
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// A number that changes whenever another process has written.
    pub async fn foreign_changes(&self) -> Result<i64> {
        // All writing of this process goes through the writer, and SQLite does not count a connection's own changes.
        Ok(sqlx::query_scalar("PRAGMA data_version")
            .fetch_one(&self.writer)
            .await?)
    }

    /// Writes the file anew without what was deleted, and empties the log beside it.
    pub(crate) async fn rewrite(&self) -> Result<()> {
        let mut writer = self.writer.acquire().await?;
        sqlx::raw_sql("VACUUM").execute(&mut *writer).await?;
        sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&mut *writer)
            .await?;
        Ok(())
    }

    /// The bytes of the file and of the log beside it.
    pub fn bytes(&self) -> u64 {
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        privacy::with_companions(&self.path)
            .iter()
            .map(|path| bytes(path))
            .sum()
    }

    /// Closes all connections; the file is whole without this, too.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Takes up a repair that was cut off after the damaged file was set aside.
fn finish_repair(path: &Path) {
    let draft = path.with_file_name(REPAIR_DRAFT);
    if !path.exists() && draft.exists() {
        if let Err(error) = std::fs::rename(&draft, path) {
            tracing::warn!(%error, "a repaired history could not be put in its place");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    #[tokio::test]
    async fn a_full_disk_is_reported_and_leaves_what_was_stored() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(&folder.path().join("history.sqlite")).await.unwrap();
        let store = |text: String| {
            let values = Map::from_iter([("default_model".to_owned(), Value::from(text))]);
            let history = history.clone();
            async move { history.store_settings(&values).await }
        };
        store("kept".into()).await.unwrap();
        // SQLite reports its own limit with the code of a full disk.
        sqlx::query("PRAGMA max_page_count = 40")
            .execute(&history.writer)
            .await
            .unwrap();
        let error = store("x".repeat(1_000_000)).await.unwrap_err();
        assert!(matches!(error, Error::DiskFull), "{error}");
        assert_eq!(history.settings().await.unwrap().default_model, "kept");
        store("still writable".into()).await.unwrap();
    }
}
