//! The size of passages: tokens, estimated by letters, because passages outlive the model that they are embedded by.

use crate::passages::Size;

/// Passages are made in this way; another one reads every file once more.
pub(super) const RECIPE: &str = "letters-220-30";

/// The largest passage: a page of a book has three. Embedding models read 256 tokens at least, headings among them.
const MOST: usize = 220;

/// The end of a piece that the next one repeats.
const OVERLAP: usize = 30;

/// Twentieths of a token that a sign takes, about, in the vocabularies of present models.
const LETTER: usize = 5;
const OTHER_LETTER: usize = 9;
const DIGIT: usize = 10;
const SIGN: usize = 12;
const IDEOGRAPH: usize = 20;

/// The size of passages.
pub(super) fn size() -> Size<'static> {
    Size {
        most: MOST,
        overlap: OVERLAP,
        count: &tokens,
    }
}

/// The tokens of a text, about.
pub(super) fn tokens(text: &str) -> usize {
    let twentieths: usize = text.chars().map(weight).sum();
    twentieths.div_ceil(20)
}

/// Tokens that a passage takes beside its text, for its number, its place and its fence.
pub(super) const AROUND: usize = 30;

/// The tokens of a passage as a model is given it, about.
pub(super) fn quoted_tokens(text: &str) -> usize {
    tokens(text) + AROUND
}

fn weight(letter: char) -> usize {
    match letter {
        'a'..='z' | 'A'..='Z' => LETTER,
        '0'..='9' => DIGIT,
        _ if letter.is_whitespace() => 0,
        _ if letter.is_ascii() => SIGN,
        // Chinese, Japanese and Korean have a token for a sign.
        '\u{2E80}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}' => IDEOGRAPH,
        _ if letter.is_alphabetic() => OTHER_LETTER,
        _ => IDEOGRAPH,
    }
}
