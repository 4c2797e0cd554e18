//! Opening the file: folders, connections, migrations.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use files::Durability;
use sqlite::{options_of, privacy, BUSY_TIMEOUT};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{AssertSqlSafe, Sqlite, SqlitePool, Transaction};
use tokio::time::sleep;

use crate::file::attachment_files::AttachmentFiles;
use crate::file::lock;
use crate::file::pages::{LogOwner, Pages};
use crate::sql::{change, Statement};
use crate::{stamp, Error, Result};

/// Every step from an empty file to the present tables by its number, to which it sets `user_version` at its end. A
/// released step never changes.
pub(crate) const MIGRATIONS: &[(i64, &str)] = &[
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
    (13, include_str!("../../migrations/0013_tool_calls.sql")),
    (14, include_str!("../../migrations/0014_collections.sql")),
    (15, include_str!("../../migrations/0015_notes.sql")),
];

/// Numbers beyond it are no version of this file, now or later.
const LAST_VERSION: i64 = 100_000;

/// The number of the last migration.
pub(crate) fn newest_version() -> i64 {
    MIGRATIONS.iter().map(|(version, _)| *version).max().unwrap_or_default()
}

/// Without these nothing can be read or written.
const TABLES: [&str; 9] = [
    "chats",
    "messages",
    "parts",
    "settings",
    "attachments",
    "projects",
    "project_files",
    "notes",
    "search_documents",
];

/// Lists the words of the full-text index; a connection has it for itself, the file knows nothing of it.
const SEARCH_WORDS: &str = "CREATE VIRTUAL TABLE temp.search_words USING fts5vocab('main', 'search_index', 'instance')";

/// The folder beside the file in which images lie.
const ATTACHMENTS: &str = "attachments";

/// A repaired file is called so until it takes the place of the damaged one.
pub(crate) const REPAIR_DRAFT: &str = "history.repaired.sqlite";

/// The open history file. Clones share its connections.
#[derive(Debug, Clone)]
pub struct History {
    pub(crate) readers: SqlitePool,
    /// One connection: SQLite has one writer at a time, and a queue is fairer than its waiting.
    pub(crate) writer: SqlitePool,
    /// The file itself; empty if everything is in memory.
    pub(crate) path: PathBuf,
    /// The images and texts of messages.
    pub(crate) attachments: AttachmentFiles,
    read_only: bool,
    /// Keeps a repair from moving the file; nobody if it is closed.
    lock: Arc<Mutex<Option<File>>>,
    /// True once more than the search index was found damaged.
    pub(crate) is_damaged: Arc<AtomicBool>,
}

impl History {
    /// Opens the file, creates it and its folders if they are missing, and brings its tables up to date.
    pub async fn open(path: &Path) -> Result<Self> {
        let begun = Instant::now();
        loop {
            match Self::open_locked(path).await {
                // A repair moves the file, which takes a moment. And SQLite does not wait while another process turns a
                // new file into one with a write-ahead log.
                Err(Error::Locked) if begun.elapsed() < BUSY_TIMEOUT => sleep(Duration::from_millis(20)).await,
                Ok(history) => return Ok(history),
                Err(source) => {
                    return Err(Error::Open {
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

    async fn open_locked(path: &Path) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("."));
        privacy::make_folder(folder).map_err(Error::Folder)?;
        let lock = lock::shared(path)?;
        finish_repair(path);
        let history = Self::open_file(path).await?;
        *history.lock.lock().unwrap_or_else(PoisonError::into_inner) = lock;
        history.adopt_folders_file(folder).await?;
        Ok(history)
    }

    /// Opens the file without the lock that keeps a repair from moving it.
    pub(crate) async fn open_file(path: &Path) -> Result<Self> {
        // SQLite would put the pages of the log into the file.
        let [_, log, _] = privacy::with_companions(path);
        let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
        if has_log && path.exists() && Pages::open(path)?.log_owner == LogOwner::Another {
            tracing::warn!("the log beside the history belongs to another file");
            return Err(Error::Damaged);
        }
        // Stored data survives a power cut, too; an answer is stored a few times a second, so the wait for the disk is
        // never noticed.
        let options = sqlite::private_file(path, Durability::PowerLoss);
        let writer = sqlite::writer(options.clone());
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
            attachments: AttachmentFiles::Folder(path.with_file_name(ATTACHMENTS)),
            read_only: false,
            lock: Arc::default(),
            is_damaged: Arc::default(),
        };
        history.migrate().await.map_err(Error::at_opening)?;
        history.check_tables().await.map_err(Error::at_opening)?;
        Ok(history)
    }

    /// An empty history that is never written: its rows and files lie in memory, and are gone with the last clone.
    pub async fn in_memory() -> Result<Self> {
        let options = options_of(Path::new(":memory:"))
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            // A large sort would go to a file.
            .pragma("temp_store", "memory");
        // The rows are those of one connection, which everything shares and which stays until the end.
        let connection = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_lazy_with(options);
        let history = Self {
            readers: connection.clone(),
            writer: connection,
            path: PathBuf::new(),
            attachments: AttachmentFiles::Memory(Arc::default()),
            read_only: false,
            lock: Arc::default(),
            is_damaged: Arc::default(),
        };
        history.migrate().await?;
        Ok(history)
    }

    async fn migrate(&self) -> Result<()> {
        let known = newest_version();
        // The version is read under the write lock, so that of two processes only one makes the tables.
        let mut transaction = self.write().await?;
        let found: i64 = the_value!(&mut *transaction, "PRAGMA user_version").await?;
        if !(0..LAST_VERSION).contains(&found) {
            tracing::warn!(found, "the version of the history is none");
            return Err(Error::Damaged);
        }
        if found > known {
            return Err(Error::Newer { found, known });
        }
        for (_, step) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
            sqlx::raw_sql(*step).execute(&mut *transaction).await?;
        }
        let id: i64 = the_value!(&mut *transaction, "PRAGMA application_id").await?;
        if id == 0 {
            // By which a log is known that belongs to another file.
            let sql = format!("PRAGMA application_id = {}", stamp::new_file_id());
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// True if it was opened for reading alone.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// True if nothing is written, and everything is gone with the last clone.
    pub fn is_in_memory(&self) -> bool {
        self.path.as_os_str().is_empty()
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the attachments, which exists once there is one.
    pub fn attachments_folder(&self) -> PathBuf {
        self.path.with_file_name(ATTACHMENTS)
    }

    /// Fails with [`Error::Damaged`] if a table is gone that the migrations made.
    async fn check_tables(&self) -> Result<()> {
        match sqlite::missing_table(&self.readers, &TABLES).await? {
            Some(table) => {
                tracing::warn!(table, "a table of the history is missing");
                Err(Error::Damaged)
            }
            None => Ok(()),
        }
    }

    /// A transaction that holds the write lock from its start. A lock taken later could fail instead of waiting.
    pub(crate) async fn write(&self) -> Result<Transaction<'static, Sqlite>> {
        Ok(sqlite::begin(&self.writer).await?)
    }

    /// Changes `what` in a transaction of its own; fails with [`Error::NotFound`] if there is no such row.
    pub(crate) async fn update(&self, what: &'static str, statement: Statement<'_>) -> Result<()> {
        let mut transaction = self.write().await?;
        change(&mut transaction, what, statement).await?;
        Ok(transaction.commit().await?)
    }

    /// A number that changes whenever another process has written.
    pub async fn foreign_changes(&self) -> Result<i64> {
        // All writing of this process goes through the writer, and SQLite does not count a connection's own changes.
        the_value!(&self.writer, "PRAGMA data_version").await
    }

    /// Writes the file anew without what was deleted, and empties the log beside it.
    pub(crate) async fn rewrite(&self) -> Result<()> {
        let mut writer = self.writer.acquire().await?;
        let sql = "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)";
        Ok(sqlx::raw_sql(sql).execute(&mut *writer).await.map(drop)?)
    }

    /// The bytes of the file and of the log beside it.
    pub fn bytes(&self) -> u64 {
        let bytes = |path: &PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        privacy::with_companions(&self.path).iter().map(bytes).sum()
    }

    /// Closes all connections; the file is whole without this, too.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
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
