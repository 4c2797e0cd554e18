//! The body of an answer as text.

use encoding_rs::Encoding;
use net::Response;

/// Bytes of a page that are read at most.
pub(super) const MOST_READ: usize = 5_000_000;

/// How far into a page its encoding may be declared, as browsers look for it.
const DECLARATION: usize = 1024;

/// The kinds of answers that are read, as file names by which `documents` tells texts apart; `None` for others.
pub(super) fn file_name(media_type: Option<&str>) -> Option<&'static str> {
    let Some(media_type) = media_type else {
        // The text itself tells whether it is a page.
        return Some("");
    };
    match media_type {
        "text/html" | "application/xhtml+xml" => Some("page.html"),
        "text/markdown" => Some("page.md"),
        "text/csv" => Some("page.csv"),
        "application/json" | "application/xml" | "application/javascript" | "application/x-yaml" => Some("page.txt"),
        other if other.starts_with("text/") => Some("page.txt"),
        other if other.ends_with("+json") || other.ends_with("+xml") && other != "image/svg+xml" => Some("page.txt"),
        _ => None,
    }
}

/// A media type in lower case, and the encoding that stands beside it.
pub(super) fn media_type(header: &str) -> (String, Option<&str>) {
    let mut parts = header.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']))
    });
    (media_type, charset)
}

/// The first bytes of a body, and whether there were more.
pub(super) async fn read(response: &mut Response) -> net::Result<(Vec<u8>, bool)> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        let left = MOST_READ - body.len();
        if piece.len() > left {
            body.extend_from_slice(&piece[..left]);
            return Ok((body, true));
        }
        body.extend_from_slice(&piece);
    }
    Ok((body, false))
}

/// The bytes in UTF-8, if their encoding is declared; `declared` is the one of the header. Without a declaration they
/// stay as they are, without a character that was cut.
pub(super) fn as_utf8(bytes: Vec<u8>, declared: Option<&str>) -> Vec<u8> {
    let within = || Encoding::for_label(charset_within(&bytes)?);
    let of_header = declared.and_then(|label| Encoding::for_label(label.as_bytes()));
    let known = Encoding::for_bom(&bytes).map(|(encoding, _)| encoding);
    match known.or(of_header).or_else(within) {
        Some(encoding) => encoding.decode(&bytes).0.into_owned().into_bytes(),
        None => {
            let whole = match std::str::from_utf8(&bytes) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => bytes.len(),
            };
            let mut bytes = bytes;
            bytes.truncate(whole);
            bytes
        }
    }
}

/// The encoding that a page names itself: `<meta charset=…>`, or the older form, which spells it alike.
fn charset_within(page: &[u8]) -> Option<&[u8]> {
    let start = &page[..page.len().min(DECLARATION)];
    let name = b"charset=";
    let at = start
        .windows(name.len())
        .position(|window| window.eq_ignore_ascii_case(name))?;
    let value = start[at + name.len()..].trim_ascii_start();
    let value = value
        .strip_prefix(b"\"")
        .or_else(|| value.strip_prefix(b"'"))
        .unwrap_or(value);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte);
    let end = value.iter().position(|byte| !is_part(byte)).unwrap_or(value.len());
    Some(&value[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_read() {
        for (header, name) in [
            ("text/html; charset=utf-8", Some("page.html")),
            ("TEXT/HTML", Some("page.html")),
            ("application/ld+json", Some("page.txt")),
            ("text/plain", Some("page.txt")),
            ("application/rss+xml", Some("page.txt")),
            ("image/svg+xml", None),
            ("application/pdf", None),
            ("application/octet-stream", None),
            ("multipart/form-data", None),
            ("", None),
        ] {
            assert_eq!(file_name(Some(&media_type(header).0)), name, "{header}");
        }
    }

    #[test]
    fn an_encoding_is_that_of_the_mark_then_of_the_header_then_of_the_page() {
        let utf8 = |bytes: &[u8], declared| String::from_utf8(as_utf8(bytes.to_vec(), declared)).unwrap();
        let (_, declared) = media_type("text/html; a=b; Charset=\"Shift_JIS\"");
        assert_eq!(utf8(b"\x93\xfa\x96\x7b", declared), "日本");
        assert_eq!(
            utf8(b"<meta charset=\"koi8-r\">\xf0\xd2\xc9", None),
            "<meta charset=\"koi8-r\">При"
        );
        let older = b"<meta http-equiv=Content-Type content='text/html; charset=iso-8859-1'>\xe9";
        assert!(utf8(older, None).ends_with('é'));
        assert_eq!(utf8("\u{feff}é".as_bytes(), Some("latin1")), "é");
        // A wrong one loses letters and nothing else.
        assert_eq!(utf8(b"a\xe9b", Some("utf-8")), "a\u{fffd}b");
        assert_eq!(utf8("aé".as_bytes(), Some("no-such-thing")), "aé");
        assert_eq!(as_utf8(b"a\xe9b".to_vec(), None), b"a\xe9b");
        assert_eq!(as_utf8(b"ab\xe2\x82".to_vec(), None), b"ab");
    }
}
