//! Pictures that clients send: inside the request alone, because no route opens an address or a file.

use std::collections::BTreeMap;

use protocol::openai::InvalidParam;
use protocol::{Content, ImageBytes, ImageDetail, Request};

use crate::fields::Fields;
use crate::refusal::Refusal;

/// The most pictures of one request.
const MOST: usize = 64;

/// The pictures of a request so far.
#[derive(Debug, Default)]
pub(crate) struct Images {
    bytes: BTreeMap<String, ImageBytes>,
    /// The place of the first one.
    first: Option<String>,
    count: usize,
    /// Whether all of them are to be looked at quickly.
    quick: bool,
}

impl Images {
    /// The picture in a data URL at this place.
    ///
    /// # Errors
    /// If the address is of another kind, or no picture that can be read.
    pub(crate) fn data_url(&mut self, url: &str, place: &str) -> Result<Content, InvalidParam> {
        let bytes = ImageBytes::from_data_url(url).map_err(|reason| invalid(place, reason))?;
        self.add(bytes, place)
    }

    /// The picture of this base64 at this place.
    ///
    /// # Errors
    /// If it is none that can be read.
    pub(crate) fn base64(&mut self, data: &str, place: &str) -> Result<Content, InvalidParam> {
        let bytes = ImageBytes::from_base64(data).ok_or_else(|| invalid(place, "this is no base64"))?;
        self.add(bytes, place)
    }

    fn add(&mut self, bytes: ImageBytes, place: &str) -> Result<Content, InvalidParam> {
        self.count += 1;
        if self.count > MOST {
            return Err(invalid(place, format!("there are more than {MOST} pictures; send fewer")));
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

    /// Notes how closely one of them is to be looked at, OpenAI's `detail`: `low`, or anything else.
    pub(crate) fn detail(&mut self, detail: Option<&str>) {
        let quick = detail == Some("low");
        self.quick = if self.count <= 1 { quick } else { self.quick && quick };
    }

    /// Gives the request its pictures; returns the place of the first.
    pub(crate) fn put_into(self, request: &mut Request) -> Option<String> {
        request.images = self.bytes;
        if self.quick {
            request.image_detail = ImageDetail::Quick;
        }
        self.first
    }
}

/// The picture of a block of Anthropic's, which holds its bytes.
///
/// # Errors
/// If it names an address or a file instead, or is no picture.
pub(crate) fn block(block: &Fields, images: &mut Images) -> Result<Content, Refusal> {
    let Some(source) = block.object("source")? else {
        return block.refuse("source", "this field is required");
    };
    match source.required_text("type")? {
        "base64" => {
            // What the bytes are is told by the bytes.
            source.text("media_type")?;
            Ok(images.base64(source.required_text("data")?, &source.path("data"))?)
        }
        other => source.refuse(
            "type",
            format!("{other:?} is not supported: no address is opened, and no file; send the picture as base64"),
        ),
    }
}

fn invalid(place: &str, reason: impl ToString) -> InvalidParam {
    InvalidParam {
        param: place.to_owned(),
        reason: reason.to_string(),
    }
}
