//! A chat that lies in memory alone, until it is kept.

use crate::{History, Result};

impl History {
    /// True if this is the id of a chat or a message here.
    pub async fn holds(&self, id: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM chats WHERE id = ?1) OR EXISTS (SELECT 1 FROM messages WHERE id = ?1)";
        the_value!(&self.readers, sql; id).await
    }

    /// Copies the chats of a history in memory, with their ids, into a history file, all of them or none.
    ///
    /// # Errors
    /// Those of reading here and writing there.
    pub async fn copy_into(&self, file: &History) -> Result<()> {
        // Files come before the rows that name them.
        let sql = "SELECT sha256, media_type, bytes, width, height FROM attachments";
        let attachments: Vec<crate::Attachment> = rows!(&self.readers, sql).await?;
        for attachment in attachments {
            let bytes = self.attachment_bytes(&attachment.sha256).await?;
            let size = (attachment.width, attachment.height);
            file.add_attachment(&bytes, &attachment.media_type, size).await?;
        }
        // Through the connection that has the rows; the file's own writer waits for it as for another process.
        let mut connection = self.writer.acquire().await?;
        run!(&mut connection, "ATTACH ? AS kept"; file.path.to_string_lossy()).await?;
        let copied = copy_rows(&mut connection).await;
        run!(&mut connection, "DETACH kept").await?;
        copied
    }
}

async fn copy_rows(connection: &mut sqlx::SqliteConnection) -> Result<()> {
    let mut transaction = sqlx::Connection::begin_with(connection, "BEGIN IMMEDIATE").await?;
    sqlx::raw_sql(COPY).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

const COPY: &str = "
    -- A message may come before the one that it answers.
    PRAGMA defer_foreign_keys = on;
    INSERT INTO kept.chats SELECT * FROM main.chats;
    INSERT INTO kept.messages SELECT * FROM main.messages;
    INSERT INTO kept.parts SELECT * FROM main.parts;
";
