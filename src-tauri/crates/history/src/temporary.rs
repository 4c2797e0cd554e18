//! A chat that lies in memory alone, until it is kept.

use std::collections::HashSet;

use protocol::ImageBytes;
use sqlx::SqliteConnection;

use crate::attachments::blocking;
use crate::{Error, History, Result};

impl History {
    /// True if this is the id of a chat or a message here.
    pub async fn holds(&self, id: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM chats WHERE id = ?1) OR EXISTS (SELECT 1 FROM messages WHERE id = ?1)";
        the_value!(&self.readers, sql; id).await
    }

    /// Moves the chats of a history in memory, with their ids, into a history file, all of them or none, and closes the
    /// one in memory with the same step: whoever writes to it afterwards is refused, and nothing is written past the
    /// move. A failure leaves everything in memory as it was, and nothing of it on the disk.
    ///
    /// # Errors
    /// [`Error::Busy`] while an answer is being written, [`Error::ReadOnly`] for a file that was opened so, and those
    /// of reading here and writing there.
    pub async fn move_into(&self, file: &History) -> Result<()> {
        // The rows do not go through the file's own writer, which would refuse them.
        if file.is_read_only() {
            return Err(Error::ReadOnly);
        }
        // The connection that has the rows; the file's own writer waits for it as for another process.
        let mut connection = self.writer.acquire().await?;
        run!(&mut connection, "ATTACH ? AS kept"; file.path.to_string_lossy()).await?;
        let moved = self.copy(&mut connection, file).await;
        let detached = run!(&mut connection, "DETACH kept").await;
        moved?;
        detached?;
        // Closing begins before the connection is given back, and ends with that.
        tokio::join!(self.close(), async { drop(connection) });
        Ok(())
    }

    /// Copies rows and files in one transaction. It is begun and ended by hand, because SQLite ends it by itself on a
    /// full disk: a transaction of sqlx would never notice, and this connection cannot be replaced.
    async fn copy(&self, connection: &mut SqliteConnection, file: &History) -> Result<()> {
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut *connection).await?;
        let mut written = Vec::new();
        let copied = self.copy_rows_and_files(connection, file, &mut written).await;
        if copied.is_err() {
            // Before the lock is given back, so that nobody else has come to name them.
            let files = file.attachments.clone();
            if let Err(error) = blocking(move || files.remove(&written, &HashSet::new(), i64::MIN)).await {
                tracing::warn!(%error, "files of a chat that could not be kept stay for a while");
            }
            // It fails if SQLite has done so.
            let _ = sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await;
        }
        copied
    }

    async fn copy_rows_and_files(
        &self,
        connection: &mut SqliteConnection,
        file: &History,
        written: &mut Vec<String>,
    ) -> Result<()> {
        let sql = "SELECT EXISTS (SELECT 1 FROM main.messages WHERE state = 'streaming')";
        if the_value!(&mut *connection, sql).await? {
            return Err(Error::Busy);
        }
        let sql = "SELECT sha256 FROM main.attachments ORDER BY sha256";
        let named: Vec<String> = values!(&mut *connection, sql).await?;
        sqlx::raw_sql(COPY).execute(&mut *connection).await?;
        for sha256 in named {
            let bytes = self.attachment_bytes(&sha256).await?;
            let (files, kept): (_, ImageBytes) = (file.attachments.clone(), bytes.clone());
            if blocking(move || files.keep(&kept)).await? {
                written.push(bytes.id());
            }
        }
        sqlx::raw_sql("COMMIT").execute(&mut *connection).await?;
        Ok(())
    }
}

const COPY: &str = "
    -- A message may come before the one that it answers.
    PRAGMA defer_foreign_keys = on;
    INSERT INTO kept.attachments SELECT * FROM main.attachments WHERE true
        ON CONFLICT (sha256) DO UPDATE SET made_at = excluded.made_at;
    INSERT INTO kept.chats SELECT * FROM main.chats;
    INSERT INTO kept.messages SELECT * FROM main.messages;
    INSERT INTO kept.parts SELECT * FROM main.parts;
";

#[cfg(test)]
mod tests {
    use api::ChatSettings;
    use protocol::Content;
    use tempfile::TempDir;

    use super::*;

    /// A file, and a history in memory with a chat whose draft names two images.
    async fn file_and_memory() -> (TempDir, History, History, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = History::open(&folder.path().join("history.sqlite")).await.unwrap();
        let memory = History::in_memory().await.unwrap();
        let chat = memory.create_chat(&ChatSettings::default()).await.unwrap().summary.id;
        let mut draft = vec![Content::text("Look")];
        for bytes in ["one", "two"] {
            let bytes = ImageBytes::from(bytes.as_bytes().to_vec());
            let kept = memory.add_attachment(&bytes, "image/png", (3, 2)).await.unwrap();
            draft.push(Content::Image {
                attachment: kept.sha256,
                media_type: kept.media_type,
                width: 3,
                height: 2,
                alt: String::new(),
            });
        }
        memory.set_draft(&chat, &draft).await.unwrap();
        (folder, file, memory, chat)
    }

    fn files(file: &History) -> usize {
        std::fs::read_dir(file.attachments_folder()).map_or(0, |entries| entries.filter_map(|entry| entry.ok()).count())
    }

    /// Checks that nothing was kept, and that the chat is still there, and written to as before.
    async fn check_refused(file: &History, memory: &History, chat: &str) {
        assert!(file.chats().await.unwrap().is_empty());
        assert_eq!(file.attachments_size().await.unwrap(), 0);
        memory.rename_chat(chat, "Still here").await.unwrap();
        assert_eq!(memory.chat(chat).await.unwrap().draft.len(), 3);
    }

    #[tokio::test]
    async fn a_transaction_that_sqlite_ends_leaves_the_chat_in_memory_and_can_be_tried_again() {
        let (_folder, file, memory, chat) = file_and_memory().await;
        // A full disk ends it so.
        let trigger = "CREATE TRIGGER full BEFORE INSERT ON chats BEGIN SELECT RAISE(ROLLBACK, 'full'); END";
        sqlx::raw_sql(trigger).execute(&file.writer).await.unwrap();
        for _ in 0..2 {
            memory.move_into(&file).await.unwrap_err();
            check_refused(&file, &memory, &chat).await;
            assert_eq!(files(&file), 0);
        }
        sqlx::raw_sql("DROP TRIGGER full").execute(&file.writer).await.unwrap();
        memory.move_into(&file).await.unwrap();
        assert_eq!(file.chat(&chat).await.unwrap().draft.len(), 3);
        assert_eq!(files(&file), 2);
    }

    #[tokio::test]
    async fn an_image_that_cannot_be_written_leaves_no_other_one_on_the_disk() {
        let (_folder, file, memory, chat) = file_and_memory().await;
        let mut ids = ["one", "two"].map(|bytes| ImageBytes::from(bytes.as_bytes().to_vec()).id());
        ids.sort();
        let in_the_way = file.attachments_folder().join(&ids[1]).join("x");
        std::fs::create_dir_all(&in_the_way).unwrap();
        let error = memory.move_into(&file).await.unwrap_err();
        assert!(matches!(error, Error::File(_)), "{error}");
        check_refused(&file, &memory, &chat).await;
        assert_eq!(files(&file), 1, "the folder in the way alone");
    }

    #[tokio::test]
    async fn a_file_that_is_read_alone_takes_no_chat_and_a_moved_one_takes_no_more_words() {
        let (_folder, file, memory, chat) = file_and_memory().await;
        let read_only = History::open_read_only(file.path()).await.unwrap();
        let error = memory.move_into(&read_only).await.unwrap_err();
        assert!(matches!(error, Error::ReadOnly), "{error}");
        check_refused(&file, &memory, &chat).await;
        memory.move_into(&file).await.unwrap();
        memory.set_draft(&chat, &[Content::text("Late")]).await.unwrap_err();
        assert_eq!(file.chat(&chat).await.unwrap().draft.len(), 3);
    }
}
