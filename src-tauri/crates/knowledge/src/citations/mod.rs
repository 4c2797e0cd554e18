//! Holding an answer against the passages that it was given: by strings and numbers alone, without a model. It finds
//! what is certainly not in a passage; it cannot say that a sentence follows from one.

mod sentences;

use std::ops::Range;

use protocol::{citation_marks, CitationMark};
use sentences::{claims, sentences, Known};

/// An answer with its marks checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The marks in their order.
    pub citations: Vec<Citation>,
    /// Places in bytes of sentences that quote or name numbers, and have no mark.
    pub unmarked: Vec<Range<usize>>,
}

/// A mark such as `[2]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// Its place in the answer, in bytes.
    pub bytes: Range<usize>,
    /// The sentence that it stands in, or after; in bytes of the answer.
    pub sentence: Range<usize>,
    /// The number of the passage, from 1.
    pub passage: usize,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict of strings on a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is no passage of this number.
    Dangling,
    /// Every quotation and number of the sentence is in a passage that it names.
    Supported,
    /// The sentence quotes nothing and names no number, so strings say nothing.
    Unchecked,
    /// These quotations and numbers of the sentence are in none of the passages that it names.
    Unsupported(Vec<String>),
}

/// Checks the marks of an answer, which was given these texts as passages 1, 2 and so on. Marks in code are none. A
/// sentence with several marks is held against all of their passages together.
pub fn check(answer: &str, passages: &[&str]) -> Checked {
    let all = citation_marks(answer);
    let known: Vec<Known> = passages.iter().map(|passage| Known::of(passage)).collect();
    let mut checked = Checked::default();
    let mut rest = all.as_slice();
    for sentence in sentences(answer, &all) {
        let own = rest.iter().take_while(|mark| mark.bytes.start < sentence.end).count();
        let (own, later) = rest.split_at(own);
        rest = later;
        let claims = claims(&without(answer, &sentence, own));
        if own.is_empty() {
            if !claims.is_empty() {
                checked.unmarked.push(sentence);
            }
            continue;
        }
        let named: Vec<&Known> = own.iter().filter_map(|mark| passage(&known, mark.number)).collect();
        let missing: Vec<String> = claims
            .iter()
            .filter(|claim| !named.iter().any(|passage| passage.has(claim)))
            .map(|claim| claim.written.clone())
            .collect();
        for mark in own {
            let verdict = match passage(&known, mark.number) {
                None => Verdict::Dangling,
                Some(_) if claims.is_empty() => Verdict::Unchecked,
                Some(_) if missing.is_empty() => Verdict::Supported,
                Some(_) => Verdict::Unsupported(missing.clone()),
            };
            checked.citations.push(Citation {
                bytes: mark.bytes.clone(),
                sentence: sentence.clone(),
                passage: mark.number,
                verdict,
            });
        }
    }
    checked
}

fn passage(passages: &[Known], number: usize) -> Option<&Known> {
    passages.get(number.checked_sub(1)?)
}

/// A sentence without its marks, whose numbers are none of its own.
fn without(answer: &str, sentence: &Range<usize>, marks: &[CitationMark]) -> String {
    let mut text = String::new();
    let mut at = sentence.start;
    for mark in marks {
        text.push_str(&answer[at..mark.bytes.start.max(at)]);
        text.push(' ');
        at = mark.bytes.end.max(at);
    }
    text.push_str(&answer[at.min(sentence.end)..sentence.end]);
    text
}

#[cfg(test)]
mod tests;
