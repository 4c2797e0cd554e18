//! Images of a request: inline only, because no route opens an address or a file.

use std::collections::BTreeMap;

use openai_wire::InvalidParam;
use protocol::{Content, ImageBytes, ImageDetail, Request};

/// The maximum number of images of one request.
const MOST: usize = 64;

/// The images of a request.
#[derive(Debug, Default)]
pub(crate) struct Images {
    bytes: BTreeMap<String, ImageBytes>,
    /// The path of the first one.
    first: Option<String>,
    count: usize,
    /// True if all of them have low detail.
    quick: bool,
}

impl Images {
    /// Adds the image of a data URL at this path.
    ///
    /// # Errors
    /// If the URL is of another kind, or the image cannot be decoded.
    pub(crate) fn data_url(&mut self, url: &str, place: &str) -> Result<Content, InvalidParam> {
        let bytes = ImageBytes::from_data_url(url).map_err(|reason| invalid(place, reason))?;
        self.add(bytes, place)
    }

    /// Adds the image of base64 data at this path.
    ///
    /// # Errors
    /// If the image cannot be decoded.
    pub(crate) fn base64(&mut self, data: &str, place: &str) -> Result<Content, InvalidParam> {
        let bytes = ImageBytes::from_base64(data).ok_or_else(|| invalid(place, "this is no base64"))?;
        self.add(bytes, place)
    }

    fn add(&mut self, bytes: ImageBytes, place: &str) -> Result<Content, InvalidParam> {
        self.count += 1;
        if self.count > MOST {
            return Err(invalid(place, format!("there are more than {MOST} images; send fewer")));
        }
        let measured = media::measure(&bytes).map_err(|error| invalid(place, error))?;
        self.first.get_or_insert_with(|| place.to_owned());
        let attachment = bytes.id();
        self.bytes.insert(attachment.clone(), bytes);
        Ok(Content::Image {
            attachment,
            media_type: measured.kind.media_type().to_owned(),
            width: measured.width,
            height: measured.height,
            alt: String::new(),
        })
    }

    /// Records the detail of the last image, OpenAI's `detail`: `low`, or anything else.
    pub(crate) fn detail(&mut self, detail: Option<&str>) {
        let quick = detail == Some("low");
        self.quick = if self.count <= 1 { quick } else { self.quick && quick };
    }

    /// Moves the images into the request; returns the path of the first.
    pub(crate) fn put_into(self, request: &mut Request) -> Option<String> {
        request.images = self.bytes;
        if self.quick {
            request.image_detail = ImageDetail::Quick;
        }
        self.first
    }
}

fn invalid(place: &str, reason: impl ToString) -> InvalidParam {
    InvalidParam {
        param: place.to_owned(),
        reason: reason.to_string(),
    }
}
