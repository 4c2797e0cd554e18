//! A history file that is damaged is set aside as it is, and a new one takes its place that holds every row that can
//! still be read, and what only the newest sound backup has.

use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use crate::file::backup::{backups, check, remove};
use crate::file::database::REPAIR_DRAFT;
use crate::file::privacy;
use crate::{now, Error, History, Result};

/// A copy for looking at alone.
const READABLE: &str = "history-readable.sqlite";
/// A file that says that the history has to be looked through.
const SUSPECT: &str = "history.suspect";
/// The rows that are copied at once; those of a step that fails are copied one by one.
const STEP: i64 = 512;
/// No row takes fewer bytes of the file, so that there are no more numbers of rows than its length in these.
const LEAST_ROW: i64 = 16;

/// The outcome of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The path of the damaged file.
    pub set_aside: PathBuf,
    /// How many chats the new file holds.
    pub chats: u64,
    /// How many messages it holds.
    pub messages: u64,
    /// True if rows were taken from a backup.
    pub from_backup: bool,
}

/// Puts a new file with all that can be read in the place of a damaged one, which is kept beside it.
///
/// # Errors [`Error::Damaged`] if nothing at all can be read, in the file or a backup, [`Error::DiskFull`] and others
/// from the disk. The damaged file lies where it was then.
pub async fn repair(path: &Path) -> Result<Repaired> {
    let draft = path.with_file_name(REPAIR_DRAFT);
    remove(&draft);
    let rebuilt = rebuild(path, &draft).await;
    let (chats, messages, from_backup) = match rebuilt {
        Ok(counts @ (1.., _, _)) => counts,
        outcome => {
            remove(&draft);
            return Err(outcome.err().unwrap_or(Error::Damaged));
        }
    };
    let set_aside = set_aside(path)?;
    std::fs::rename(&draft, path).map_err(Error::from_file)?;
    Ok(Repaired {
        set_aside,
        chats,
        messages,
        from_backup,
    })
}

/// Writes all that can be read of a history file, whatever is wrong with it, to a copy beside it, for looking at it
/// with [`History::open_read_only`]. The file stays as it is. Returns the copy.
///
/// # Errors
/// As [`repair`].
pub async fn readable_copy(path: &Path) -> Result<PathBuf> {
    let copy = path.with_file_name(READABLE);
    remove(&copy);
    match rebuild(path, &copy).await {
        Ok((1.., _, _)) => Ok(copy),
        outcome => {
            remove(&copy);
            Err(outcome.err().unwrap_or(Error::Damaged))
        }
    }
}

/// Makes sure that a history file is looked through when it is opened next, because something in it could not be read.
pub fn suspect(path: &Path) {
    if let Err(error) = std::fs::write(path.with_file_name(SUSPECT), "") {
        tracing::warn!(%error, "that the history is damaged could not be noted");
    }
}

/// Repairs a history file if that was asked for with [`suspect`] and is needed.
///
/// # Errors
/// As [`repair`].
pub async fn repair_if_suspect(path: &Path) -> Result<Option<Repaired>> {
    let mark = path.with_file_name(SUSPECT);
    if !mark.exists() || !path.exists() {
        return Ok(None);
    }
    let repaired = match check(path).await {
        Ok(()) => None,
        Err(Error::Damaged) => Some(repair(path).await?),
        Err(error) => return Err(error),
    };
    if let Err(error) = std::fs::remove_file(mark) {
        tracing::warn!(%error, "the history will be looked through again at the next start");
    }
    Ok(repaired)
}

/// Moves a history file out of the way, with what SQLite keeps beside it, so that the next start begins with an empty
/// one. Returns where it lies now; images and backups stay.
///
/// # Errors
/// [`Error::File`] if it cannot be moved.
pub fn set_aside(path: &Path) -> Result<PathBuf> {
    let aside = path.with_file_name(format!("history-damaged-{}.sqlite", now()));
    // The file goes last: without its log it would be an older state of it.
    let moves = privacy::with_companions(path)
        .into_iter()
        .zip(privacy::with_companions(&aside));
    for (from, to) in moves.rev() {
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::from_file(error)),
            _ => {}
        }
    }
    Ok(aside)
}

/// Writes what can be read to a new file; returns how many chats and messages that is, and whether a backup had more.
async fn rebuild(path: &Path, draft: &Path) -> Result<(u64, u64, bool)> {
    let fresh = History::open_file(draft).await?;
    fresh.close().await;
    let mut file = SqliteConnectOptions::new()
        .filename(draft)
        .foreign_keys(false)
        .disable_statement_logging()
        .connect()
        .await?;
    let mut bytes = 0;
    if attach(&mut file, path).await.is_ok() {
        bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len() as i64);
        copy_tables(&mut file, bytes).await?;
        detach(&mut file).await?;
    }
    let own = messages(&mut file).await?;
    for backup in backups(path) {
        if check(&backup.path).await.is_err() || attach(&mut file, &backup.path).await.is_err() {
            continue;
        }
        copy_tables(&mut file, backup.bytes as i64).await?;
        detach(&mut file).await?;
        break;
    }
    let all = messages(&mut file).await?;
    sqlx::raw_sql(MEND).execute(&mut file).await?;
    let chats: i64 = sqlx::query_scalar("SELECT count(*) FROM chats")
        .fetch_one(&mut file)
        .await?;
    let messages = messages(&mut file).await?;
    sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut file)
        .await?;
    file.close().await?;
    check(draft).await?;
    tracing::warn!(bytes, own, all, chats, "a damaged history was rebuilt");
    Ok((chats.unsigned_abs(), messages, all > own))
}

async fn messages(file: &mut SqliteConnection) -> Result<u64> {
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM messages")
        .fetch_one(file)
        .await?;
    Ok(count.unsigned_abs())
}

async fn attach(file: &mut SqliteConnection, path: &Path) -> Result<()> {
    sqlx::query("ATTACH ? AS old")
        .bind(path.to_string_lossy())
        .execute(&mut *file)
        .await?;
    let readable: sqlx::Result<i64> = sqlx::query_scalar("SELECT count(*) FROM old.sqlite_schema")
        .fetch_one(&mut *file)
        .await;
    if let Err(error) = readable {
        detach(file).await?;
        return Err(error.into());
    }
    Ok(())
}

async fn detach(file: &mut SqliteConnection) -> Result<()> {
    sqlx::query("DETACH old").execute(file).await?;
    Ok(())
}

/// Tables and columns that had another name in files of earlier versions, which a damaged file and backups may be.
const FORMER_NAMES: [(&str, &str); 4] = [
    ("projects", "folders"),
    ("project_files", "folder_files"),
    ("project_id", "folder_id"),
    ("compaction_mark", "memory_cut"),
];

/// The name in files of earlier versions.
fn former_name(name: &str) -> &str {
    let former = FORMER_NAMES.iter().find(|(present, _)| *present == name);
    former.map_or(name, |(_, former)| former)
}

/// Copies every row that can be read and is not there yet.
async fn copy_tables(file: &mut SqliteConnection, bytes: i64) -> Result<()> {
    // The index is made anew from the texts.
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'search\\_%' ESCAPE '\\'
          ORDER BY name IN ('chats', 'messages') DESC, name",
    )
    .fetch_all(&mut *file)
    .await?;
    for table in tables {
        let mut old_table = table.as_str();
        let mut old_columns = columns_of(file, "old", old_table).await;
        if old_columns.is_empty() {
            old_table = former_name(&table);
            old_columns = columns_of(file, "old", old_table).await;
        }
        // Each column with its name in the old file.
        let columns: Vec<(String, String)> = columns_of(file, "main", &table)
            .await
            .into_iter()
            .filter_map(|name| {
                let known = |wanted: &str| old_columns.iter().find(|old| *old == wanted).cloned();
                let old = known(&name).or_else(|| known(former_name(&name)))?;
                Some((name, old))
            })
            .collect();
        if columns.is_empty() {
            tracing::warn!(table, "a table of a damaged history is missing");
            continue;
        }
        let list = |names: Vec<&String>| {
            let quoted: Vec<String> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
            quoted.join(", ")
        };
        let present = list(columns.iter().map(|(name, _)| name).collect());
        let old = list(columns.iter().map(|(_, old)| old).collect());
        let copy = format!("INSERT OR IGNORE INTO main.\"{table}\" ({present}) SELECT {old} FROM old.\"{old_table}\"");
        if run(file, &copy).await? {
            continue;
        }
        let has_rowid: sqlx::Result<Option<i64>> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "SELECT rowid FROM main.\"{table}\" LIMIT 1"
        )))
        .fetch_optional(&mut *file)
        .await;
        match has_rowid {
            Ok(_) => copy_by_rowid(file, &copy, bytes / LEAST_ROW).await?,
            Err(_) if table == "parts" => copy_parts(file, &copy).await?,
            Err(_) => copy_from_both_ends(file, &copy, &columns[0].1).await?,
        }
    }
    Ok(())
}

/// The columns of a table; none if there is no such table.
async fn columns_of(file: &mut SqliteConnection, schema: &str, table: &str) -> Vec<String> {
    sqlx::query_scalar("SELECT name FROM pragma_table_info(?1, ?2)")
        .bind(table)
        .bind(schema)
        .fetch_all(file)
        .await
        .unwrap_or_default()
}

/// Runs a copy; says whether all that it asks for could be read.
async fn run(file: &mut SqliteConnection, copy: &str) -> Result<bool> {
    match sqlx::query(sqlx::AssertSqlSafe(copy))
        .execute(file)
        .await
        .map_err(Error::from)
    {
        Ok(_) => Ok(true),
        Err(Error::DiskFull) => Err(Error::DiskFull),
        Err(error) => {
            tracing::debug!(%error, "some rows of a damaged history cannot be read");
            Ok(false)
        }
    }
}

async fn copy_by_rowid(file: &mut SqliteConnection, copy: &str, most: i64) -> Result<()> {
    let mut first = 1;
    while first <= most {
        let last = first + STEP - 1;
        // By the number alone, because the other indexes may be damaged elsewhere.
        if !run(
            file,
            &format!("{copy} NOT INDEXED WHERE rowid BETWEEN {first} AND {last}"),
        )
        .await?
        {
            for row in first..=last {
                run(file, &format!("{copy} NOT INDEXED WHERE rowid = {row}")).await?;
            }
        }
        first = last + 1;
    }
    Ok(())
}

/// Parts lie in the order of their messages, whose ids are known.
async fn copy_parts(file: &mut SqliteConnection, copy: &str) -> Result<()> {
    let ids: Vec<String> = sqlx::query_scalar("SELECT id FROM main.messages")
        .fetch_all(&mut *file)
        .await?;
    for id in ids {
        let id = id.replace('\'', "''");
        run(file, &format!("{copy} WHERE message_id = '{id}'")).await?;
    }
    // Those of messages that are lost.
    copy_from_both_ends(file, copy, "message_id").await
}

/// Rows in the order of their key, forwards up to the damage and backwards up to it.
async fn copy_from_both_ends(file: &mut SqliteConnection, copy: &str, key: &str) -> Result<()> {
    let Some((_, rows)) = copy.split_once(" SELECT ") else {
        return Ok(());
    };
    for order in ["ASC", "DESC"] {
        let (mut offset, mut count) = (0, STEP);
        loop {
            let next = format!("SELECT 1 FROM (SELECT {rows} ORDER BY \"{key}\" {order} LIMIT 1 OFFSET {offset})");
            let there: sqlx::Result<Option<i64>> = sqlx::query_scalar(sqlx::AssertSqlSafe(next))
                .fetch_optional(&mut *file)
                .await;
            if !matches!(there, Ok(Some(_))) {
                break;
            }
            if run(
                file,
                &format!("{copy} ORDER BY \"{key}\" {order} LIMIT {count} OFFSET {offset}"),
            )
            .await?
            {
                offset += count;
            } else if count > 1 {
                // The last rows before the damage.
                count = 1;
            } else {
                break;
            }
        }
    }
    Ok(())
}

/// Makes a tree of what is left of one: a message for each that somebody answers and that is lost, after the last one
/// before it, with the parts that are left of it; chats for messages without one; messages for parts without one; and
/// an end to look at.
const MEND: &str = "
    INSERT INTO messages (id, chat_id, parent_id, role, state, created_at)
    SELECT m.parent_id, m.chat_id,
           (SELECT b.id FROM messages b WHERE b.chat_id = m.chat_id AND b.id < m.parent_id ORDER BY b.id DESC LIMIT 1),
           CASE m.role WHEN 'assistant' THEN 'user' ELSE 'assistant' END, 'complete', min(m.created_at)
      FROM messages m WHERE m.parent_id IS NOT NULL
      AND m.parent_id NOT IN (SELECT id FROM messages) GROUP BY m.parent_id;
    INSERT INTO chats (id, title, created_at, updated_at)
    SELECT m.chat_id, 'Recovered chat', min(m.created_at), max(m.created_at) FROM messages m
     WHERE m.chat_id NOT IN (SELECT id FROM chats) GROUP BY m.chat_id;
    -- An earlier repair may have made it.
    INSERT OR IGNORE INTO chats (id, title, created_at, updated_at)
    SELECT 'recovered-parts', 'Recovered pieces', min(started_at), max(ended_at) FROM parts
     WHERE message_id NOT IN (SELECT id FROM messages) HAVING count(*) > 0;
    INSERT INTO messages (id, chat_id, role, state, created_at)
    SELECT p.message_id, 'recovered-parts', 'assistant', 'complete', min(p.started_at) FROM parts p
     WHERE p.message_id NOT IN (SELECT id FROM messages) GROUP BY p.message_id;
    UPDATE messages SET state = 'interrupted', owner = NULL, heartbeat = NULL WHERE state = 'streaming';
    UPDATE chats SET project_id = NULL WHERE project_id IS NOT NULL AND project_id NOT IN (SELECT id FROM projects);
    DELETE FROM project_files WHERE project_id NOT IN (SELECT id FROM projects);
    UPDATE chats SET head = (SELECT m.id FROM messages m WHERE m.chat_id = chats.id
         AND NOT EXISTS (SELECT 1 FROM messages c WHERE c.parent_id = m.id)
         ORDER BY m.created_at DESC, m.id DESC LIMIT 1)
     WHERE head IS NULL OR head NOT IN (SELECT id FROM messages WHERE chat_id = chats.id);
";
