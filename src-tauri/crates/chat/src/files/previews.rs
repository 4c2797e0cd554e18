//! Pictures as windows show them and hand them on: small, whole, as a file.

use std::sync::Arc;

use api::AddedPicture;
use media::{Kind, Picture};
use protocol::{Content, Error as Failure, ImageBytes, Result};

use crate::error::Error;
use crate::files::images::unreadable;
use crate::files::Files;

/// The longer side of a preview, in pixels.
const PREVIEW_SIDE: u32 = 512;
/// The longer side of what goes with the pointer while a picture is dragged.
const ICON_SIDE: u32 = 96;
/// The longest name that a dragged file gets, in characters.
const LONGEST_NAME: usize = 80;

/// A picture in a form that every web view shows.
#[derive(Debug, Clone)]
pub struct ShownPicture {
    /// Such as `image/jpeg`.
    pub media_type: &'static str,
    /// Its file.
    pub bytes: Arc<[u8]>,
}

/// A picture as a file that leaves Ponder.
#[derive(Debug, Clone)]
pub struct PictureFile {
    /// Its name, with the ending of its kind and nothing that a file system minds.
    pub name: String,
    /// Its bytes, without the place where it was taken and the camera.
    pub bytes: Vec<u8>,
    /// A small JPEG of it.
    pub icon: Vec<u8>,
}

impl Files {
    /// Keeps a picture that can be read to its end, and makes its preview. It stays as long as a message or a draft
    /// names it, and a day before one does.
    ///
    /// # Errors
    /// `PictureBroken` if it is no picture that can be read, with the reason; those of the history file.
    pub async fn add_picture(&self, bytes: Vec<u8>) -> Result<AddedPicture> {
        let bytes = ImageBytes::from(bytes);
        let (preview, animated) = self
            .unfold(&bytes, |picture| {
                Ok((media::thumbnail(&picture, PREVIEW_SIDE)?, picture.animated))
            })
            .await?;
        let Content::Image {
            attachment,
            media_type,
            width,
            height,
            ..
        } = self.add_image(bytes.to_vec(), "").await?
        else {
            return Err(Error::Broken.into());
        };
        self.previews.keep(&attachment, &preview.into());
        Ok(AddedPicture {
            attachment,
            media_type,
            width,
            height,
            animated,
        })
    }

    /// A small form of a picture, for lists.
    ///
    /// # Errors
    /// `NotFound` if it is not kept any more, `PictureBroken` if it cannot be read.
    pub async fn preview(&self, attachment: &str) -> Result<ShownPicture> {
        let media_type = "image/jpeg";
        if let Some(bytes) = self.previews.find(attachment) {
            return Ok(ShownPicture { media_type, bytes });
        }
        let file = self.image(attachment).await?;
        let bytes: Arc<[u8]> = self
            .unfold(&file, |picture| media::thumbnail(&picture, PREVIEW_SIDE))
            .await?
            .into();
        self.previews.keep(attachment, &bytes);
        Ok(ShownPicture { media_type, bytes })
    }

    /// All of a picture: its own file if every web view shows its kind, else what it shows as a JPEG.
    ///
    /// # Errors
    /// As [`Files::preview`].
    pub async fn whole_picture(&self, attachment: &str) -> Result<ShownPicture> {
        let file = self.image(attachment).await?;
        let kind = media::measure(&file).map_err(unreadable)?.kind;
        match kind {
            Kind::Png | Kind::Jpeg | Kind::Webp | Kind::Gif => Ok(ShownPicture {
                media_type: kind.media_type(),
                bytes: file.to_vec().into(),
            }),
            // A drawing could hold scripts; web views differ in the others.
            Kind::Svg | Kind::Bmp | Kind::Tiff | Kind::Heic | Kind::Avif => Ok(ShownPicture {
                media_type: "image/jpeg",
                bytes: self
                    .unfold(&file, |picture| media::thumbnail(&picture, u32::MAX))
                    .await?
                    .into(),
            }),
        }
    }

    /// A picture as a file for other programs, called as it is in the chat.
    ///
    /// # Errors
    /// As [`Files::preview`]; also if what a file says beside its picture cannot be taken out.
    pub async fn picture_file(&self, attachment: &str, name: &str) -> Result<PictureFile> {
        let file = self.image(attachment).await?;
        let icon = self
            .unfold(&file, |picture| media::thumbnail(&picture, ICON_SIDE))
            .await?;
        let bytes = media::strip_metadata(&file).map_err(unreadable)?;
        let kind = media::measure(&bytes).map_err(unreadable)?.kind;
        let name = file_name(name, ending(kind));
        Ok(PictureFile { name, bytes, icon })
    }

    /// Does something with the pixels of a picture, in its turn and off the threads that answer windows.
    async fn unfold<T: Send + 'static>(
        &self,
        file: &ImageBytes,
        work: impl FnOnce(Picture) -> media::Result<T> + Send + 'static,
    ) -> Result<T> {
        let _turn = self.previews.turn.acquire().await;
        let file = file.clone();
        let done = tokio::task::spawn_blocking(move || media::decode(&file).and_then(work)).await;
        done.map_err(|_| Failure::from(Error::Broken))?.map_err(unreadable)
    }
}

fn ending(kind: Kind) -> &'static str {
    match kind {
        Kind::Png => "png",
        Kind::Jpeg => "jpg",
        Kind::Webp => "webp",
        Kind::Gif => "gif",
        Kind::Bmp => "bmp",
        Kind::Tiff => "tiff",
        Kind::Heic => "heic",
        Kind::Avif => "avif",
        Kind::Svg => "svg",
    }
}

/// A name for a file: letters and digits of any script, with dashes for all else, and the ending of its kind.
fn file_name(name: &str, ending: &str) -> String {
    let stem = match name.rsplit_once('.') {
        Some((stem, known))
            if (1..=4).contains(&known.len()) && known.chars().all(|letter| letter.is_ascii_alphanumeric()) =>
        {
            stem
        }
        _ => name,
    };
    let plain: String = stem
        .chars()
        .map(|letter| if letter.is_alphanumeric() { letter } else { '-' })
        .collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let short: String = words.join("-").chars().take(LONGEST_NAME).collect();
    match short.is_empty() {
        true => format!("picture.{ending}"),
        false => format!("{short}.{ending}"),
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_file_is_called_as_its_picture_and_leads_nowhere() {
        let names = [
            ("A boat in the harbour.HEIC", "A-boat-in-the-harbour.jpg"),
            ("boat.jpg", "boat.jpg"),
            ("A boat. It is red", "A-boat-It-is-red.jpg"),
            ("Fähre nach Ærø", "Fähre-nach-Ærø.jpg"),
            ("../../etc/passwd", "etc-passwd.jpg"),
            ("..", "picture.jpg"),
            ("", "picture.jpg"),
            ("a\0b\nc", "a-b-c.jpg"),
        ];
        for (given, wanted) in names {
            assert_eq!(file_name(given, "jpg"), wanted, "{given:?}");
        }
        assert_eq!(file_name(&"x".repeat(500), "png").len(), 84);
    }
}
