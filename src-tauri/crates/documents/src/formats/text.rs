//! Text files and their encodings.

use std::borrow::Cow;

use encoding_rs::{Encoding, WINDOWS_1252};

use crate::error::{Error, Result};
use crate::excerpt::PAGE_BREAK;
use crate::kind::DocumentKind;

/// How much of a file tells whether it is text.
const SAMPLE: usize = 64 * 1024;

/// Of how many bytes one may be a control character, in a text.
const CONTROL_SHARE: usize = 100;

/// True if a file holds text in a supported encoding.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    if Encoding::for_bom(bytes).is_some() {
        return true;
    }
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let control = |byte: &&u8| (**byte < 0x20 && !b"\t\n\r\x0c\x1b\x08".contains(byte)) || **byte == 0x7f;
    !sample.contains(&0) && sample.iter().filter(control).count() * CONTROL_SHARE <= sample.len()
}

/// The text of a file: as its byte order mark says, else UTF-8, else what Windows wrote before it.
///
/// # Errors
/// `Broken` if its encoding is not kept to.
pub(crate) fn decode(bytes: &[u8]) -> Result<String> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let (text, broken) = encoding.decode_without_bom_handling(&bytes[mark..]);
        let reason = format!("it says that it is {}, and is not", encoding.name());
        return match broken {
            true => Err(Error::broken(DocumentKind::Text, reason)),
            false => Ok(text.into_owned()),
        };
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) if bytes.contains(&0) => Err(Error::broken(DocumentKind::Text, "it holds bytes that are no text")),
        Err(_) => Ok(WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned()),
    }
}

/// The text with line feeds alone, without spaces at ends of lines, and without control characters.
pub(crate) fn tidy(text: &str) -> String {
    let text: Cow<'_, str> = match text.contains('\r') {
        true => text.replace("\r\n", "\n").replace('\r', "\n").into(),
        false => text.into(),
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split('\n') {
        let letters = line.trim_end_matches([' ', '\t']).chars();
        out.extend(letters.filter(|letter| is_kept(*letter)));
        out.push('\n');
    }
    out.pop();
    out
}

fn is_kept(letter: char) -> bool {
    letter == '\t' || letter == PAGE_BREAK || !letter.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_of_files_become_one() {
        let utf16: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain("Grüße".encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        assert_eq!(decode(&utf16).as_deref(), Ok("Grüße"));
        assert_eq!(decode(b"Gr\xfc\xdfe \x80").as_deref(), Ok("Grüße €"));
        assert_eq!(decode("\u{feff}Grüße".as_bytes()).as_deref(), Ok("Grüße"));
        assert!(is_text(&utf16) && is_text(b"Gr\xfc\xdfe") && !is_text(b"a\0b") && !is_text(&[1; 100]));
        assert!(decode(b"\xff\xfe\x00\xd8\x00\xd8").is_err());
    }

    #[test]
    fn only_line_feeds_and_tabs_are_left_of_control_characters() {
        assert_eq!(tidy("a \r\nb\rc\u{1b}[31m\td\0\u{85}"), "a\nb\nc[31m\td");
        assert_eq!(tidy("a\n\n"), "a\n\n");
    }
}
