//! The words of a query, and the snippets in which they are marked. `sqlite::words` says what a word is.

use sqlite::words::{fold, is_accent, phrase, stands_alone};

use crate::search::plain_text::plain_text;

/// The most words and phrases of a query.
const TERMS: usize = 32;
/// The longest beginning of a word that the index holds as such (migration 7), in characters.
const INDEXED_BEGINNINGS: usize = 3;
/// How much of a text is folded at once while a place is looked for, in bytes.
const WINDOW: usize = 4096;
/// How far into a text a place is looked for, in bytes.
const SEARCHED: usize = 1 << 18;
/// How much of a text stands before the found words, in characters.
const BEFORE: usize = 40;
/// The length of a snippet, in characters.
const SNIPPET: usize = 160;
/// How much Markdown before and after the found words is read for a snippet, in bytes. It begins with a paragraph,
/// which may be longer.
const MARKDOWN_BEFORE: usize = 256;
const MARKDOWN_AFTER: usize = 1024;
/// How far before the found words a paragraph is begun at most, in bytes.
const PARAGRAPH: usize = 4096;

/// A word or a phrase of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    /// As it was written.
    written: String,
    /// As [`fold`] makes it.
    folded: String,
    /// True if a word that begins like this matches, too.
    prefix: bool,
}

/// The terms of a search: words, and phrases between quotes. A word without any letter or digit is not a term.
pub(crate) fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    for (place, piece) in text.split('"').enumerate() {
        let quoted = place % 2 == 1;
        let words: Vec<&str> = match quoted {
            true => vec![piece],
            false => piece.split_whitespace().collect(),
        };
        let term = |written: &str| Term {
            written: written.to_owned(),
            folded: fold(written).text.trim().to_owned(),
            prefix: !quoted,
        };
        terms.extend(words.into_iter().map(term).filter(|term| !term.folded.is_empty()));
    }
    terms.truncate(TERMS);
    terms
}

impl Term {
    /// The beginning of a word whose place in the index is sure, if it is longer than the beginnings that the index
    /// holds themselves. Letters other than those of ASCII may be folded in another way there.
    pub(crate) fn beginning(&self) -> Option<&str> {
        let sure = self.prefix
            && self.folded.len() > INDEXED_BEGINNINGS
            && self.written.bytes().all(|byte| byte.is_ascii_alphanumeric());
        sure.then_some(self.folded.as_str())
    }
}

/// The terms in the words of FTS5, of one column: <https://www.sqlite.org/fts5.html#full_text_query_syntax>. `words`:
/// for each term the words that are meant by it, if they are known; none: the index finds them.
pub(crate) fn expression(column: &str, terms: &[Term], words: &[Vec<String>]) -> String {
    let words_of = |(place, term): (usize, &Term)| {
        if let Some(words) = words.get(place).filter(|words| !words.is_empty()) {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            return format!("({})", words.join(" OR "));
        }
        phrase(&term.written, term.prefix)
    };
    let all: Vec<String> = terms.iter().enumerate().map(words_of).collect();
    format!("{{{column}}} : ({})", all.join(" AND "))
}

/// A model's reference as one token.
pub(crate) fn model_token(reference: &str) -> String {
    let digits: String = reference.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("m{digits}")
}

/// The byte ranges of the terms in a text, in order and disjoint.
fn places(text: &str, terms: &[Term]) -> Vec<(usize, usize)> {
    let folded = fold(text);
    let mut found: Vec<(usize, usize)> = Vec::new();
    for term in terms {
        for (at, _) in folded.text.match_indices(&term.folded) {
            let before = folded.text[..at].chars().next_back();
            let (first, after) = (
                term.folded.chars().next(),
                folded.text[at + term.folded.len()..].chars().next(),
            );
            let inside = |a: Option<char>, b: Option<char>| {
                let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !stands_alone(c));
                word(a) && word(b)
            };
            let last = term.folded.chars().next_back();
            if inside(before, first) || !term.prefix && inside(last, after) {
                continue;
            }
            let start = folded.from[at];
            let last = folded.from[at + term.folded.len() - 1];
            let end = last + text[last..].chars().next().map_or(0, char::len_utf8);
            // Accents that stand apart go with their letter.
            let accents: usize = text[end..]
                .chars()
                .take_while(|c| is_accent(*c))
                .map(char::len_utf8)
                .sum();
            found.push((start, end + accents));
        }
    }
    found.sort_unstable();
    let mut apart: Vec<(usize, usize)> = Vec::new();
    for (start, end) in found {
        match apart.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => apart.push((start, end)),
        }
    }
    apart
}

/// The first place of the terms in a text with some of the text around it, on one line, and where in it they stand, in
/// UTF-16 code units. A text in which none is found soon shows its beginning.
pub(crate) fn snippet(text: &str, terms: &[Term]) -> (String, Vec<(u32, u32)>) {
    let place = first_place(text, terms).unwrap_or(0);
    snippet_at(text, place, terms, (false, false))
}

/// [`snippet`] of Markdown, without its marks: of the paragraphs around the first place, so that a long text costs no
/// more than a short one.
pub(crate) fn snippet_of_markdown(markdown: &str, terms: &[Term]) -> (String, Vec<(u32, u32)>) {
    let place = first_place(markdown, terms).unwrap_or(0);
    let earliest = markdown.floor_char_boundary(place.saturating_sub(PARAGRAPH));
    let latest = markdown.floor_char_boundary(place.saturating_sub(MARKDOWN_BEFORE).max(earliest));
    let start = match markdown[earliest..latest].rfind("\n\n") {
        Some(at) => earliest + at + 2,
        None => earliest,
    };
    let end = markdown.ceil_char_boundary((place + MARKDOWN_AFTER).min(markdown.len()));
    let fence = open_fence(&markdown[..start]);
    let around = format!("{fence}{}", &markdown[start..end]);
    let (text, place) = plain_text(&around, fence.len() + place - start);
    snippet_at(&text, place, terms, (start > 0, end < markdown.len()))
}

/// The line that begins the block of code in which this text ends; nothing if it ends outside of one.
fn open_fence(markdown: &str) -> &'static str {
    let fences = |fence: &str| {
        markdown
            .lines()
            .filter(|line| line.trim_start().starts_with(fence))
            .count()
    };
    match (fences("```") % 2, fences("~~~") % 2) {
        (1, _) => "```\n",
        (_, 1) => "~~~\n",
        _ => "",
    }
}

/// The text around a place, on one line, and the ranges of the terms in it. `more`: true if there is text before and
/// after it.
fn snippet_at(text: &str, place: usize, terms: &[Term], more: (bool, bool)) -> (String, Vec<(u32, u32)>) {
    let before: Vec<(usize, char)> = text[..place].char_indices().rev().take(BEFORE).collect();
    let cut = before.last().map_or(place, |(at, _)| *at);
    // A word that was cut in two is left out, if that leaves any.
    let start = match text[..cut].chars().next_back() {
        Some(c) if c.is_alphanumeric() => text[cut..place]
            .find(char::is_whitespace)
            .map_or(cut, |space| cut + space),
        _ => cut,
    };
    let around: String = text[start..].chars().take(SNIPPET).collect();
    let mut line = one_line(&around);
    if start > 0 || more.0 {
        line.insert(0, '…');
    }
    if text[start..].chars().nth(SNIPPET).is_some() || more.1 {
        line.push('…');
    }
    let units = |at: usize| line[..at].encode_utf16().count() as u32;
    let marks = places(&line, terms)
        .into_iter()
        .map(|(from, to)| (units(from), units(to)))
        .collect();
    (line, marks)
}

fn first_place(text: &str, terms: &[Term]) -> Option<usize> {
    let mut start = 0;
    while start < text.len().min(SEARCHED) {
        let end = text.ceil_char_boundary((start + WINDOW).min(text.len()));
        if let Some((at, _)) = places(&text[start..end], terms).first() {
            return Some(start + at);
        }
        if end == text.len() {
            return None;
        }
        // A word may lie on the edge.
        start = text.floor_char_boundary(end - WINDOW / 8);
    }
    None
}

fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_phrases_become_one_expression_and_signs_none() {
        assert_eq!(
            expression("text", &terms(r#"tea "green tea" %"#), &[]),
            r#"{text} : ("tea" * AND "green tea")"#
        );
        assert!(terms("% _ * -- \" \" \u{0}").is_empty());
        assert_eq!(
            expression("text", &terms("東京 a\u{0}b"), &[]),
            "{text} : (\" 東  京 \" * AND \"a b\" *)"
        );
        assert_eq!(terms(&"x ".repeat(1000)).len(), TERMS);
    }

    #[test]
    fn a_snippet_marks_every_word_in_utf_16_and_only_whole_beginnings() {
        let (line, marks) = snippet("😀 Un CAFÉ, un cafe\u{301}tier, décaféiné", &terms("cafe"));
        assert_eq!(line, "😀 Un CAFÉ, un cafe\u{301}tier, décaféiné");
        let units: Vec<u16> = line.encode_utf16().collect();
        let marked: Vec<String> = marks
            .iter()
            .map(|(from, to)| String::from_utf16(&units[*from as usize..*to as usize]).unwrap())
            .collect();
        assert_eq!(marked, ["CAFÉ", "cafe\u{301}"]);
        let (line, marks) = snippet("私は東京都に住んでいます", &terms("京都"));
        assert_eq!((line.as_str(), marks), ("私は東京都に住んでいます", vec![(3, 5)]));
    }

    #[test]
    fn a_place_far_into_a_long_text_is_shown_and_none_costs_its_length() {
        let text = format!("{} needle here {}", "straw ".repeat(10_000), "hay ".repeat(1_000_000));
        let (line, marks) = snippet(&text, &terms("needl"));
        assert!(
            line.starts_with('…') && line.contains("straw needle here hay") && line.ends_with('…'),
            "{line}"
        );
        assert_eq!(marks.len(), 1);
        assert!(snippet(&text, &terms("nowhere")).0.starts_with("straw straw"));
    }
}
