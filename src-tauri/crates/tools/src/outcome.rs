//! The result of a call, read so that nothing odd in it loses the rest.

use protocol::{cut_result, most_of_result, Content, ImageBytes};
use serde_json::Value;

/// The words for a page that a server wants to show in the chat (*MCP Apps*).
const NO_APPS: &str = "[an interactive page (MCP App), which Ponder does not show]";

/// Parts of a result that are read.
const MOST_PARTS: usize = 256;

/// Images of a result that are kept.
const MOST_IMAGES: usize = 8;

/// Bytes of the images of a result that are kept.
const MOST_IMAGE_BYTES: usize = 32 << 20;

/// A part of a result. None of it is loaded from anywhere.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultPart {
    /// Text, or a file of text that came along.
    Text(String),
    /// An image or a sound that came along.
    Media {
        /// Such as `image/png`.
        media_type: String,
        /// Base64, as it came.
        base64: String,
    },
    /// A resource that is only named.
    Link {
        /// Its address.
        uri: String,
        /// Its name.
        name: String,
    },
    /// Passages of documents, as [`Content::Passages`].
    Passages(Content),
    /// A part of a kind that is not known, as JSON.
    Other(Value),
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Its parts, in order.
    pub parts: Vec<ResultPart>,
    /// The result as data, if there is one.
    pub structured: Option<Value>,
    /// The tool itself says that it failed.
    pub is_error: bool,
}

impl Outcome {
    /// Reads the answer to `tools/call` (`CallToolResult` in the Model Context Protocol).
    pub fn read(answer: &Value) -> Self {
        let content = answer.get("content").and_then(Value::as_array);
        let mut parts: Vec<ResultPart> = content
            .into_iter()
            .flatten()
            .take(MOST_PARTS)
            .map(ResultPart::read)
            .collect();
        let structured = answer.get("structuredContent").filter(|data| !data.is_null()).cloned();
        if parts.is_empty() && structured.is_none() && content.is_none() {
            // Not a result at all; whoever asked sees what came.
            parts.push(ResultPart::Other(answer.clone()));
        }
        Self {
            parts,
            structured,
            is_error: answer.get("isError").and_then(Value::as_bool).unwrap_or(false),
        }
    }

    /// The result of a call that did not come to one.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            parts: vec![ResultPart::Text(reason.into())],
            structured: None,
            is_error: true,
        }
    }

    /// Takes the images out, as many as are kept; a line stands for each of the others.
    pub fn take_images(&mut self) -> Vec<ImageBytes> {
        let (mut images, mut bytes) = (Vec::new(), 0);
        self.parts.retain(|part| {
            let ResultPart::Media { media_type, base64 } = part else {
                return true;
            };
            // Four letters are three bytes: nothing is decoded that would be too large.
            let fits = images.len() < MOST_IMAGES && bytes + base64.len() / 4 * 3 <= MOST_IMAGE_BYTES;
            let image = match fits && media_type.starts_with("image/") {
                true => ImageBytes::from_base64(base64.trim()).filter(|image| !image.is_empty()),
                false => None,
            };
            let Some(image) = image else { return true };
            bytes += image.len();
            images.push(image);
            false
        });
        images
    }

    /// Takes the passages out.
    pub fn take_passages(&mut self) -> Vec<Content> {
        let mut passages = Vec::new();
        self.parts.retain(|part| match part {
            ResultPart::Passages(found) => {
                passages.push(found.clone());
                false
            }
            _ => true,
        });
        passages
    }

    /// The one text that a model is given, at most `most` bytes of it: the texts, or the data where there are none, and a
    /// line for everything else. Templates print parts of other kinds in ways that no model knows.
    pub fn for_model(&self, most: usize) -> String {
        self.text(most.min(most_of_result(None)))
    }

    /// [`Outcome::for_model`] with any limit: what a person reads.
    pub fn text(&self, most: usize) -> String {
        let mut pieces: Vec<String> = self.parts.iter().filter_map(ResultPart::for_model).collect();
        let has_text = self.parts.iter().any(|part| matches!(part, ResultPart::Text(_)));
        if let (false, Some(data)) = (has_text, &self.structured) {
            pieces.insert(0, data.to_string());
        }
        cut_result(pieces.join("\n"), most)
    }
}

impl ResultPart {
    /// Reads a part of a result, or of a message of a prompt.
    pub(crate) fn read(part: &Value) -> Self {
        let text = |name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
        let resource = part.get("resource");
        let of_resource = |name: &str| {
            resource
                .and_then(|resource| resource.get(name)?.as_str())
                .map(str::to_owned)
        };
        let read = match part.get("type").and_then(Value::as_str) {
            // The page of an MCP App.
            Some("resource") if of_resource("uri").is_some_and(|uri| uri.starts_with("ui://")) => {
                Some(Self::Text(NO_APPS.to_owned()))
            }
            Some("text") => text("text").map(Self::Text),
            Some("image" | "audio") => text("data").map(|base64| Self::Media {
                media_type: text("mimeType").unwrap_or_default(),
                base64,
            }),
            Some("resource_link") => text("uri").map(|uri| Self::Link {
                name: text("name").unwrap_or_default(),
                uri,
            }),
            Some("resource") => of_resource("text").map(Self::Text).or_else(|| {
                Some(Self::Media {
                    media_type: of_resource("mimeType").unwrap_or_default(),
                    base64: of_resource("blob")?,
                })
            }),
            _ => None,
        };
        read.unwrap_or_else(|| Self::Other(part.clone()))
    }

    /// Its text, or a line that stands for it.
    pub(crate) fn for_model(&self) -> Option<String> {
        Some(match self {
            Self::Text(text) => text.clone(),
            Self::Media { media_type, .. } if media_type.is_empty() => "[media]".to_owned(),
            Self::Media { media_type, .. } => format!("[{media_type}]"),
            Self::Link { uri, name } if name.is_empty() => format!("[link: {uri}]"),
            Self::Link { uri, name } => format!("[link: {name}, {uri}]"),
            Self::Passages(passages) => passages.as_text()?.into_owned(),
            Self::Other(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_part_loses_no_other() {
        let outcome = Outcome::read(&json!({ "content": [
            { "type": "text", "text": "four" },
            { "type": "hologram", "data": 1 },
            { "type": "text" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
            { "type": "resource_link", "uri": "https://example.org", "name": "page" },
        ], "isError": "yes" }));
        assert_eq!(outcome.parts.len(), 6);
        assert!(matches!(outcome.parts[1], ResultPart::Other(_)) && matches!(outcome.parts[2], ResultPart::Other(_)));
        assert!(!outcome.is_error);
        let expected = "four\n[image/png]\ninside\n[link: page, https://example.org]";
        assert_eq!(outcome.for_model(1000), expected);
    }

    #[test]
    fn a_page_of_a_server_is_refused_with_a_word() {
        let page = json!({ "uri": "ui://app/main", "mimeType": "text/html", "text": "<script>steal()</script>" });
        let outcome = Outcome::read(&json!({ "content": [{ "type": "resource", "resource": page }] }));
        assert_eq!(outcome.for_model(1000), NO_APPS);
    }

    #[test]
    fn data_stands_for_texts_where_there_are_none() {
        let data = Outcome::read(&json!({ "content": [], "structuredContent": { "sum": 4 } }));
        assert_eq!(data.for_model(1000), r#"{"sum":4}"#);
        let both = json!({ "content": [{ "type": "text", "text": "4" }], "structuredContent": { "sum": 4 } });
        assert_eq!(Outcome::read(&both).for_model(1000), "4");
        for odd in [json!(null), json!(7), json!({ "content": "text" }), json!([1])] {
            assert_eq!(Outcome::read(&odd).parts, [ResultPart::Other(odd.clone())]);
        }
    }

    #[test]
    fn images_are_taken_out_as_far_as_they_are_kept() {
        let image = |data: &str, kind: &str| json!({ "type": "image", "data": data, "mimeType": kind });
        let mut outcome = Outcome::read(&json!({ "content": [
            image("AAAA", "image/png"), { "type": "text", "text": "a map" }, image("no base64", "image/png"),
            image("", "image/png"), image("AAAA", "text/html"),
            { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "file:///a.png", "blob": "AAAB", "mimeType": "image/png" } },
        ] }));
        let images = outcome.take_images();
        assert_eq!(images.len(), 2);
        assert_eq!(&images[1][..], [0, 0, 1]);
        assert_eq!(
            outcome.text(1000),
            "a map\n[image/png]\n[image/png]\n[text/html]\n[audio/wav]"
        );
        let many = vec![image("AAAA", "image/png"); 20];
        let mut outcome = Outcome::read(&json!({ "content": many }));
        assert_eq!(outcome.take_images().len(), MOST_IMAGES);
        assert_eq!(outcome.text(1000).lines().count(), 20 - MOST_IMAGES);
        let large = "A".repeat(MOST_IMAGE_BYTES);
        let mut outcome =
            Outcome::read(&json!({ "content": [image(&large, "image/png"), image(&large, "image/png")] }));
        assert_eq!((outcome.take_images().len(), outcome.parts.len()), (1, 1));
    }

    #[test]
    fn a_long_result_is_cut() {
        let outcome = Outcome::read(&json!({ "content": [{ "type": "text", "text": "ä".repeat(40_000) }] }));
        for most in [100, 101, 1 << 20] {
            let text = outcome.for_model(most);
            assert!(
                text.len() <= most.min(32 << 10) && text.contains("[cut: "),
                "{}",
                text.len()
            );
        }
    }
}
