//! Opening the file: folders, connections, migrations.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Sqlite, SqlitePool, Transaction};
use tokio::time::sleep;

use crate::{privacy, Error, Result};

/// Every step from an empty file to the present tables; each ends by setting `user_version` to its number. A released step
/// never changes.
const MIGRATIONS: [&str; 5] = [
    include_str!("../migrations/0001_first.sql"),
    include_str!("../migrations/0002_thinking.sql"),
    include_str!("../migrations/0003_parts_and_settings.sql"),
    include_str!("../migrations/0004_errors.sql"),
    include_str!("../migrations/0005_attachments.sql"),
];

/// The folder beside the file in which pictures lie.
const ATTACHMENTS: &str = "attachments";

/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The open history file. Clones share its connections.
#[derive(Debug, Clone)]
pub struct History {
    pub(crate) readers: SqlitePool,
    /// One connection: SQLite has one writer at a time, and a queue is fairer than its waiting.
    writer: SqlitePool,
    /// Where pictures lie.
    pub(crate) attachments: PathBuf,
}

impl History {
    /// Opens the file, creates it and its folders if they are missing, and brings its tables up to date.
    pub async fn open(path: &Path) -> Result<Self> {
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

    async fn open_file(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            privacy::make_folder(folder).map_err(Error::Folder)?;
        }
        privacy::make_file(path);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was stored survives a power cut, too; an answer is stored a few times a second, so the wait for the disk is
            // never noticed.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            // On a full disk SQLite ends the transaction by itself, which sqlx does not notice: a connection that believes to
            // be in the middle of one is replaced.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect_lazy_with(options.clone());
        let readers = SqlitePoolOptions::new()
            .max_connections(4)
            .connect_lazy_with(options.pragma("query_only", "on"));
        let history = Self {
            readers,
            writer,
            attachments: path.with_file_name(ATTACHMENTS),
        };
        history.migrate().await?;
        if let Some(folder) = path.parent() {
            history.adopt_folders_file(folder).await?;
        }
        Ok(history)
    }

    async fn migrate(&self) -> Result<()> {
        let known = MIGRATIONS.len() as i64;
        // The version is read under the write lock, so that of two processes only one makes the tables.
        let mut transaction = self.write().await?;
        let found: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await?;
        if found > known {
            return Err(Error::Newer { found, known });
        }
        for step in MIGRATIONS.iter().skip(found as usize) {
            sqlx::raw_sql(*step).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// A transaction that holds the write lock from its start. A lock taken later could fail instead of waiting.
    pub(crate) async fn write(&self) -> Result<Transaction<'static, Sqlite>> {
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// A number that changes whenever another process has written.
    pub async fn foreign_changes(&self) -> Result<i64> {
        // All writing of this process goes through the writer, and SQLite does not count a connection's own changes.
        Ok(sqlx::query_scalar("PRAGMA data_version").fetch_one(&self.writer).await?)
    }

    /// Closes all connections; the file is whole without this, too.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
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
        sqlx::query("PRAGMA max_page_count = 40").execute(&history.writer).await.unwrap();
        let error = store("x".repeat(1_000_000)).await.unwrap_err();
        assert!(matches!(error, Error::DiskFull), "{error}");
        assert_eq!(history.settings().await.unwrap().default_model, "kept");
        store("still writable".into()).await.unwrap();
    }
}
