//! Images as windows show them and hand them on: small, whole, as a file.

use std::sync::Arc;

use api::AddedImage;
use media::{DecodedImage, Kind};
use protocol::{Content, ImageBytes, Result};

use crate::core::blocking;
use crate::error::Error;
use crate::files::Files;

/// The longer side of a preview, in pixels.
const PREVIEW_SIDE: u32 = 512;
/// The longer side of what goes with the pointer while an image is dragged.
const ICON_SIDE: u32 = 96;
/// The longest name that a dragged file gets, in characters.
const LONGEST_NAME: usize = 80;

/// An image in a form that every web view shows.
#[derive(Debug, Clone)]
pub struct ShownImage {
    /// Such as `image/jpeg`.
    pub media_type: &'static str,
    /// Its file.
    pub bytes: Arc<[u8]>,
}

/// An image as a file that leaves Ponder.
#[derive(Debug, Clone)]
pub struct ImageFile {
    /// Its name, with the ending of its kind and nothing that a file system minds.
    pub name: String,
    /// Its bytes, without the place where it was taken and the camera.
    pub bytes: Vec<u8>,
    /// A small JPEG of it.
    pub icon: Vec<u8>,
}

impl Files {
    /// Keeps an image that can be read to its end, and makes its preview. It stays as long as a message or a draft
    /// names it, and a day before one does.
    ///
    /// # Errors
    /// `ImageBroken` if it is no image that can be read, with the reason; those of the history file.
    pub async fn add_image(&self, bytes: Vec<u8>) -> Result<AddedImage> {
        let bytes = ImageBytes::from(bytes);
        let preview = |image: DecodedImage| {
            let preview = media::thumbnail(&image, PREVIEW_SIDE)?;
            Ok((preview, image.animated))
        };
        let (preview, animated) = self.unfold(&bytes, preview).await?;
        let Content::Image {
            attachment,
            media_type,
            width,
            height,
            ..
        } = self.add_image_part(bytes.to_vec(), "").await?
        else {
            return Err(Error::Broken.into());
        };
        self.previews.keep(&attachment, &preview.into());
        Ok(AddedImage {
            attachment,
            media_type,
            width,
            height,
            animated,
        })
    }

    /// A small form of an image, for lists.
    ///
    /// # Errors
    /// `NotFound` if it is not kept any more, `ImageBroken` if it cannot be read.
    pub async fn preview(&self, attachment: &str) -> Result<ShownImage> {
        let media_type = "image/jpeg";
        if let Some(bytes) = self.previews.find(attachment) {
            return Ok(ShownImage { media_type, bytes });
        }
        let file = self.image(attachment).await?;
        let bytes = self.drawn(&file, PREVIEW_SIDE).await?.into();
        self.previews.keep(attachment, &bytes);
        Ok(ShownImage { media_type, bytes })
    }

    /// All of an image: its own file if every web view shows its kind, else what it shows as a JPEG.
    ///
    /// # Errors
    /// As [`Files::preview`].
    pub async fn whole_image(&self, attachment: &str) -> Result<ShownImage> {
        let file = self.image(attachment).await?;
        let kind = media::measure(&file)?.kind;
        match kind {
            Kind::Png | Kind::Jpeg | Kind::Webp | Kind::Gif => Ok(ShownImage {
                media_type: kind.media_type(),
                bytes: file.to_vec().into(),
            }),
            // A drawing could hold scripts; web views differ in the others.
            Kind::Svg | Kind::Bmp | Kind::Tiff | Kind::Heic | Kind::Avif => Ok(ShownImage {
                media_type: "image/jpeg",
                bytes: self.drawn(&file, u32::MAX).await?.into(),
            }),
        }
    }

    /// An image as a file for other programs, called as it is in the chat.
    ///
    /// # Errors
    /// As [`Files::preview`]; also if what a file says beside its image cannot be taken out.
    pub async fn image_file(&self, attachment: &str, name: &str) -> Result<ImageFile> {
        let file = self.image(attachment).await?;
        let icon = self.drawn(&file, ICON_SIDE).await?;
        let bytes = media::strip_metadata(&file)?;
        let kind = media::measure(&bytes)?.kind;
        let name = file_name(name, ending(kind));
        Ok(ImageFile { name, bytes, icon })
    }

    /// An image as a JPEG whose longer side has this many pixels at most.
    async fn drawn(&self, file: &ImageBytes, side: u32) -> Result<Vec<u8>> {
        self.unfold(file, move |image| media::thumbnail(&image, side)).await
    }

    /// Does something with the pixels of an image, in its turn and off the threads that answer windows.
    async fn unfold<T: Send + 'static>(
        &self,
        file: &ImageBytes,
        work: impl FnOnce(DecodedImage) -> media::Result<T> + Send + 'static,
    ) -> Result<T> {
        let _turn = self.previews.turn.acquire().await;
        let file = file.clone();
        Ok(blocking(move || media::decode(&file).and_then(work)).await??)
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
    let is_ending =
        |end: &str| (1..=4).contains(&end.len()) && end.chars().all(|letter| letter.is_ascii_alphanumeric());
    let stem = name
        .rsplit_once('.')
        .filter(|(_, end)| is_ending(end))
        .map_or(name, |(stem, _)| stem);
    let words = stem.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let short: String = words.join("-").chars().take(LONGEST_NAME).collect();
    match short.is_empty() {
        true => format!("image.{ending}"),
        false => format!("{short}.{ending}"),
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_file_is_called_as_its_image_and_leads_nowhere() {
        let names = [
            ("A boat in the harbour.HEIC", "A-boat-in-the-harbour.jpg"),
            ("boat.jpg", "boat.jpg"),
            ("A boat. It is red", "A-boat-It-is-red.jpg"),
            ("Fähre nach Ærø", "Fähre-nach-Ærø.jpg"),
            ("../../etc/passwd", "etc-passwd.jpg"),
            ("..", "image.jpg"),
            ("", "image.jpg"),
            ("a\0b\nc", "a-b-c.jpg"),
        ];
        for (given, wanted) in names {
            assert_eq!(file_name(given, "jpg"), wanted, "{given:?}");
        }
        assert_eq!(file_name(&"x".repeat(500), "png").len(), 84);
    }
}
