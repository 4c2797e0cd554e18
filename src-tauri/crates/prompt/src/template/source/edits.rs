//! Changes to the tokens of a tag. They are collected while it is read and written once at the end, so that a long tag
//! takes no longer than its length.

use super::lexer::Token;

/// The place of a change, in the order of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// In the place of the blanks before the token.
    Gap,
    Before,
    /// In the place of the token.
    Text,
    After,
}

#[derive(Debug)]
struct Edit {
    token: usize,
    place: Place,
    text: &'static str,
}

/// Tokens from the first to the last one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// The changes to one tag.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<Edit>);

impl Edits {
    fn add(&mut self, token: usize, place: Place, text: &'static str) -> usize {
        self.0.push(Edit { token, place, text });
        self.0.len() - 1
    }

    /// Puts the tokens between two texts, outside of what they are between already; gives the number of the second.
    pub(super) fn wrap(&mut self, span: Span, open: &'static str, close: &'static str) -> usize {
        self.add(span.first, Place::Before, open);
        self.add(span.last, Place::After, close)
    }

    /// Moves the end of what was put around tokens.
    pub(super) fn extend(&mut self, close: usize, last: usize) {
        if let Some(edit) = self.0.get_mut(close) {
            edit.token = last;
        }
    }

    /// Puts a text in the place of a token and the blanks before it.
    pub(super) fn replace(&mut self, token: usize, text: &'static str) {
        self.add(token, Place::Gap, "");
        self.add(token, Place::Text, text);
    }

    /// Sets the blanks before a token.
    pub(super) fn set_gap(&mut self, token: usize, blanks: &'static str) {
        self.add(token, Place::Gap, blanks);
    }

    /// Writes the tokens, changed.
    pub(super) fn write(self, out: &mut String, source: &str, tokens: &[Token]) {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_by_key(|at| {
            let edit = &self.0[*at];
            // The edit that was opened last is outermost.
            let turn = match edit.place {
                Place::Before => -(*at as i64),
                _ => *at as i64,
            };
            (edit.token, edit.place, turn)
        });
        let mut edits = order.into_iter().map(|at| &self.0[at]).peekable();
        for (number, token) in tokens.iter().enumerate() {
            let mut gap = match number {
                0 => "",
                _ => &source[tokens[number - 1].end()..token.start],
            };
            let mut text = token.text;
            let (mut before, mut after) = (String::new(), String::new());
            while let Some(edit) = edits.next_if(|edit| edit.token == number) {
                match edit.place {
                    Place::Gap => gap = edit.text,
                    Place::Before => before.push_str(edit.text),
                    Place::Text => text = edit.text,
                    Place::After => after.push_str(edit.text),
                }
            }
            for part in [gap, &before, text, &after] {
                out.push_str(part);
            }
        }
    }
}
