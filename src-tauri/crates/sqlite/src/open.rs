//! Connections: private files with a log in front of them, one writer for each.

use std::path::Path;
use std::time::Duration;

use files::Durability;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Sqlite, SqliteExecutor, SqlitePool, Transaction};

use crate::privacy;
use crate::Result;

/// How long a statement waits for another process.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How every connection to a file is opened: nothing of a text is logged.
pub fn options_of(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).disable_statement_logging()
}

/// Makes the file if it is missing, for its owner alone, and gives the options of its connections: a write-ahead log,
/// by which nobody who reads waits, and rows that refer to each other. Its folder must be there.
pub fn private_file(path: &Path, durability: Durability) -> SqliteConnectOptions {
    privacy::make_file(path);
    options_of(path)
        .create_if_missing(true)
        .foreign_keys(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(match durability {
            Durability::PowerLoss => SqliteSynchronous::Full,
            // A power cut may take the last transactions, and never a part of one.
            Durability::ProcessCrash => SqliteSynchronous::Normal,
        })
        .busy_timeout(BUSY_TIMEOUT)
}

/// The one connection that writes: SQLite has one writer at a time, and a queue is fairer than its waiting.
pub fn writer(options: SqliteConnectOptions) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        // On a full disk SQLite ends the transaction by itself, which sqlx does not notice: a connection that believes
        // to be in the middle of one is replaced.
        .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
        .connect_lazy_with(options)
}

/// A transaction that holds the write lock from its start. A lock taken later could fail instead of waiting.
///
/// # Errors
/// [`crate::Error::Locked`] if another process holds the lock for longer than [`BUSY_TIMEOUT`]; others of SQLite.
pub async fn begin(writer: &SqlitePool) -> Result<Transaction<'static, Sqlite>> {
    Ok(writer.begin_with("BEGIN IMMEDIATE").await?)
}

/// The first of these tables that a file lacks: without all of them it is damaged.
///
/// # Errors
/// Those of reading the file.
pub async fn missing_table<'a>(file: impl SqliteExecutor<'_>, tables: &[&'a str]) -> Result<Option<&'a str>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    let here: Vec<(String,)> = sqlx::query_as(sql).fetch_all(file).await?;
    let is_missing = |table: &&&str| !here.iter().any(|(name,)| name == **table);
    Ok(tables.iter().find(is_missing).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_and_its_companions_are_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sqlite");
        let writer = writer(private_file(&path, Durability::ProcessCrash));
        let mut transaction = begin(&writer).await.unwrap();
        sqlx::query("CREATE TABLE a (b)")
            .execute(&mut *transaction)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        for file in privacy::with_companions(&path) {
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.display());
        }
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sqlite");
        std::fs::write(&path, "no database ".repeat(1000)).unwrap();
        let error = begin(&writer(private_file(&path, Durability::PowerLoss)))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Damaged), "{error}");
    }
}
