//! A few good models to begin with.
//!
//! `first_models.json` is a list of objects, smallest first:
//! - `id`: the model on the hub.
//! - `bytes`: about what is fetched, in bytes; describing the model corrects it.
//! - `memory`: the least memory of a computer on which it is a good first choice, in bytes.
//! - `note`: what it is good for, one short sentence for a person.
//! - `config`: what of its config.json tells how much memory it needs, so that nothing has to be asked of the hub for that.

use api::{HubModel, MemoryFit};
use checkpoint::ModelConfig;
use serde::Deserialize;

use crate::huggingface::summary::{blank, quantization};
use crate::memory_fit::{memory_fit, Memory, Question};
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
    config: serde_json::Value,
}

impl Hub {
    /// Good first models for a computer with this memory; the largest that suits it first. Nothing is asked of the hub: describing each
    /// fills in the rest.
    pub fn first_models(&self, memory: &Memory) -> Vec<HubModel> {
        let mut suited = list();
        suited.retain(|first| first.memory <= memory.total);
        suited.reverse();
        let models = suited.into_iter().map(|first| HubModel {
            bytes: Some(first.bytes),
            quantization: quantization(&[], &first.id),
            here: self.folder().find(&first.id).is_ok(),
            fit: first.fit(memory),
            note: Some(first.note),
            ..blank(&first.id)
        });
        models.collect()
    }
}

impl First {
    /// Whether it fits, by the config of the list.
    fn fit(&self, memory: &Memory) -> Option<MemoryFit> {
        let config = ModelConfig::parse(&self.config.to_string()).ok()?;
        Some(memory_fit(&config, self.bytes, &Question::new(), memory, None))
    }
}

fn list() -> Vec<First> {
    serde_json::from_str(LIST).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cache::RepositoryId;

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
            assert!(
                first.bytes * 3 / 2 + 3_000_000_000 <= first.memory,
                "{} needs more",
                first.id
            );
            // The sum that the word beside it stands for, on a Mac with the least memory that is named.
            let config = ModelConfig::parse(&first.config.to_string()).unwrap();
            let metal = Question {
                backend: checkpoint::memory::Backend::Metal,
                ..Question::new()
            };
            let memory = Memory {
                total: first.memory,
                free: first.memory,
                swap: 0,
            };
            let fit = memory_fit(&config, first.bytes, &metal, &memory, None);
            assert_ne!(fit.word, api::FitVerdict::WillNotFit, "{}: {fit:?}", first.id);
            assert!(
                fit.weights >= first.bytes / 10 * 9 && fit.kv > 0,
                "{}: {fit:?}",
                first.id
            );
        }
        // Something for the smallest Mac there is.
        assert!(list[0].memory <= 8 << 30);
    }
}
