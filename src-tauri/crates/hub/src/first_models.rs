//! A few good models to begin with.
//!
//! `first_models.json` is a list of objects, smallest first:
//! - `id`: the model on the hub.
//! - `bytes`: about what is fetched, in bytes; describing the model corrects it.
//! - `memory`: the least memory of a computer on which it is a good first choice, in bytes.
//! - `note`: what it is good for, one short sentence for a person.

use protocol::HubModel;
use serde::Deserialize;

use crate::hub_summary::{blank, quantization};
use crate::Hub;

const LIST: &str = include_str!("first_models.json");

/// An entry of the list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    id: String,
    bytes: u64,
    memory: u64,
    note: String,
}

impl Hub {
    /// Good first models for a computer with this much memory, in bytes; the largest that suits it first. Nothing is asked of the hub:
    /// describing each fills in the rest.
    pub fn first_models(&self, memory: u64) -> Vec<HubModel> {
        let mut suited = list();
        suited.retain(|first| first.memory <= memory);
        suited.reverse();
        let models = suited.into_iter().map(|first| HubModel {
            bytes: Some(first.bytes),
            quantization: quantization(&[], &first.id),
            here: self.folder().find(&first.id).is_ok(),
            note: Some(first.note),
            ..blank(&first.id)
        });
        models.collect()
    }
}

fn list() -> Vec<First> {
    serde_json::from_str(LIST).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::layout::RepositoryId;

    #[test]
    fn the_list_is_whole_and_ordered() {
        let list: Vec<First> = serde_json::from_str(LIST).unwrap();
        assert!(list.len() >= 6);
        assert!(list
            .windows(2)
            .all(|pair| pair[0].memory <= pair[1].memory && pair[0].bytes < pair[1].bytes));
        for first in &list {
            RepositoryId::new(&first.id).unwrap();
            assert!(first.note.ends_with('.') && first.note.len() < 120, "{}", first.note);
            // Weights, a conversation and other programs.
            assert!(first.bytes * 3 / 2 + 3_000_000_000 <= first.memory, "{} needs more", first.id);
        }
        // Something for the smallest Mac there is.
        assert!(list[0].memory <= 8 << 30);
    }
}
