//! The table `attachments` and the files beside the database: images of messages and drafts, and the texts of their
//! files and of those of projects, each once, whoever names it.
//!
//! A file is written before its row and removed before it, both under the write lock, so that two processes never
//! cross; whatever a process that is killed leaves behind, an image that a message names has its file.

use std::collections::HashSet;

use protocol::{Content, ImageBytes};
use sqlx::SqliteConnection;
use tokio::task::spawn_blocking;

use crate::{now, Error, History, Result};

/// An image that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// SHA-256 of its bytes, hexadecimal: how messages name it.
    pub sha256: String,
    /// Such as `image/png`.
    pub media_type: String,
    /// How long its file is.
    pub bytes: i64,
    /// In pixels, as it is to be looked at.
    pub width: u32,
    /// In pixels, as it is to be looked at.
    pub height: u32,
}

from_row!(Attachment: sha256, media_type, bytes, width, height);

impl History {
    /// Keeps an image. It stays as long as a message or a draft names it, and a while before one does.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be written; nothing is kept then.
    pub async fn add_attachment(
        &self,
        bytes: &ImageBytes,
        media_type: &str,
        (width, height): (u32, u32),
    ) -> Result<Attachment> {
        let attachment = Attachment {
            sha256: bytes.id(),
            media_type: media_type.to_owned(),
            bytes: bytes.len() as i64,
            width,
            height,
        };
        let mut transaction = self.write().await?;
        let (files, kept) = (self.attachments.clone(), bytes.clone());
        blocking(move || files.keep(&kept)).await?;
        let kept = &attachment;
        run!(
            &mut transaction,
            "INSERT INTO attachments (sha256, media_type, bytes, width, height, made_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (sha256) DO UPDATE SET made_at = excluded.made_at";
            &kept.sha256, &kept.media_type, kept.bytes, width, height, now()
        )
        .await?;
        transaction.commit().await?;
        Ok(attachment)
    }

    /// Keeps the text of a file. It stays as an image does ([`History::add_attachment`]).
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be written; nothing is kept then.
    pub async fn add_text(&self, text: String) -> Result<String> {
        let bytes = ImageBytes::from(text.into_bytes());
        Ok(self.add_attachment(&bytes, "text/plain", (0, 0)).await?.sha256)
    }

    /// The text of a file that is kept.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it is not kept, or its file is gone or is another one.
    pub async fn text(&self, sha256: &str) -> Result<String> {
        let missing = || Error::NotFound("file");
        let bytes = self.attachment_bytes(sha256).await.map_err(|error| match error {
            Error::NotFound(_) => missing(),
            other => other,
        })?;
        String::from_utf8(bytes.to_vec()).map_err(|_| missing())
    }

    /// The row of an attachment.
    pub async fn attachment(&self, sha256: &str) -> Result<Attachment> {
        let sql = "SELECT sha256, media_type, bytes, width, height FROM attachments WHERE sha256 = ?";
        row!(&self.readers, sql; sha256).await?.ok_or(Error::NotFound("image"))
    }

    /// The bytes of an image.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it is not kept, or its file is gone or is another one.
    pub async fn attachment_bytes(&self, sha256: &str) -> Result<ImageBytes> {
        if !ImageBytes::is_id(sha256) {
            return Err(Error::NotFound("image"));
        }
        let (files, sha256) = (self.attachments.clone(), sha256.to_owned());
        let bytes = blocking(move || files.read(&sha256)).await?;
        bytes.ok_or(Error::NotFound("image"))
    }

    /// The images that the messages and the draft of a chat name.
    pub async fn attachments_of(&self, chat: &str) -> Result<Vec<Attachment>> {
        rows!(
            &self.readers,
            "SELECT sha256, media_type, bytes, width, height FROM attachments
              WHERE sha256 IN (SELECT l.sha256 FROM attachment_links l WHERE l.chat_id = ?) ORDER BY sha256";
            chat
        )
        .await
    }

    /// How many bytes all images take on the disk.
    pub async fn attachments_size(&self) -> Result<u64> {
        let bytes: i64 = the_value!(&self.readers, "SELECT coalesce(sum(bytes), 0) FROM attachments").await?;
        Ok(bytes.unsigned_abs())
    }

    /// Removes the images and texts that no message, no draft and no project names and that were added before this
    /// time, and files without a row that are as old; returns how many. Messages in the trash still name theirs.
    pub async fn remove_unlinked_attachments(&self, before: i64) -> Result<u64> {
        let mut transaction = self.write().await?;
        // The draft of a new chat, which has no row yet, may name some, too.
        let removed: Vec<String> = values!(
            &mut *transaction,
            "DELETE FROM attachments WHERE made_at < ?
                AND NOT EXISTS (SELECT 1 FROM parts p WHERE p.kind IN ('image', 'file')
                      AND json_extract(p.content, '$.attachment') = attachments.sha256)
                AND sha256 NOT IN (SELECT sha256 FROM attachment_links WHERE message_id IS NULL)
                AND NOT EXISTS (SELECT 1 FROM settings s WHERE instr(s.value, attachments.sha256) > 0)
             RETURNING sha256";
            before
        )
        .await?;
        // Those without a row that a message or a draft still names: the row was on a page that is destroyed.
        let known: Vec<String> = values!(
            &mut *transaction,
            "SELECT sha256 FROM attachments
             UNION SELECT sha256 FROM attachment_links WHERE sha256 IS NOT NULL
             UNION SELECT named.atom FROM settings s, json_tree(CASE WHEN json_valid(s.value) THEN s.value END) named
              WHERE named.key = 'attachment' AND named.type = 'text'"
        )
        .await?;
        let (files, known) = (self.attachments.clone(), HashSet::from_iter(known));
        let count = blocking(move || files.remove(&removed, &known, before)).await?;
        transaction.commit().await?;
        Ok(count)
    }
}

/// Fails unless all images and texts that these parts name are kept, so that no message names one that is gone.
pub(crate) async fn check_attachments(db: &mut SqliteConnection, content: &[Content]) -> Result<()> {
    for part in content {
        let (Content::Image { attachment, .. } | Content::File { attachment, .. }) = part else {
            continue;
        };
        let sql = "SELECT 1 FROM attachments WHERE sha256 = ?";
        let known: Option<i64> = value!(&mut *db, sql; attachment).await?;
        known.ok_or(Error::NotFound("image"))?;
    }
    Ok(())
}

/// Reads or writes files without holding up what else is at work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    match spawn_blocking(work).await {
        Ok(done) => done.map_err(Error::from_file),
        Err(panicked) => Err(Error::File(std::io::Error::other(panicked))),
    }
}
