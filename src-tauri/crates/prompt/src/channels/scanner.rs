//! Finds markers that are not tokens of their own in streamed text.

use super::channel_format::{Marker, MarkerKind};

/// A stretch of text or a marker in it, with its place in the source in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    Text(String, usize),
    Marker(MarkerKind, &'static str, usize),
}

/// Splits streamed text at markers; the longest end of it that may become a marker is held back.
#[derive(Debug)]
pub(super) struct Scanner {
    markers: Vec<Marker>,
    /// The bytes of the longest marker.
    longest: usize,
    held: String,
    /// Where `held` begins in the source.
    at: usize,
}

impl Scanner {
    pub(super) fn new(markers: &[Marker]) -> Self {
        let markers: Vec<Marker> = markers.iter().filter(|marker| marker.id.is_none()).copied().collect();
        Self {
            longest: markers.iter().map(|marker| marker.text.len()).max().unwrap_or(0),
            markers,
            held: String::new(),
            at: 0,
        }
    }

    /// Whether something is held back.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Passes over what is held back.
    pub(super) fn drop_held(&mut self) {
        self.flush();
    }

    pub(super) fn push(&mut self, piece: &str) -> Vec<Scanned> {
        let mut found = Vec::new();
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let first = |text: &str| {
            self.markers
                .iter()
                .filter_map(|marker| Some((text.find(marker.text)?, marker)))
                .min_by_key(|(at, _)| *at)
        };
        while let Some((at, marker)) = first(&text) {
            let rest = text.split_off(at + marker.text.len());
            text.truncate(at);
            if !text.is_empty() {
                found.push(Scanned::Text(text, self.at));
            }
            found.push(Scanned::Marker(marker.kind, marker.text, self.at + at));
            self.at += at + marker.text.len();
            text = rest;
        }
        let near = text.floor_char_boundary(text.len().saturating_sub(self.longest));
        let begins_a_marker = |at: &usize| self.markers.iter().any(|marker| marker.text.starts_with(&text[*at..]));
        let candidates = text[near..].char_indices().map(|(at, _)| near + at);
        let start = self.at;
        if let Some(at) = candidates.into_iter().find(begins_a_marker) {
            self.held = text.split_off(at);
        }
        self.at += text.len();
        if !text.is_empty() {
            found.push(Scanned::Text(text, start));
        }
        found
    }

    /// What was held back and is text after all, and where it begins.
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
