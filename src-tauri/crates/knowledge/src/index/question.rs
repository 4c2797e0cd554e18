//! A question as the index is asked it: any of its words, because nobody who asks knows those of the documents.

use std::collections::HashSet;

use sqlite::words::{fold, is_accent, phrase, stands_alone};

/// The most words and phrases of a question.
const TERMS: usize = 64;
/// From so many letters on a word may be the beginning of a longer one.
const BEGINNING: usize = 4;
/// Signs that stand within words and numbers.
const WITHIN: [char; 7] = ['.', ',', '\'', '’', '-', '_', '@'];

/// The question in the words of FTS5; `None` if it has no letter and no digit. Texts between quotes are phrases; of a
/// script without spaces every two signs that follow each other are one.
pub(super) fn expression(question: &str) -> Option<String> {
    let mut terms = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |text: &str, prefix: bool| {
        let folded = fold(text).text.trim().to_owned();
        if !folded.is_empty() && seen.insert(folded) {
            terms.push(phrase(text, prefix));
        }
    };
    for (place, piece) in question.split('"').enumerate() {
        if place % 2 == 1 {
            add(piece, false);
        }
        for word in pieces(piece) {
            if !word.starts_with(stands_alone) {
                add(word, word.chars().count() >= BEGINNING);
                continue;
            }
            let signs: Vec<(usize, char)> = word.char_indices().collect();
            match signs.len() {
                1 => add(word, false),
                _ => signs.windows(2).for_each(|pair| {
                    let end = pair[1].0 + pair[1].1.len_utf8();
                    add(&word[pair[0].0..end], false);
                }),
            }
        }
    }
    terms.truncate(TERMS);
    (!terms.is_empty()).then(|| terms.join(" OR "))
}

/// The words of a text, and its runs of signs that stand alone.
fn pieces(text: &str) -> Vec<&str> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Word,
        Sign,
        Other,
    }
    let mut pieces = Vec::new();
    let (mut start, mut last) = (0, Kind::Other);
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, letter)| *letter);
        let joins = WITHIN.contains(&letter) && next.is_some_and(|next| next.is_alphanumeric() && !stands_alone(next));
        let kind = match letter {
            letter if stands_alone(letter) => Kind::Sign,
            letter if letter.is_alphanumeric() => Kind::Word,
            letter if last == Kind::Word && (joins || is_accent(letter)) => Kind::Word,
            _ => Kind::Other,
        };
        if kind != last {
            if last != Kind::Other {
                pieces.push(&text[start..at]);
            }
            start = at;
        }
        last = kind;
    }
    if last != Kind::Other {
        pieces.push(&text[start..]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_word_counts_and_nothing_is_syntax() {
        let ask = |question: &str| expression(question).unwrap_or_default();
        assert_eq!(
            ask("How do I do v2.5, OR?"),
            r#""How" OR "do" OR "I" OR "v2.5" * OR "OR""#
        );
        assert_eq!(ask("caf\u{e9} CAFE cafe\u{301}"), "\"caf\u{e9}\" *");
        assert_eq!(
            ask("a \"green tea\" NEAR(b*)"),
            r#""a" OR "green tea" OR "green" * OR "tea" OR "NEAR" * OR "b""#
        );
        assert_eq!(ask("東京都 is"), "\" 東  京 \" OR \" 京  都 \" OR \"is\"");
        assert_eq!(ask("茶?"), "\" 茶 \"");
        assert_eq!(expression(" ?! \" \" \u{0}"), None);
        assert_eq!(ask(&"x1 x2 ".repeat(9)), r#""x1" OR "x2""#);
        let many: String = (0..1000).map(|word| format!("w{word} ")).collect();
        assert_eq!(ask(&many).split(" OR ").count(), TERMS);
    }
}
