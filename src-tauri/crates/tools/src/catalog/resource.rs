//! Resources of a server, read so that an odd one hides no other.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use serde_json::Value;

/// Resources of a server at most, and templates of addresses.
const MOST: usize = 2000;

/// Bytes of an address at most.
const LONGEST_URI: usize = 4 << 10;

/// Bytes of a name, a type and a description at most; what is longer is cut.
const LONGEST_TEXT: usize = 2 << 10;

/// A resource as a server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its address, or the template of one.
    pub uri: String,
    /// Its name; empty if it has none.
    pub name: String,
    /// The server's words about it.
    pub description: String,
    /// Such as `text/markdown`; empty if the server does not say.
    pub media_type: String,
    /// Its size, if the server says.
    pub bytes: Option<u64>,
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourceContent {
    /// Its type; empty if the server does not say.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The resources of pages of answers to `resources/list`.
pub fn resources_of(pages: &[Value]) -> Vec<Resource> {
    read_all(pages, "resources", "uri")
}

/// The templates of pages of answers to `resources/templates/list`.
pub fn templates_of(pages: &[Value]) -> Vec<Resource> {
    read_all(pages, "resourceTemplates", "uriTemplate")
}

fn read_all(pages: &[Value], list: &str, uri: &str) -> Vec<Resource> {
    let listed = pages.iter().filter_map(|page| page.get(list)?.as_array()).flatten();
    listed.filter_map(|resource| read(resource, uri)).take(MOST).collect()
}

fn read(resource: &Value, uri: &str) -> Option<Resource> {
    let text = |name: &str| {
        let text = resource.get(name).and_then(Value::as_str).unwrap_or_default();
        text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned()
    };
    let uri = resource.get(uri)?.as_str()?;
    if uri.is_empty() || uri.len() > LONGEST_URI {
        return None;
    }
    let title = text("title");
    Some(Resource {
        uri: uri.to_owned(),
        name: if title.is_empty() { text("name") } else { title },
        description: text("description"),
        media_type: text("mimeType"),
        bytes: resource.get("size").and_then(Value::as_u64),
    })
}

/// The content in the answer to `resources/read`: its texts one below the other, or the first of its files. `None` if
/// there is none.
pub fn content_of(answer: &Value) -> Option<ResourceContent> {
    let contents = answer.get("contents")?.as_array()?;
    let mut found: Option<ResourceContent> = None;
    for content in contents {
        let field = |name: &str| content.get(name).and_then(Value::as_str);
        let media_type = field("mimeType").unwrap_or_default().to_owned();
        match (field("text"), field("blob"), &mut found) {
            (Some(text), _, None) => {
                let bytes = text.as_bytes().to_vec();
                found = Some(ResourceContent { media_type, bytes });
            }
            // A folder, whose files are listed one after the other.
            (Some(text), _, Some(found)) => {
                found.bytes.extend_from_slice(b"\n\n");
                found.bytes.extend_from_slice(text.as_bytes());
            }
            (None, Some(blob), None) => {
                let bytes = STANDARD.decode(blob.trim()).ok()?;
                return Some(ResourceContent { media_type, bytes });
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_odd_resource_hides_no_other() {
        let page = json!({ "resources": [
            { "uri": "file:///a.md", "name": "a", "title": "A", "mimeType": "text/markdown", "size": 7 },
            { "name": "no address" }, 7, { "uri": 7 }, { "uri": "" }, { "uri": "x".repeat(LONGEST_URI + 1) },
            { "uri": "memo://1", "name": 3, "description": "é".repeat(LONGEST_TEXT), "size": -1 },
        ] });
        let resources = resources_of(&[page, json!({}), json!({ "resources": "none" }), json!(null)]);
        let [a, memo] = &resources[..] else {
            panic!("{resources:?}")
        };
        assert_eq!(
            (a.name.as_str(), a.media_type.as_str(), a.bytes),
            ("A", "text/markdown", Some(7))
        );
        assert_eq!(
            (memo.name.as_str(), memo.bytes, memo.description.len()),
            ("", None, LONGEST_TEXT)
        );
        let many: Vec<Value> = (0..MOST + 5)
            .map(|place| json!({ "uri": format!("a:{place}") }))
            .collect();
        assert_eq!(resources_of(&[json!({ "resources": many })]).len(), MOST);
        let template = json!({ "resourceTemplates": [{ "uriTemplate": "file:///{path}", "name": "Files" }] });
        assert_eq!(templates_of(&[template])[0].uri, "file:///{path}");
    }

    #[test]
    fn a_content_is_its_texts_or_its_first_file() {
        let texts = json!({ "contents": [
            { "uri": "a", "mimeType": "text/plain", "text": "one" }, { "uri": "b", "text": "two" }, { "uri": "c", "blob": "AAAA" },
        ] });
        let content = content_of(&texts).unwrap();
        assert_eq!(
            (content.media_type.as_str(), &content.bytes[..]),
            ("text/plain", &b"one\n\ntwo"[..])
        );
        let file =
            json!({ "contents": [{ "uri": "a" }, { "blob": "AAEC", "mimeType": "image/png" }, { "blob": "AAAA" }] });
        assert_eq!(content_of(&file).unwrap().bytes, [0, 1, 2]);
        for none in [
            json!({}),
            json!({ "contents": [] }),
            json!({ "contents": [{ "blob": "no base64" }] }),
            json!({ "contents": [7] }),
        ] {
            assert_eq!(content_of(&none), None, "{none}");
        }
    }
}
