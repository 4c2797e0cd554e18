//! Text of messages: who wrote whom when about what, the message itself, and the names of what is attached.

mod decode;
mod headers;

use memchr::memmem;

use self::decode::{in_charset, unpacked};
use self::headers::{Headers, Value};
use super::html;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;

pub(crate) use headers::begins_as_message;

const KIND: DocumentKind = DocumentKind::Mail;

/// The most parts of a message, and how deep they may lie within each other.
const MAX_PARTS: usize = 1_000;
const MAX_DEPTH: usize = 30;

/// The longest name of an attachment, in characters.
const LONGEST_NAME: usize = 200;

/// The text of a message. Nothing that is attached to it is read.
///
/// # Errors
/// If it is broken, protected or too large.
pub(crate) fn text(bytes: &[u8], budget: &Budget) -> Result<String> {
    let (headers, body) = Headers::split(bytes);
    let mut message = Message {
        budget,
        parts: 0,
        attached: Vec::new(),
    };
    let mut text = headers.shown();
    let said = message.part(&headers, body, 0)?;
    if let Some(said) = said.filter(|said| !said.trim().is_empty()) {
        text.push('\n');
        text.push_str(said.trim_matches(['\r', '\n']));
        text.push('\n');
    }
    if !message.attached.is_empty() {
        text.push_str("\nAttachments:\n");
    }
    for name in message.attached {
        text.push_str(&format!("- {name}\n"));
    }
    Ok(text)
}

/// The reader of a message's parts.
struct Message<'b> {
    budget: &'b Budget,
    parts: usize,
    /// Names and kinds of what is attached.
    attached: Vec<String>,
}

impl Message<'_> {
    /// The text of a part, unless it is attached.
    fn part(&mut self, headers: &Headers<'_>, body: &[u8], depth: usize) -> Result<Option<String>> {
        self.budget.check()?;
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(Error::broken(KIND, "it has more parts than a message has"));
        }
        if depth > MAX_DEPTH {
            return Err(Error::broken(KIND, "its parts are nested without end"));
        }
        let content = headers.content_type();
        let kind = content.first();
        if kind == "multipart/encrypted" || (depth == 0 && kind.ends_with("pkcs7-mime")) {
            return Err(Error::Protected(KIND.name().into()));
        }
        if kind.starts_with("multipart/") {
            return self.parts(kind == "multipart/alternative", &content, body, depth);
        }
        let disposition = headers.disposition();
        let name = disposition.parameter("filename").or_else(|| content.parameter("name"));
        let name = name.filter(|name| !name.is_empty());
        let is_read = matches!(kind, "text/plain" | "text/html") && disposition.first() != "attachment";
        if !is_read || (name.is_some() && depth > 0) {
            self.attach(name, kind);
            return Ok(None);
        }
        let text = in_charset(
            &unpacked(body, &headers.encoding()),
            content.parameter("charset").as_deref(),
        );
        match kind {
            "text/html" => html::text(&text, self.budget).map(Some),
            _ if text.len() > MAX_TEXT => Err(Error::too_much_text()),
            _ => Ok(Some(text)),
        }
    }

    /// The text of parts: of alternatives the plain one, else the last, which is the richest; else one after the other.
    fn parts(&mut self, choose: bool, content: &Value, body: &[u8], depth: usize) -> Result<Option<String>> {
        let boundary = content.spelled("boundary").filter(|boundary| !boundary.is_empty());
        let unbounded = || Error::broken(KIND, "it does not say where its parts end");
        let mut all: Option<String> = None;
        let mut is_plain = false;
        for part in split(body, boundary.ok_or_else(unbounded)?) {
            let (headers, body) = Headers::split(part);
            let said = self.part(&headers, body, depth + 1)?;
            let Some(said) = said.filter(|said| !said.trim().is_empty()) else {
                continue;
            };
            match &mut all {
                Some(_) if choose && is_plain => {}
                Some(all) if !choose => {
                    all.push_str("\n\n");
                    all.push_str(&said);
                }
                _ => all = Some(said),
            }
            is_plain |= headers.content_type().first() == "text/plain";
            if all.as_ref().is_some_and(|all| all.len() > MAX_TEXT) {
                return Err(Error::too_much_text());
            }
        }
        Ok(all)
    }

    /// Notes what is attached. Pictures and styles without a name belong to a page, and are no attachments.
    fn attach(&mut self, name: Option<String>, kind: &str) {
        let name = name.map(|name| name.chars().take(LONGEST_NAME).collect::<String>());
        match name {
            Some(name) => self.attached.push(format!("{name} ({kind})")),
            None if kind.starts_with("image/") || kind == "text/css" => {}
            None => self.attached.push(kind.to_owned()),
        }
    }
}

/// The parts between lines with this boundary; more than a message has only so that they are refused.
fn split<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let mark = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut start = None;
    for at in memmem::find_iter(body, mark.as_bytes()) {
        let rest = &body[at + mark.len()..];
        let is_last = rest.starts_with(b"--");
        let line = rest.iter().position(|byte| !b" \t\r".contains(byte));
        let ends = is_last || line.is_none_or(|end| rest[end] == b'\n');
        if !ends || (at > 0 && body[at - 1] != b'\n') {
            continue;
        }
        if let Some(start) = start.take() {
            parts.push(without_end(&body[start..at.max(start)]));
        }
        if is_last || parts.len() > MAX_PARTS {
            return parts;
        }
        start = Some(at + mark.len() + line.map_or(rest.len(), |end| end + 1));
    }
    // The last boundary is lost if a message is cut.
    parts.extend(start.map(|start| &body[start..]));
    parts
}

/// The end of a line before a boundary belongs to the boundary.
fn without_end(part: &[u8]) -> &[u8] {
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    part.strip_suffix(b"\r").unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_between_lines_with_their_boundary() {
        let parts = |body: &'static str| split(body.as_bytes(), "b");
        assert_eq!(
            parts("pre\r\n--b\r\none\r\n--b \r\ntwo\r\n--b--\r\npost"),
            [b"one", b"two"]
        );
        assert_eq!(parts("--b\n--bc\nx --b\n--b"), [b"--bc\nx --b".as_slice(), b""]);
        assert_eq!(parts("--b\n--b\ncut"), [b"".as_slice(), b"cut"]);
        assert!(parts("no parts").is_empty());
        assert_eq!(parts("--b"), [b""]);
    }
}
