//! Pictures as endpoints take them: data URLs of kinds that every server reads, without the place and the camera that a file tells of.

use std::collections::BTreeMap;

use media::Kind;
use protocol::{ImageBytes, Request};

use crate::{Error, Result};

/// The pictures of a request as data URLs, by their attachments.
pub(crate) type DataUrls = BTreeMap<String, String>;

/// The side that a picture keeps if it is made into another kind of file.
const LONGEST_SIDE: u32 = 4_096;

/// Makes data URLs of the pictures that a request shows.
///
/// # Errors
/// [`Error::Picture`] if a file cannot be read.
pub(crate) async fn data_urls(request: &Request) -> Result<DataUrls> {
    let shown: BTreeMap<String, ImageBytes> = request.shown_images().map(|(id, bytes)| (id.to_owned(), bytes.clone())).collect();
    if shown.is_empty() {
        return Ok(DataUrls::new());
    }
    let made = tokio::task::spawn_blocking(move || shown.into_iter().map(|(id, bytes)| Ok((id, data_url(&bytes)?))).collect());
    made.await.unwrap_or_else(|_| {
        Err(Error::Picture(media::Error::Broken {
            kind: "picture",
            reason: "it could not be read".into(),
        }))
    })
}

fn data_url(bytes: &ImageBytes) -> Result<String> {
    let kind = media::measure(bytes).map_err(Error::Picture)?.kind;
    match kind {
        Kind::Png | Kind::Jpeg | Kind::Webp | Kind::Gif => {
            let bare = media::strip_metadata(bytes).map_err(Error::Picture)?;
            Ok(ImageBytes::from(bare).to_data_url(kind.media_type()))
        }
        // Few servers read the others, and a picture that is encoded anew says nothing but what it shows.
        _ => {
            let picture = media::decode(bytes).map_err(Error::Picture)?;
            let jpeg = media::thumbnail(&picture, LONGEST_SIDE).map_err(Error::Picture)?;
            Ok(ImageBytes::from(jpeg).to_data_url(Kind::Jpeg.media_type()))
        }
    }
}
