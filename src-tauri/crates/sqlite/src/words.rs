//! Words as the index and the snippets see them: without accents, in small letters, and each sign of a script without
//! spaces a word of its own, so that a part of a Chinese, Japanese, Korean or Thai sentence is found, also one of a
//! single sign.

use std::borrow::Cow;

use icu_normalizer::DecomposingNormalizerBorrowed;

/// A text as a phrase of FTS5, segmented as the index is: its words one after the other. `prefix`: the last one may be
/// the beginning of a word. <https://www.sqlite.org/fts5.html#full_text_query_syntax>
pub fn phrase(text: &str, prefix: bool) -> String {
    // Whatever a person writes is a text between quotes, of which only the quotes and a NUL mean something.
    let text: String = segmented(text)
        .chars()
        .map(|c| if matches!(c, '"' | '\0') { ' ' } else { c })
        .collect();
    format!("\"{text}\"{}", if prefix { " *" } else { "" })
}

/// The text with every sign of a script without spaces apart, as it is read into the index.
pub fn segmented(text: &str) -> Cow<'_, str> {
    if !text.chars().any(stands_alone) {
        return text.into();
    }
    let mut apart = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        match stands_alone(c) {
            true => apart.extend([' ', c, ' ']),
            false => apart.push(c),
        }
    }
    apart.into()
}

/// Signs of scripts that set no spaces between words, or, as in Korean, join endings to them.
pub fn stands_alone(c: char) -> bool {
    matches!(c as u32,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3040..=0x30FF | 0x3100..=0x312F | 0x31A0..=0x31BF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF)
}

/// A folded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The text.
    pub text: String,
    /// For each byte of it the place in the text that was folded, in bytes.
    pub from: Vec<usize>,
}

/// Small letters without accents; whatever is no letter and no digit is one space.
pub fn fold(text: &str) -> Folded {
    let nfd = DecomposingNormalizerBorrowed::new_nfd();
    let (mut folded, mut from) = (String::with_capacity(text.len()), Vec::with_capacity(text.len()));
    for (at, c) in text.char_indices() {
        let before = folded.len();
        match c.is_ascii() {
            true if c.is_ascii_alphanumeric() => folded.push(c.to_ascii_lowercase()),
            false if c.is_alphanumeric() => {
                let bare = nfd.normalize_iter(std::iter::once(c)).filter(|c| !is_accent(*c));
                folded.extend(bare.flat_map(char::to_lowercase));
            }
            // An accent that stands apart belongs to the letter before it.
            false if is_accent(c) => {}
            _ if !folded.ends_with(' ') => folded.push(' '),
            _ => {}
        }
        from.extend(std::iter::repeat_n(at, folded.len() - before));
    }
    Folded { text: folded, from }
}

/// True for an accent that is a character of its own, after its letter.
pub fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_stand_apart_and_nothing_ends_a_phrase() {
        assert_eq!(phrase("東京", true), "\" 東  京 \" *");
        assert_eq!(phrase("a\" OR \0b", false), "\"a  OR  b\"");
    }

    #[test]
    fn folding_remembers_places() {
        let folded = fold("É, b");
        assert_eq!(folded.text, "e b");
        assert_eq!(folded.from, [0, 2, 4]);
        assert_eq!(fold("cafe\u{301}").text, "cafe");
    }
}
