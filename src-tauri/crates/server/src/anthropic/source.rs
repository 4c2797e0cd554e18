//! The bytes and texts of image and document blocks. Inline only, because no route opens an address or a file.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use protocol::Content;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::http::error_body::Refusal;
use crate::request::conversation::lines;
use crate::request::fields::Fields;
use crate::request::images::Images;
use crate::request::values::TextOrList;

type Result<T> = std::result::Result<T, Refusal>;

/// The source of an image or a document.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Source {
    r#type: String,
    /// Ignored: the bytes tell their format.
    #[serde(rename = "media_type")]
    _media_type: Option<String>,
    data: Option<String>,
    /// The text of a document of type `content`.
    content: Option<TextOrList<SourceText>>,
}

/// A part of a document's text.
#[derive(Debug, Deserialize, JsonSchema)]
struct SourceText {
    r#type: String,
    text: Option<String>,
}

impl Source {
    /// The image, in the field `source` of this block.
    ///
    /// # Errors
    /// If it names an address or a file instead, or is no image.
    pub(crate) fn image(&self, block: &Fields, images: &mut Images) -> Result<Content> {
        if self.r#type != "base64" {
            return self.unsupported(block, "send the image as base64");
        }
        let data = block.require("source.data", self.data.as_deref())?;
        Ok(images.base64(data, &block.path("source.data"))?)
    }

    /// The document, in the field `source` of this block, as text that a model is given: quoted, below its name.
    ///
    /// # Errors
    /// If it names an address or a file instead, or cannot be read.
    pub(crate) fn document(self, block: &Fields, title: Option<&str>) -> Result<String> {
        let name = title.unwrap_or("document");
        let text = match self.r#type.as_str() {
            "base64" => {
                let data = block.require("source.data", self.data)?;
                let read = STANDARD.decode(data).map_err(|_| "this is no base64".to_owned());
                let read = read.and_then(|bytes| documents::read(bytes, name).map_err(|error| error.to_string()));
                read.or_else(|reason| block.refuse("source.data", reason))?.text
            }
            "text" => block.require("source.data", self.data)?,
            "content" => self.text(block)?,
            _ => return self.unsupported(block, "send the document as base64 or text"),
        };
        Ok(documents::quoted(name, &text, None))
    }

    fn text(&self, block: &Fields) -> Result<String> {
        let parts = match &self.content {
            Some(TextOrList::Text(text)) => return Ok(text.clone()),
            Some(TextOrList::List(parts)) => parts,
            None => return block.refuse("source.content", "this is neither a text nor a list of texts"),
        };
        let text = |at: &Fields| {
            let part: SourceText = at.read()?;
            match part.r#type.as_str() {
                "text" => at.require("text", part.text),
                other => at.refuse(
                    "type",
                    format!("a part of type {other:?} is not supported; send images as blocks of their own"),
                ),
            }
        };
        let source = block.value("source").unwrap_or(&Value::Null);
        let texts = parts.elements(&Fields::of(source, block.path("source"))?, "content")?;
        Ok(lines(texts.iter().map(text).collect::<Result<Vec<_>>>()?))
    }

    fn unsupported<T>(&self, block: &Fields, instead: &str) -> Result<T> {
        let reason = format!(
            "{:?} is not supported: no address is opened, and no file; {instead}",
            self.r#type
        );
        block.refuse("source.type", reason)
    }
}
