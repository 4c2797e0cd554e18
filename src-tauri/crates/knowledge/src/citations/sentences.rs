//! Sentences of an answer, and what of them can be looked up: quotations and numbers.

use std::collections::HashSet;
use std::ops::Range;

use sqlite::words::fold;

use protocol::CitationMark;

/// Quotations of fewer letters are names of things more often than words of a document.
const SHORTEST_QUOTE: usize = 4;
/// A sign of quotation that nothing closes in so many bytes is none.
const LONGEST_QUOTE: usize = 4000;
/// Pairs of signs of quotation.
const QUOTES: [(char, char); 6] = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('»', '«'), ('「', '」')];

/// The sentences of an answer in order. Marks right after the end of one belong to it.
pub(super) fn sentences(answer: &str, marks: &[CitationMark]) -> Vec<Range<usize>> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut marks = marks.iter().peekable();
    for (at, letter) in answer.char_indices() {
        let after = at + letter.len_utf8();
        let next = answer[after..].chars().next();
        let ends = match letter {
            // The number of a point in a list.
            '.' if at - start <= 4 && is_number(answer[start..at].trim()) => false,
            '.' | '!' | '?' => next.is_none_or(|next| next.is_whitespace() || matches!(next, '[' | '"' | '”' | ')')),
            '。' | '！' | '？' | '\n' => true,
            _ => false,
        };
        if !ends || at < start {
            continue;
        }
        let mut end = after;
        // Signs that close the sentence, and its marks, with spaces before them.
        if let Some(closing) = next.filter(|next| letter != '\n' && matches!(next, '"' | '”' | ')' | '」' | '»' | '“'))
        {
            end += closing.len_utf8();
        }
        loop {
            while marks.peek().is_some_and(|mark| mark.bytes.start < end) {
                marks.next();
            }
            let spaces = answer[end..].len() - answer[end..].trim_start_matches(' ').len();
            match marks
                .peek()
                .filter(|mark| letter != '\n' && mark.bytes.start == end + spaces)
            {
                Some(mark) => end = mark.bytes.end,
                None => break,
            }
        }
        push(&mut sentences, answer, start..end);
        start = end;
    }
    push(&mut sentences, answer, start..answer.len());
    sentences
}

fn push(sentences: &mut Vec<Range<usize>>, answer: &str, part: Range<usize>) {
    let text = &answer[part.clone()];
    let start = part.start + text.len() - text.trim_start().len();
    let end = part.start + text.trim_end().len();
    if start < end {
        sentences.push(start..end);
    }
}

/// A quotation or a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// As it stands in the sentence.
    pub written: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Words, folded.
    Quote(String),
    /// Digits as [`number`] makes them.
    Number(String),
}

/// The words and numbers of a passage.
pub(super) struct Known {
    folded: String,
    numbers: HashSet<String>,
}

impl Known {
    pub fn of(passage: &str) -> Self {
        Self {
            folded: format!(" {} ", fold(passage).text.trim()),
            numbers: numbers(passage).map(|(_, number)| number).collect(),
        }
    }

    /// True if the passage has the same words in the same order, or the same number.
    pub fn has(&self, claim: &Claim) -> bool {
        match &claim.kind {
            Kind::Quote(quote) => self.folded.contains(quote.as_str()),
            Kind::Number(number) => self.numbers.contains(number),
        }
    }
}

/// The quotations and numbers of a sentence. The numbers of a list, `1.`, and those within quotations are none.
pub(super) fn claims(sentence: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut rest = String::with_capacity(sentence.len());
    let mut at = 0;
    while let Some((start, open)) = sentence[at..].char_indices().find(|(_, letter)| is_opening(*letter)) {
        let (start, inside) = (at + start, at + start + open.len_utf8());
        let near = &sentence[inside..sentence.floor_char_boundary(inside + LONGEST_QUOTE)];
        let closing = QUOTES.iter().filter(|(first, _)| *first == open).map(|(_, last)| *last);
        let end = closing
            .filter_map(|close| near.find(close).map(|end| (inside + end, close)))
            .min();
        let Some((end, close)) = end else {
            rest.push_str(&sentence[at..inside]);
            at = inside;
            continue;
        };
        let quote = fold(&sentence[inside..end]).text.trim().to_owned();
        rest.push_str(&sentence[at..start]);
        match quote.chars().count() >= SHORTEST_QUOTE {
            true => claims.push(Claim {
                written: sentence[inside..end].to_owned(),
                kind: Kind::Quote(quote),
            }),
            false => rest.push_str(&sentence[start..end]),
        }
        rest.push(' ');
        at = end + close.len_utf8();
    }
    rest.push_str(&sentence[at..]);
    let list = rest.trim_start().split_once(['.', ')']).map_or("", |(first, _)| first);
    let is_list = list.len() <= 3 && is_number(list);
    let first = rest.len() - rest.trim_start().len();
    for (place, number) in numbers(&rest) {
        let counts_points = is_list && place.start == first && rest[first + list.len() + 1..].starts_with(' ');
        if !counts_points {
            claims.push(Claim {
                written: rest[place].to_owned(),
                kind: Kind::Number(number),
            });
        }
    }
    claims
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_opening(letter: char) -> bool {
    QUOTES.iter().any(|(open, _)| *open == letter)
}

/// The numbers of a text with their places: runs of digits with points, commas and colons between them. Digits within words,
/// such as `v2` and `H2O`, count, too.
fn numbers(text: &str) -> impl Iterator<Item = (Range<usize>, String)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(|letter: char| letter.is_ascii_digit())?;
        let mut end = start;
        let mut letters = text[start..].char_indices().peekable();
        while let Some((place, letter)) = letters.next() {
            let next_is_digit = letters.peek().is_some_and(|(_, next)| next.is_ascii_digit());
            match letter {
                letter if letter.is_ascii_digit() => end = start + place + 1,
                ':' | '.' | ',' | '\'' | '’' | '\u{a0}' | '\u{202f}' if next_is_digit => {}
                _ => break,
            }
        }
        at = end;
        Some((start..end, number(&text[start..end])))
    })
}

/// A number as it is compared: without what separates thousands, and with one sign before decimals. `1,500` and `1.500`
/// are the same as `1500`, because languages write them so; a passage and its answer mostly share theirs.
fn number(written: &str) -> String {
    // The time of a day, or a ratio.
    if written.contains(':') {
        return written.to_owned();
    }
    let is_digit = |letter: char| letter.is_ascii_digit();
    let parts: Vec<&str> = written.split(|letter| !is_digit(letter)).collect();
    let grouped = parts.len() > 1
        && !parts[0].is_empty()
        && parts[0].len() <= 3
        && parts[0] != "0"
        && parts[1..].iter().all(|part| part.len() == 3);
    if grouped {
        return parts.concat();
    }
    // Thousands first, decimals last: 1,234.5.
    let middle = parts.len() > 2 && parts[1..parts.len() - 1].iter().all(|part| part.len() == 3);
    let separators: Vec<char> = written.chars().filter(|letter| !is_digit(*letter)).collect();
    let differs = separators.windows(2).any(|pair| pair[0] != pair[1]);
    let joined = match middle && differs {
        true => format!("{}.{}", parts[..parts.len() - 1].concat(), parts[parts.len() - 1]),
        false => parts.join("."),
    };
    match joined.split_once('.') {
        // 2.50 is 2.5; a version such as 1.2.10 is not.
        Some((whole, decimals)) if !decimals.contains('.') => {
            let decimals = decimals.trim_end_matches('0');
            match decimals.is_empty() {
                true => whole.to_owned(),
                false => format!("{whole}.{decimals}"),
            }
        }
        _ => joined,
    }
}
