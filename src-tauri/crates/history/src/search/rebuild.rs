//! A damaged index is made anew from the texts, which it only repeats: it is never a reason to fail.

use std::sync::atomic::Ordering;

use sqlite::{options_of, BUSY_TIMEOUT};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};

use crate::{Checked, History, Result};

/// The statements that make the index, from which they are read before it is taken away.
const MADE_BY: &str =
    "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'search\\_index\\_%' ESCAPE '\\'
       AND (name = 'search_index' OR tbl_name = 'search_documents')
     ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 ELSE 2 END, name";

/// Takes away the index without reading its pages.
const TAKE_AWAY: &str = "
    PRAGMA writable_schema = on;
    DELETE FROM sqlite_schema WHERE name = 'search_index' OR tbl_name = 'search_documents'
        OR tbl_name LIKE 'search\\_index\\_%' ESCAPE '\\';
    PRAGMA writable_schema = reset;";

/// A document for each title and message, in the order of time as their numbers say.
const FILL: &str = "
    INSERT INTO search_documents (id, chat_id, message_id)
    SELECT at * 1048576 + row_number() OVER (PARTITION BY at ORDER BY message_id) - 1, chat_id, message_id
      FROM (SELECT max(0, min(created_at, 8000000000000)) AS at, id AS chat_id, NULL AS message_id FROM chats
            UNION ALL
            SELECT max(0, min(created_at, 8000000000000)), chat_id, id FROM messages)";

impl History {
    /// Checks the file, and makes the index anew if it is all that is damaged. Once there was other damage, the file
    /// counts as damaged until it is opened again, because a check reads all of it.
    ///
    /// # Errors
    /// Those of reading and writing the file.
    pub async fn mend_index(&self) -> Result<Checked> {
        if self.is_damaged.load(Ordering::Relaxed) {
            return Ok(Checked::Damaged);
        }
        // Connections of their own: one that used the index writes to it in every transaction.
        let options = options_of(&self.path).busy_timeout(BUSY_TIMEOUT);
        let mut file = options.connect().await?;
        let found = damage(&mut file).await;
        file.close().await?;
        let is_index = match found? {
            Damage::Nowhere => return Ok(Checked::Sound),
            Damage::Index => !self.is_read_only(),
            Damage::Elsewhere => false,
        };
        if !is_index {
            self.is_damaged.store(true, Ordering::Relaxed);
            return Ok(Checked::Damaged);
        }
        let mut file = options.connect().await?;
        let mut transaction = file.begin_with("BEGIN IMMEDIATE").await?;
        let made_by: Vec<String> = values!(&mut *transaction, MADE_BY).await?;
        sqlx::raw_sql(TAKE_AWAY).execute(&mut *transaction).await?;
        for sql in made_by {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
        }
        sqlx::raw_sql(FILL).execute(&mut *transaction).await?;
        transaction.commit().await?;
        file.close().await?;
        // Its old pages belong to nothing now.
        if let Err(error) = self.rewrite().await {
            tracing::warn!(%error, "the pages of the damaged search index were not freed");
        }
        tracing::warn!("the damaged search index was made anew");
        Ok(Checked::Mended)
    }

    /// True if damage that was met was of the index alone, which is whole now.
    pub(crate) async fn is_readable_again(&self) -> bool {
        let checked = self.mend_index().await;
        let checked = checked.inspect_err(|error| tracing::warn!(%error, "the search index could not be made anew"));
        checked.is_ok_and(|checked| checked != Checked::Damaged)
    }
}

/// The place of damage in a file.
enum Damage {
    Nowhere,
    Index,
    Elsewhere,
}

async fn damage(file: &mut SqliteConnection) -> Result<Damage> {
    // A damaged index may end the check of the whole file with an error.
    let whole: Result<Option<String>> = value!(&mut *file, "PRAGMA integrity_check(1)").await;
    if matches!(whole.as_ref().map(Option::as_deref), Ok(Some("ok"))) {
        return Ok(Damage::Nowhere);
    }
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'search\\_%' ESCAPE '\\'";
    let tables: Vec<String> = match values!(&mut *file, sql).await {
        Err(error) if error.is_damage() => return Ok(Damage::Elsewhere),
        tables => tables?,
    };
    for table in tables {
        let sql = AssertSqlSafe(format!("PRAGMA integrity_check(\"{table}\")"));
        let found: Result<Vec<String>> = values!(&mut *file, sql).await;
        match found {
            Err(error) if !error.is_damage() => return Err(error),
            Ok(found) if found == ["ok"] => {}
            found => {
                tracing::warn!(table, ?found, "more than the search index is damaged");
                return Ok(Damage::Elsewhere);
            }
        }
    }
    Ok(Damage::Index)
}
