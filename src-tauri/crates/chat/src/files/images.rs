//! Images of a chat: kept once, read for the engine, and refused before sending if the model cannot see.

use std::collections::BTreeSet;

use history::ExportedImages;
use protocol::{Content, ImageBytes, ImageDetail, Result};

use crate::core::{blocking, Core};
use crate::files::Files;

/// Keeps an image and returns the part that shows it ([`Files::add_image_part`]).
pub(crate) async fn keep_image(core: &Core, bytes: &ImageBytes, name: &str) -> Result<Content> {
    let measured = bytes.clone();
    let measured = blocking(move || media::measure(&measured)).await??;
    let (width, height) = (measured.width, measured.height);
    let kept = core
        .history
        .add_attachment(bytes, measured.kind.media_type(), (width, height))
        .await?;
    Ok(Content::Image {
        attachment: kept.sha256,
        media_type: kept.media_type,
        width,
        height,
        alt: name.trim().to_owned(),
    })
}

impl Files {
    /// Keeps an image and returns the part that shows it. It stays as long as a message or a draft names it, and a day
    /// before one does.
    /// `name` is what people call it, such as its file's name; it is told in its place to models that do not see.
    ///
    /// # Errors
    /// `ImageBroken` if it is no image that can be read, with the reason; those of the history file.
    pub async fn add_image_part(&self, bytes: Vec<u8>, name: &str) -> Result<Content> {
        keep_image(&self.core, &ImageBytes::from(bytes), name).await
    }

    /// The bytes of an image, as they were added.
    ///
    /// # Errors
    /// `NotFound` if it is not kept any more, or its file is gone.
    pub async fn image(&self, attachment: &str) -> Result<ImageBytes> {
        Ok(self.core.history.attachment_bytes(attachment).await?)
    }

    /// The images of a chat as they leave the app. One whose file is gone, or that cannot be freed of what it tells,
    /// stays behind.
    pub(crate) async fn exported_images(&self, chat: &str) -> Result<ExportedImages> {
        let mut exported = ExportedImages::new();
        for attachment in self.core.history.attachments_of(chat).await? {
            let Ok(bytes) = self.image(&attachment.sha256).await else {
                continue;
            };
            if attachment.media_type.starts_with("text/") {
                exported.insert(attachment.sha256, (attachment.media_type, bytes));
                continue;
            }
            match blocking(move || bare(&bytes)).await? {
                Ok(bare) => drop(exported.insert(attachment.sha256, bare)),
                Err(error) => tracing::warn!(%error, "an image was not exported"),
            }
        }
        Ok(exported)
    }

    /// Bytes of all images on the disk.
    pub async fn attachments_size(&self) -> Result<u64> {
        Ok(self.core.history.attachments_size().await?)
    }

    /// Tokens that images of these sizes (width, height) take under the model of this reference, or under the default
    /// model, in the same order; `None` if that is not known.
    ///
    /// # Errors
    /// `ModelNotFound` and `ModelBroken` from the model folder.
    pub async fn image_tokens(
        &self,
        reference: Option<&str>,
        sizes: Vec<(u32, u32)>,
        detail: ImageDetail,
    ) -> Result<Option<Vec<u32>>> {
        let (_, model) = self.core.model(reference).await?;
        let shelf = self.core.shelf.clone();
        blocking(move || shelf.image_tokens(&model, &sizes, detail)).await
    }
}

/// The images that these parts name.
pub(crate) fn attachments(content: &[Content]) -> BTreeSet<String> {
    let named = content.iter().filter_map(|part| match part {
        Content::Image { attachment, .. } => Some(attachment.clone()),
        _ => None,
    });
    named.collect()
}

/// An image without what its file tells besides: the file itself without those words, or drawn anew if they cannot be
/// taken out.
fn bare(bytes: &[u8]) -> media::Result<(String, ImageBytes)> {
    let bare = match media::strip_metadata(bytes) {
        Ok(bare) => bare,
        Err(_) => media::thumbnail(&media::decode(bytes)?, u32::MAX)?,
    };
    // An image that cannot be stripped was encoded anew, perhaps as another kind.
    let kind = media::measure(&bare)?.kind;
    Ok((kind.media_type().to_owned(), bare.into()))
}
