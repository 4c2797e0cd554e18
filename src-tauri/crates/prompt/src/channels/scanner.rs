//! Finds markers that are not tokens of their own in streamed text.

use super::format::{Mark, Marker};

/// A stretch of text or a marker in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Text(String),
    Mark(Mark),
}

/// Splits streamed text at markers; the longest end of it that may become a marker is held back.
#[derive(Debug)]
pub(super) struct Scanner {
    markers: Vec<Marker>,
    held: String,
}

impl Scanner {
    pub(super) fn new(markers: &[Marker]) -> Self {
        Self {
            markers: markers.iter().filter(|marker| marker.id.is_none()).cloned().collect(),
            held: String::new(),
        }
    }

    /// Whether something is held back.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    pub(super) fn push(&mut self, piece: &str) -> Vec<Found> {
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
            found.extend(Some(Found::Text(text)).filter(|found| *found != Found::Text(String::new())));
            found.push(Found::Mark(marker.mark));
            text = rest;
        }
        let begins_a_marker = |at: &usize| self.markers.iter().any(|marker| marker.text.starts_with(&text[*at..]));
        if let Some(at) = text.char_indices().map(|(at, _)| at).find(begins_a_marker) {
            self.held = text.split_off(at);
        }
        if !text.is_empty() {
            found.push(Found::Text(text));
        }
        found
    }

    /// What was held back and is text after all.
    pub(super) fn flush(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}
