//! A damaged history: what is left of it, and a new file in its place. The damaged file is kept as it is, and nothing
//! takes its place before a person chose what.

use std::path::{Path, PathBuf};

use sqlite::{options_of, privacy, BUSY_TIMEOUT};
use sqlx::sqlite::SqliteSynchronous;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use crate::file::backup::{backups, check, dated_files, remove, Backup, Checked};
use crate::file::database::REPAIR_DRAFT;
use crate::file::lock;
use crate::file::pages::Pages;
use crate::recovery::salvage::{salvage, Salvaged};
use crate::{now, Error, History, Result};

/// A copy for looking at alone.
const READABLE: &str = "history-readable.sqlite";
/// The name of a copy that is counted and removed, before and after the time.
const EXAMINED: (&str, &str) = ("history-examined-", ".sqlite");
/// The name of a damaged file that was set aside, before and after the time in Unix milliseconds.
const SET_ASIDE: (&str, &str) = ("history-damaged-", ".sqlite");

/// The number of chats and messages of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Contents {
    /// Its chats, those in the archive and in the trash among them.
    pub chats: u64,
    /// Its messages.
    pub messages: u64,
}

/// The readable part of a damaged history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The chats that the file names somewhere, readable or not.
    pub known_chats: u64,
    /// The readable part of the file.
    pub readable: Contents,
    /// The newest readable backup: its time in Unix milliseconds, and its contents.
    pub backup: Option<(i64, Contents)>,
    /// The readable part of the file and that backup together.
    pub together: Contents,
}

/// The contents of a file that takes the place of a damaged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// All that can be read in the file, and what only the newest backup has.
    Everything,
    /// The newest backup alone.
    Backup,
}

/// The outcome of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The path of the damaged file.
    pub set_aside: PathBuf,
    /// The contents of the new file.
    pub contents: Contents,
}

/// True if a history file is damaged. Its search index is made anew if that is all.
///
/// # Errors
/// Other reasons why it cannot be opened.
pub async fn is_damaged(path: &Path) -> Result<bool> {
    let checked = match History::open(path).await {
        Ok(history) => {
            let found = history.mend_index().await;
            history.close().await;
            found.map(|found| found == Checked::Damaged)
        }
        Err(error) => Err(error),
    };
    match checked {
        Err(error) if error.is_damage() => Ok(true),
        checked => checked,
    }
}

/// Counts what is left of a damaged history. The file stays as it is.
///
/// # Errors
/// [`Error::DiskFull`] and others from the disk.
pub async fn examine(path: &Path) -> Result<Damage> {
    let copy = dated(path, EXAMINED);
    let damage = write_everything(path, &copy).await;
    remove(&copy);
    damage
}

/// Puts a new file in the place of a damaged one, which is kept beside it.
///
/// # Errors
/// [`Error::Damaged`] if nothing at all can be read, [`Error::Locked`] if another program has the history open,
/// [`Error::DiskFull`] and others from the disk. The damaged file lies where it was then.
pub async fn repair(path: &Path, remedy: Remedy) -> Result<Repaired> {
    let _alone = lock::alone(path)?;
    let draft = path.with_file_name(REPAIR_DRAFT);
    let contents = match remedy {
        Remedy::Everything => write_everything(path, &draft).await.map(|damage| damage.together),
        Remedy::Backup => copy_backup(path, &draft).await,
    };
    let contents = kept(&draft, contents)?;
    let set_aside = move_aside(path)?;
    std::fs::rename(&draft, path).map_err(Error::from_file)?;
    tracing::warn!(?remedy, ?contents, "a damaged history was repaired");
    Ok(Repaired { set_aside, contents })
}

/// Writes all that can be read of a history file, whatever is wrong with it, to a copy beside it, for looking at it
/// with [`History::open_read_only`]. The file stays as it is. Returns the copy.
///
/// # Errors
/// As [`repair`].
pub async fn readable_copy(path: &Path) -> Result<PathBuf> {
    let copy = path.with_file_name(READABLE);
    let written = write_everything(path, &copy).await.map(|damage| damage.together);
    kept(&copy, written).map(|_| copy)
}

/// Removes a new file without a chat, and one that could not be written.
fn kept(copy: &Path, written: Result<Contents>) -> Result<Contents> {
    match written {
        Ok(contents) if contents.chats > 0 => Ok(contents),
        written => {
            remove(copy);
            Err(written.err().unwrap_or(Error::Damaged))
        }
    }
}

/// Moves a history file out of the way, with what SQLite keeps beside it, so that the next start begins with an empty
/// one. Returns where it lies now; images and backups stay.
///
/// # Errors
/// [`Error::Locked`] if another program has it open, [`Error::File`] if it cannot be moved.
pub fn set_aside(path: &Path) -> Result<PathBuf> {
    let _alone = lock::alone(path)?;
    // The next start would put the draft of a repair that was cut off in its place.
    remove(&path.with_file_name(REPAIR_DRAFT));
    move_aside(path)
}

fn move_aside(path: &Path) -> Result<PathBuf> {
    let aside = dated(path, SET_ASIDE);
    // The file goes last: without its log it would be an older state of it.
    let moves = privacy::with_companions(path)
        .into_iter()
        .zip(privacy::with_companions(&aside));
    for (from, to) in moves.rev() {
        files::found(std::fs::rename(&from, &to)).map_err(Error::from_file)?;
    }
    Ok(aside)
}

/// A new file beside a history with the time in its name.
fn dated(path: &Path, (before, after): (&str, &str)) -> PathBuf {
    path.with_file_name(format!("{before}{}{after}", now()))
}

/// The damaged files that were set aside beside a history, the newest first.
pub fn files_set_aside(path: &Path) -> Vec<Backup> {
    dated_files(folder_of(path), SET_ASIDE)
}

/// Removes the damaged files that were set aside beside a history.
pub fn remove_set_aside(path: &Path) {
    for file in files_set_aside(path) {
        remove(&file.path);
    }
}

/// Removes the copies of a history, or of a damaged file, that were counted and that a process left when it was killed:
/// those that were made before this time.
pub fn remove_examined(path: &Path, before: i64) {
    for copy in dated_files(folder_of(path), EXAMINED) {
        if copy.made_at < before {
            remove(&copy.path);
        }
    }
}

/// Removes the copies of a history that is open which no list shows.
pub fn remove_copies(path: &Path) {
    remove_examined(path, i64::MAX);
    remove(&path.with_file_name(READABLE));
    remove(&path.with_file_name(REPAIR_DRAFT));
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

impl History {
    /// Adds what can be read of a damaged file that was set aside, and is not here, but for settings. Returns how much
    /// that was.
    ///
    /// # Errors
    /// [`Error::File`] if there is no such file, or it is the one of this history, and those of writing.
    pub async fn add_from(&self, aside: &Path) -> Result<Contents> {
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let is_this = |aside: PathBuf| self.path.canonicalize().is_ok_and(|path| path == aside);
        if aside.canonicalize().is_ok_and(is_this) {
            return Err(Error::File(std::io::Error::other("this is the history itself")));
        }
        let pages = Pages::open(aside)?;
        let copy = dated(&self.path, EXAMINED);
        let added = match write_copy(Some(&pages), Vec::new(), &copy).await {
            Ok(_) => self.add_rows_of(&copy).await,
            Err(error) => Err(error),
        };
        remove(&copy);
        added
    }

    async fn add_rows_of(&self, copy: &Path) -> Result<Contents> {
        // A connection of its own, with which the copy is let go of, too.
        let options = options_of(&self.path).foreign_keys(true).busy_timeout(BUSY_TIMEOUT);
        let mut file = options.connect().await?;
        run!(&mut file, "ATTACH ? AS aside"; copy.to_string_lossy()).await?;
        let mut transaction = file.begin_with("BEGIN IMMEDIATE").await?;
        let before = contents(&mut transaction).await?;
        sqlx::raw_sql(ADD).execute(&mut *transaction).await?;
        let after = contents(&mut transaction).await?;
        transaction.commit().await?;
        file.close().await?;
        Ok(Contents {
            chats: after.chats - before.chats,
            messages: after.messages - before.messages,
        })
    }
}

/// Adds the rows of the file `aside`, but for settings. A message that answers a result of a tool for which there is
/// another one here comes after that one.
const ADD: &str = "
    -- A message may come before the one that it answers.
    PRAGMA defer_foreign_keys = on;
    INSERT OR IGNORE INTO attachments SELECT * FROM aside.attachments;
    INSERT OR IGNORE INTO projects SELECT * FROM aside.projects;
    INSERT OR IGNORE INTO project_files SELECT * FROM aside.project_files;
    INSERT OR IGNORE INTO chats SELECT * FROM aside.chats;
    INSERT OR IGNORE INTO notes SELECT * FROM aside.notes;
    INSERT OR IGNORE INTO messages SELECT * FROM aside.messages;
    UPDATE messages SET parent_id = (
        SELECT m.id FROM aside.messages a JOIN main.messages m
            ON m.chat_id = a.chat_id AND m.tool_call_id = a.tool_call_id WHERE a.id = messages.parent_id)
     WHERE parent_id NOT IN (SELECT id FROM main.messages);
    INSERT OR IGNORE INTO parts SELECT * FROM aside.parts WHERE message_id IN (SELECT id FROM main.messages);
";

/// Writes the readable part of a history and of its newest backup.
async fn write_everything(path: &Path, copy: &Path) -> Result<Damage> {
    let pages = Pages::open(path);
    let pages = pages.inspect_err(|error| tracing::warn!(%error, "a damaged history cannot be read at all"));
    let pages = pages.ok();
    let written = write_copy(pages.as_ref(), backups(path), copy).await;
    if let Some(pages) = pages {
        pages.leave_open();
    }
    written
}

/// Writes the readable rows of a file, and of the newest of these backups that can be read, to a new one.
async fn write_copy(pages: Option<&Pages>, backups: Vec<Backup>, copy: &Path) -> Result<Damage> {
    remove(copy);
    let fresh = History::open_file(copy).await?;
    fresh.close().await;
    let options = options_of(copy).foreign_keys(false).synchronous(SqliteSynchronous::Off);
    let mut file = options.connect().await?;
    let mut transaction = file.begin().await?;
    let mut salvaged = match pages {
        Some(pages) => salvage(pages, &mut transaction).await?,
        None => Salvaged::default(),
    };
    let readable = contents(&mut transaction).await?;
    let mut backup = None;
    for made in backups {
        let found = backup_contents(&made.path).await;
        if let Ok(found) = found.inspect_err(|error| tracing::warn!(%error, "a backup cannot be read")) {
            salvage(&Pages::open(&made.path)?, &mut transaction).await?;
            backup = Some((made.made_at, found));
            break;
        }
    }
    salvaged.add_cut_off(&mut transaction).await?;
    transaction.commit().await?;
    let together = finish(file, copy).await?;
    let damage = Damage {
        known_chats: readable.chats.max(salvaged.chats.len() as u64),
        readable,
        backup,
        together,
    };
    tracing::warn!(?damage, "a damaged history was read");
    Ok(damage)
}

/// Makes the rows of a new file fit each other, and checks it.
async fn finish(mut file: SqliteConnection, path: &Path) -> Result<Contents> {
    sqlx::raw_sql(MEND).execute(&mut file).await?;
    let contents = contents(&mut file).await?;
    sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut file)
        .await?;
    file.close().await?;
    check(path).await?;
    sync(path)?;
    Ok(contents)
}

/// Waits until a file is on the disk that is to take the place of another one.
fn sync(path: &Path) -> Result<()> {
    std::fs::File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(Error::from_file)
}

async fn copy_backup(path: &Path, draft: &Path) -> Result<Contents> {
    for backup in backups(path) {
        if let Ok(found) = backup_contents(&backup.path).await {
            remove(draft);
            privacy::make_file(draft);
            std::fs::copy(&backup.path, draft).map_err(Error::from_file)?;
            sync(draft)?;
            return Ok(found);
        }
    }
    Err(Error::Damaged)
}

async fn backup_contents(path: &Path) -> Result<Contents> {
    check(path).await?;
    let mut file = options_of(path).read_only(true).connect().await?;
    let found = contents(&mut file).await;
    file.close().await?;
    found
}

/// The chats of a file, those without a row of their own among them, and its messages.
async fn contents(file: &mut SqliteConnection) -> Result<Contents> {
    let sql = "SELECT (SELECT count(*) FROM (SELECT id FROM chats UNION SELECT chat_id FROM messages)),
                      (SELECT count(*) FROM messages)";
    let (chats, messages): (i64, i64) = row!(file, sql).await?.unwrap_or_default();
    Ok(Contents {
        chats: chats.unsigned_abs(),
        messages: messages.unsigned_abs(),
    })
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
    -- Without its project a note would be told in all other chats.
    DELETE FROM notes WHERE project_id IS NOT NULL AND project_id NOT IN (SELECT id FROM projects);
    UPDATE notes SET chat_id = NULL WHERE chat_id NOT IN (SELECT id FROM chats);
    UPDATE chats SET head = (SELECT m.id FROM messages m WHERE m.chat_id = chats.id
         AND NOT EXISTS (SELECT 1 FROM messages c WHERE c.parent_id = m.id)
         ORDER BY m.created_at DESC, m.id DESC LIMIT 1)
     WHERE head IS NULL OR head NOT IN (SELECT id FROM messages WHERE chat_id = chats.id);
";
