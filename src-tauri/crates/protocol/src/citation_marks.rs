//! Marks such as `[1]`, `[1, 3]` and `[2-4]` in an answer, which cite passages by their numbers.

use std::ops::Range;

/// The most passages of one mark; a longer list is no mark.
const MOST: usize = 32;

/// A mark of one passage. Those of one list have the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitationMark {
    /// Its place in the answer, brackets included.
    pub bytes: Range<usize>,
    /// The number of the passage.
    pub number: usize,
}

/// The marks of an answer in their order, without those in code, and without links, whose words stand in such brackets,
/// too.
pub fn citation_marks(answer: &str) -> Vec<CitationMark> {
    let mut marks = Vec::new();
    let code = code(answer);
    let mut spans = code.iter().peekable();
    let mut at = 0;
    while let Some(found) = answer[at..].find('[') {
        let start = at + found;
        at = start + 1;
        while spans.peek().is_some_and(|span| span.end <= start) {
            spans.next();
        }
        if let Some(span) = spans.peek().filter(|span| span.start <= start) {
            at = span.end;
            continue;
        }
        // The longest list is short, so a bracket that nothing closes costs little.
        let inside = answer[at..].find([']', '[', '\n']).map(|end| at..at + end);
        let Some(inside) = inside.filter(|inside| answer[inside.end..].starts_with(']')) else {
            continue;
        };
        let end = inside.end + 1;
        let begins_line = answer[..start].ends_with('\n') || start == 0;
        let is_link = answer[end..].starts_with('(') || begins_line && answer[end..].starts_with(':');
        let Some(numbers) = numbers(&answer[inside]).filter(|_| !is_link) else {
            continue;
        };
        let mark = |number| CitationMark {
            bytes: start..end,
            number,
        };
        marks.extend(numbers.into_iter().map(mark));
        at = end;
    }
    marks
}

/// The numbers of a list; `None` if it is anything else.
fn numbers(list: &str) -> Option<Vec<usize>> {
    let number = |text: &str| {
        let text = text.trim();
        let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<usize>().ok()).flatten()
    };
    let mut numbers = Vec::new();
    for part in list.split([',', ';']) {
        match part.split_once(['-', '–']) {
            None => numbers.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last || last - first >= MOST {
                    return None;
                }
                numbers.extend(first..=last);
            }
        }
        if numbers.len() > MOST {
            return None;
        }
    }
    Some(numbers)
}

/// The places of code between backticks: fences and words.
fn code(answer: &str) -> Vec<Range<usize>> {
    let bytes = answer.as_bytes();
    let run = |at: usize| bytes[at..].iter().take_while(|byte| **byte == b'`').count();
    let mut runs = Vec::new();
    let mut at = 0;
    while let Some(found) = answer[at..].find('`') {
        let length = run(at + found);
        runs.push((at + found, length));
        at += found + length;
    }
    let mut spans = Vec::new();
    let mut open = 0;
    // The next run of each length, so that many runs that nothing closes cost no more than few.
    let mut next = vec![None; runs.len()];
    let mut last = std::collections::HashMap::new();
    for place in (0..runs.len()).rev() {
        next[place] = last.insert(runs[place].1, place);
    }
    while let Some((start, length)) = runs.get(open).copied() {
        match next[open] {
            Some(close) => {
                spans.push(start..runs[close].0 + length);
                open = close + 1;
            }
            None => {
                // A fence that is not closed goes on to the end.
                if length >= 3 {
                    spans.push(start..answer.len());
                    break;
                }
                open += 1;
            }
        }
    }
    spans
}
