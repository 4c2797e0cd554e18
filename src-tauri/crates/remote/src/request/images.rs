//! Images as endpoints take them: data URLs of formats that every server reads, without the metadata of a file.

use std::collections::BTreeMap;

use media::Kind;
use protocol::{ImageBytes, Request};

use crate::error::{Error, Result};

/// The images of a request as data URLs, by their attachments.
pub(crate) type DataUrls = BTreeMap<String, String>;

/// The longest side of an image that is encoded again, in pixels.
const LONGEST_SIDE: u32 = 4_096;

/// Encodes the images that a request shows as data URLs.
///
/// # Errors
/// [`Error::Image`] if a file cannot be read.
pub(crate) async fn data_urls(request: &Request) -> Result<DataUrls> {
    let shown: BTreeMap<String, ImageBytes> = request
        .shown_images()
        .map(|(id, bytes)| (id.to_owned(), bytes.clone()))
        .collect();
    if shown.is_empty() {
        return Ok(DataUrls::new());
    }
    let made = tokio::task::spawn_blocking(move || {
        shown
            .into_iter()
            .map(|(id, bytes)| Ok((id, data_url(&bytes)?)))
            .collect()
    });
    made.await.unwrap_or_else(|_| {
        Err(Error::Image(media::Error::Broken {
            kind: "image".into(),
            reason: "it could not be read".into(),
        }))
    })
}

fn data_url(bytes: &ImageBytes) -> Result<String> {
    let kind = media::measure(bytes).map_err(Error::Image)?.kind;
    match kind {
        Kind::Png | Kind::Jpeg | Kind::Webp | Kind::Gif => {
            let bare = media::strip_metadata(bytes).map_err(Error::Image)?;
            Ok(ImageBytes::from(bare).to_data_url(kind.media_type()))
        }
        // Few servers read the other formats, and an image that is encoded again carries no metadata.
        _ => {
            let image = media::decode(bytes).map_err(Error::Image)?;
            let jpeg = media::thumbnail(&image, LONGEST_SIDE).map_err(Error::Image)?;
            Ok(ImageBytes::from(jpeg).to_data_url(Kind::Jpeg.media_type()))
        }
    }
}
