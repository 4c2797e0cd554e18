//! Cutting what does not fit at the best place: an empty line, a line, a sentence, a word, a letter.

use std::ops::Range;

use super::blocks::trimmed;
use super::size::Size;

/// Bytes of a token, before one was counted.
const BYTES_OF_TOKEN: f64 = 4.0;
/// Tries to come near to the size before what fits is taken.
const TRIES: usize = 8;
/// Ends of sentences; those of ASCII stand before a space.
const ENDS: [char; 3] = ['.', '!', '?'];
const WIDE_ENDS: [char; 4] = ['。', '！', '？', '।'];

/// Cuts parts of one text, and remembers how long its tokens are.
pub(super) struct Cutter<'a> {
    text: &'a str,
    size: Size<'a>,
    /// Bytes of a unit of size, as they were last.
    bytes_of_unit: f64,
}

impl<'a> Cutter<'a> {
    pub fn new(text: &'a str, size: Size<'a>) -> Self {
        Self {
            text,
            size,
            bytes_of_unit: BYTES_OF_TOKEN,
        }
    }

    /// Pieces of a part, none larger than the size. Those of a paragraph repeat the end of the piece before.
    pub fn cut(&mut self, part: Range<usize>, is_paragraph: bool) -> Vec<Range<usize>> {
        let mut pieces: Vec<Range<usize>> = Vec::new();
        // Everything before `covered` is in a piece; the next one begins before it if it repeats something.
        let (mut covered, mut start) = (part.start, part.start);
        while let Some(rest) = trimmed(self.text, start..part.end) {
            let mut from = rest.start;
            let mut fits = self.longest(from..rest.end);
            if from < covered && fits <= covered {
                // The repeated words leave no room.
                let Some(rest) = trimmed(self.text, covered..part.end) else {
                    break;
                };
                from = rest.start;
                fits = self.longest(from..rest.end);
            }
            covered = covered.max(from);
            if fits >= rest.end {
                pieces.push(from..rest.end);
                break;
            }
            let cut = self.best_place(from, covered, fits, is_paragraph);
            // Repeated words alone are no piece.
            let has_new = !self.text[covered..cut].trim().is_empty();
            pieces.extend(trimmed(self.text, from..cut).filter(|_| has_new));
            covered = cut;
            start = match is_paragraph {
                true => self.repeated_from(from, cut),
                false => cut,
            };
        }
        pieces
    }

    fn counted(&self, bytes: &Range<usize>) -> usize {
        (self.size.count)(&self.text[bytes.clone()])
    }

    /// The end of about the longest beginning of a part that fits; at least one character.
    fn longest(&mut self, part: Range<usize>) -> usize {
        let most = self.size.most;
        let (mut fits, mut too_long) = (part.start, part.end + 1);
        let mut length = (most as f64 * self.bytes_of_unit) as usize;
        for _ in 0..TRIES {
            let end = self
                .text
                .floor_char_boundary(part.start.saturating_add(length).min(part.end));
            if end <= fits || end >= too_long {
                break;
            }
            let counted = self.counted(&(part.start..end));
            let bytes = (end - part.start) as f64;
            let ratio = bytes / counted.max(1) as f64;
            if counted <= most {
                fits = end;
                self.bytes_of_unit = ratio.clamp(1.0, 64.0);
                if end == part.end || counted * 10 >= most * 9 {
                    return fits;
                }
                length = (most as f64 * ratio * 0.97).min(bytes * 4.0) as usize;
            } else {
                too_long = end;
                length = (most as f64 * ratio * 0.95) as usize;
            }
        }
        if fits > part.start {
            return fits;
        }
        // Tokens of very different lengths: halves, down to one character.
        let mut end = too_long.min(part.end);
        loop {
            let first = self.text[part.start..].chars().next().map_or(0, char::len_utf8);
            let half = self.text.floor_char_boundary(part.start + (end - part.start) / 2);
            if half <= part.start + first {
                return part.start + first;
            }
            if self.counted(&(part.start..half)) <= most {
                return half;
            }
            end = half;
        }
    }

    /// The best place to cut after `floor`, in the second half of what fits if there is one.
    fn best_place(&self, from: usize, floor: usize, fits: usize, is_paragraph: bool) -> usize {
        let half = self.text.ceil_char_boundary(from + (fits - from) / 2).max(floor);
        if half >= fits {
            return fits;
        }
        let tail = &self.text[half..fits];
        let lines = || tail.rfind('\n').map(|at| half + at + 1);
        let sentences = || last_sentence(tail, self.text[fits..].chars().next()).map(|at| half + at);
        let words = || {
            let space = tail.char_indices().rev().find(|(_, letter)| letter.is_whitespace());
            space.map(|(at, letter)| half + at + letter.len_utf8())
        };
        let place = tail.rfind("\n\n").map(|at| half + at + 2);
        let place = match is_paragraph {
            true => place.or_else(sentences).or_else(lines),
            false => place.or_else(lines).or_else(sentences),
        };
        place
            .or_else(words)
            .filter(|place| *place > floor)
            .unwrap_or_else(|| self.before_joined(floor, fits))
    }

    /// A place at which no accent is taken from its letter, if there is one near.
    fn before_joined(&self, floor: usize, fits: usize) -> usize {
        let joined = |at: usize| {
            let (before, after) = (self.text[..at].chars().next_back(), self.text[at..].chars().next());
            after.is_some_and(|letter| sqlite::words::is_accent(letter) || matches!(letter, '\u{200d}' | '\u{fe0f}'))
                || before == Some('\u{200d}')
        };
        let near = self.text[floor..fits].char_indices().rev().take(16);
        let place = near.map(|(at, _)| floor + at).find(|at| !joined(*at));
        match joined(fits) {
            true => place.filter(|place| *place > floor).unwrap_or(fits),
            false => fits,
        }
    }

    /// The beginning of the words before a cut that are repeated after it.
    fn repeated_from(&self, from: usize, cut: usize) -> usize {
        let mut length = (self.size.overlap as f64 * self.bytes_of_unit) as usize;
        for _ in 0..TRIES {
            length = length.min((cut - from) / 2);
            let at = self.text.ceil_char_boundary(cut - length);
            let near = &self.text[at..cut];
            // A sentence if one begins there, else a word.
            let start = first_sentence(near).or_else(|| {
                near.char_indices()
                    .find(|(_, letter)| letter.is_whitespace() || sqlite::words::stands_alone(*letter))
                    .map(|(at, _)| at)
            });
            let Some(start) = start.map(|start| at + start).filter(|start| *start < cut) else {
                return cut;
            };
            if self.counted(&(start..cut)) <= self.size.overlap {
                return start;
            }
            length /= 2;
        }
        cut
    }
}

/// The end of the last sentence that ends in a text; `next` is the character after it.
fn last_sentence(text: &str, next: Option<char>) -> Option<usize> {
    let mut after = next;
    for (at, letter) in text.char_indices().rev() {
        let ends = WIDE_ENDS.contains(&letter) || ENDS.contains(&letter) && after.is_some_and(char::is_whitespace);
        if ends {
            return Some(at + letter.len_utf8());
        }
        after = Some(letter);
    }
    None
}

/// The beginning of the first sentence that begins in a text.
fn first_sentence(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let after = letters.peek().map(|(_, letter)| *letter)?;
        if WIDE_ENDS.contains(&letter) || ENDS.contains(&letter) && after.is_whitespace() {
            return Some(at + letter.len_utf8());
        }
    }
    None
}
