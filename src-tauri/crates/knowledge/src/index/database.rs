//! Opening the file of the index, and making it anew.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use files::Durability;
use sqlite::{privacy, BUSY_TIMEOUT};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{ConnectOptions, Connection, Sqlite, SqlitePool, Transaction};

use super::definition::Definition;
use crate::{Error, Result};

/// The version of the tables.
const VERSION: i64 = 2;
const SCHEMA: &str = include_str!("schema.sql");
/// From the first version to the second.
const IMAGES: &str = include_str!("images.sql");
/// Without these nothing can be read or written.
const TABLES: [&str; 6] = ["collections", "files", "generation", "passages", "vectors", "words"];

/// The open index. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Index {
    pub(super) readers: SqlitePool,
    /// The one connection that writes.
    writer: SqlitePool,
    path: PathBuf,
}

impl Index {
    /// Opens the file, and makes it and its folder if they are missing.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::Newer`], after which [`Index::rebuild`] helps; others of the file system.
    pub async fn open(path: &Path) -> Result<Self> {
        let begun = Instant::now();
        loop {
            match Self::open_file(path).await {
                // SQLite does not wait while another process turns a new file into one with a write-ahead log.
                Err(Error::Locked) if begun.elapsed() < BUSY_TIMEOUT => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                opened => return opened,
            }
        }
    }

    /// Puts an empty index in the place of the file, whatever is in it, with the collections that can still be read of
    /// it. All documents are to be read again. Nobody may have the file open, also no other process.
    ///
    /// # Errors
    /// Those of the file system.
    pub async fn rebuild(path: &Path) -> Result<Self> {
        let found = Self::definitions_in(path).await;
        let definitions = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "the collections of a damaged index cannot be read");
            Vec::new()
        });
        for file in privacy::with_companions(path) {
            files::found(std::fs::remove_file(file)).map_err(Error::File)?;
        }
        let index = Self::open(path).await?;
        for definition in &definitions {
            index.insert_collection(definition).await?;
        }
        Ok(index)
    }

    async fn definitions_in(path: &Path) -> Result<Vec<Definition>> {
        if !path.exists() {
            return Ok(Vec::new());
        }
        let mut file = sqlite::options_of(path).read_only(true).connect().await?;
        let found = Definition::all(&mut file).await;
        file.close().await?;
        found
    }

    async fn open_file(path: &Path) -> Result<Self> {
        privacy::make_folder(path.parent().unwrap_or(Path::new("."))).map_err(Error::File)?;
        // The loss of a power cut is read once more from the documents.
        let options = sqlite::private_file(path, Durability::ProcessCrash);
        let index = Self {
            writer: sqlite::writer(options.clone()),
            readers: SqlitePoolOptions::new()
                .max_connections(4)
                .connect_lazy_with(options.pragma("query_only", "on")),
            path: path.to_owned(),
        };
        let Err(error) = index.make_tables().await else {
            return Ok(index);
        };
        // A connection that closes later would take away the log of a file that was put in its place.
        index.close().await;
        match error {
            Error::Database(error) => Err(sqlite::Error::from(error).at_opening().into()),
            error => Err(error),
        }
    }

    async fn make_tables(&self) -> Result<()> {
        // The version is read under the write lock, so that of two processes only one makes the tables.
        let mut transaction = sqlite::begin(&self.writer).await?;
        let (found,): (i64,) = sqlx::query_as("PRAGMA user_version")
            .fetch_one(&mut *transaction)
            .await?;
        match found {
            0 => {
                sqlx::raw_sql(SCHEMA).execute(&mut *transaction).await?;
                sqlx::raw_sql(IMAGES).execute(&mut *transaction).await?;
            }
            1 => {
                sqlx::raw_sql(IMAGES).execute(&mut *transaction).await?;
            }
            VERSION => {}
            found => return Err(Error::Newer { found, known: VERSION }),
        }
        let missing = sqlite::missing_table(&mut *transaction, &TABLES).await?;
        transaction.commit().await?;
        match missing {
            Some(table) => {
                tracing::warn!(table, "a table of the index is missing");
                Err(Error::Damaged)
            }
            None => Ok(()),
        }
    }

    /// Lets the file grow to so many pages, as on a full disk: SQLite tells both alike.
    #[cfg(test)]
    pub async fn limit_pages(&self, pages: u32) {
        let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        sqlx::query(limit).execute(&self.writer).await.unwrap();
    }

    /// A transaction that holds the write lock from its start.
    pub(super) async fn write(&self) -> Result<Transaction<'static, Sqlite>> {
        let mut transaction = sqlite::begin(&self.writer).await?;
        sqlx::query("UPDATE generation SET number = number + 1")
            .execute(&mut *transaction)
            .await?;
        Ok(transaction)
    }

    /// A number that is another one after everything that writes, whichever process does.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn generation(&self) -> Result<i64> {
        let (number,) = sqlx::query_as("SELECT coalesce(max(number), 0) FROM generation")
            .fetch_one(&self.readers)
            .await?;
        Ok(number)
    }

    /// Reads all of the file and of its word index.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a part of it is destroyed.
    pub async fn check(&self) -> Result<()> {
        // A connection of its own: one that has used the word index takes it for what it was then, and finds damage where
        // another process has written.
        let options = sqlite::options_of(&self.path).busy_timeout(BUSY_TIMEOUT);
        let mut file = options.connect().await?;
        let found = sqlx::query_as("PRAGMA integrity_check(1)").fetch_one(&mut file).await;
        file.close().await?;
        let (found,): (String,) = found?;
        match found.as_str() {
            "ok" => Ok(()),
            problem => {
                tracing::warn!(problem, "the index is damaged");
                Err(Error::Damaged)
            }
        }
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
    }
}
