//! Finds markers that are not tokens of their own in streamed text.

use super::formats::{Marker, MarkerKind};

/// A stretch of text or a marker in it, with its place in the source in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scanned<'a> {
    Text(&'a str, usize),
    Marker(MarkerKind, &'static str, usize),
}

/// Splits streamed text at markers; the longest end of it that may become a marker is held back.
#[derive(Debug)]
pub(super) struct Scanner {
    markers: Vec<Marker>,
    /// True for bytes with which a marker begins.
    begins: [bool; 256],
    held: String,
    /// The offset of `held` in the source.
    at: usize,
}

impl Scanner {
    pub(super) fn new(markers: &[Marker]) -> Self {
        let markers: Vec<Marker> = markers.iter().filter(|marker| marker.id.is_none()).copied().collect();
        let mut begins = [false; 256];
        let first_bytes = markers.iter().filter_map(|marker| marker.text.bytes().next());
        first_bytes.for_each(|byte| begins[usize::from(byte)] = true);
        Self {
            markers,
            begins,
            held: String::new(),
            at: 0,
        }
    }

    /// True if text is held back.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Drops the text held back.
    pub(super) fn drop_held(&mut self) {
        self.flush();
    }

    /// Takes more of the text, and passes on what is decided.
    pub(super) fn push(&mut self, piece: &str, found: impl FnMut(Scanned<'_>)) {
        if self.held.is_empty() {
            let sure = self.scan(piece, found);
            self.held.push_str(&piece[sure..]);
            self.at += sure;
        } else {
            let mut text = std::mem::take(&mut self.held);
            text.push_str(piece);
            let sure = self.scan(&text, found);
            text.drain(..sure);
            self.held = text;
            self.at += sure;
        }
    }

    /// Gives the markers of a text and what stands before and between them, in one pass; the result is where the end
    /// begins that may become a marker.
    fn scan(&self, text: &str, mut found: impl FnMut(Scanned<'_>)) -> usize {
        let bytes = text.as_bytes();
        let (mut given, mut from, mut sure) = (0, 0, text.len());
        while let Some(at) = bytes[from..].iter().position(|byte| self.begins[usize::from(*byte)]) {
            let at = from + at;
            let rest = &bytes[at..];
            let mut markers = self.markers.iter();
            if let Some(marker) = markers.find(|marker| rest.starts_with(marker.text.as_bytes())) {
                if given < at {
                    found(Scanned::Text(&text[given..at], self.at + given));
                }
                found(Scanned::Marker(marker.kind, marker.text, self.at + at));
                from = at + marker.text.len();
                given = from;
            } else if self
                .markers
                .iter()
                .any(|marker| marker.text.as_bytes().starts_with(rest))
            {
                sure = at;
                break;
            } else {
                from = at + 1;
            }
        }
        if given < sure {
            found(Scanned::Text(&text[given..sure], self.at + given));
        }
        sure
    }

    /// The text held back, which is no marker, and its offset.
    pub(super) fn flush(&mut self) -> (String, usize) {
        let start = self.at;
        self.at += self.held.len();
        (std::mem::take(&mut self.held), start)
    }

    /// Passes over a marker that is a token, after what was flushed; the result is where it begins.
    pub(super) fn pass(&mut self, marker: &str) -> usize {
        let start = self.at;
        self.at += marker.len();
        start
    }
}
