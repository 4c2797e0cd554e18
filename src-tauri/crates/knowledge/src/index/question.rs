//! A question as the index is asked it: any of its words, because nobody who asks knows those of the documents.

use std::collections::HashSet;

use sqlite::words::{fold, is_accent, phrase, stands_alone};

use super::stop_words;

/// The most words and phrases of a question.
const TERMS: usize = 64;
/// From so many letters on a word may be the beginning of a longer one.
const BEGINNING: usize = 4;
/// Signs that stand within names and numbers.
const WITHIN: [char; 3] = ['.', '_', '@'];

/// A word or phrase of a question.
struct Term<'a> {
    text: &'a str,
    folded: String,
    /// False for what is asked for as it is: a text between quotes, or signs of a script without spaces.
    is_word: bool,
}

/// The question in the words of FTS5; `None` if it has no letter and no digit. Texts between quotes are phrases; of a
/// script without spaces every two signs that follow each other are one. Words that say nothing of what the question is
/// about are left out unless there are no others.
pub(super) fn expression(question: &str) -> Option<String> {
    let terms = terms(question);
    let words = terms
        .iter()
        .filter(|term| term.is_word)
        .map(|term| term.folded.as_str());
    let stop_words = stop_words::of(words);
    let (silent, telling): (Vec<_>, Vec<_>) = terms
        .iter()
        .partition(|term| term.is_word && stop_words.contains(&term.folded));
    let chosen = if telling.is_empty() { silent } else { telling };
    let phrases = chosen.iter().take(TERMS).map(|term| {
        let may_begin = term.is_word && term.text.chars().count() >= BEGINNING;
        phrase(term.text, may_begin)
    });
    let phrases: Vec<String> = phrases.collect();
    (!phrases.is_empty()).then(|| phrases.join(" OR "))
}

/// The words and phrases of a question, each once.
fn terms(question: &str) -> Vec<Term<'_>> {
    let mut terms = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |text, is_word| {
        let folded = fold(text).text.trim().to_owned();
        if !folded.is_empty() && seen.insert(folded.clone()) {
            terms.push(Term { text, folded, is_word });
        }
    };
    for (place, piece) in question.split('"').enumerate() {
        if place % 2 == 1 {
            add(piece, false);
        }
        for word in pieces(piece) {
            if !word.starts_with(stands_alone) {
                add(word, true);
                // Documents may write *libc* where a question has `libc.so`.
                word.split(WITHIN).for_each(|part| add(part, true));
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
    terms
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

    fn ask(question: &str) -> String {
        expression(question).unwrap_or_default()
    }

    #[test]
    fn any_word_counts_and_nothing_is_syntax() {
        assert_eq!(
            ask("Tea v2.5, NEAR(b*)"),
            r#""Tea" OR "v2.5" * OR "v2" OR "5" OR "NEAR" * OR "b""#
        );
        assert_eq!(ask("caf\u{e9} CAFE cafe\u{301}"), "\"caf\u{e9}\" *");
        assert_eq!(ask("\"green tea\" OR x"), r#""green tea" OR "green" * OR "tea" OR "x""#);
        assert_eq!(ask("東京都 is"), "\" 東  京 \" OR \" 京  都 \"");
        assert_eq!(ask("茶?"), "\" 茶 \"");
        assert_eq!(expression(" ?! \" \" \u{0}"), None);
        assert_eq!(ask(&"x1 x2 ".repeat(9)), r#""x1" OR "x2""#);
        let many: String = (0..1000).map(|word| format!("w{word} ")).collect();
        assert_eq!(ask(&many).split(" OR ").count(), TERMS);
    }

    #[test]
    fn words_that_tell_nothing_are_left_out_in_the_language_of_the_question() {
        assert_eq!(ask("How do I boil the water?"), r#""boil" * OR "water" *"#);
        assert_eq!(ask("Why doesn't it boil?"), r#""boil" *"#);
        assert_eq!(ask("Was kann ich für die Küche tun?"), r#""Küche" * OR "tun""#);
        // German words in an English question.
        assert_eq!(ask("How can I die in the game?"), r#""die" OR "game" *"#);
        assert_eq!(ask("to be or not to be"), r#""to" OR "be" OR "or" OR "not""#);
        assert_eq!(ask("\"the who\" and \"is\""), r#""the who" OR "is""#);
    }
}
