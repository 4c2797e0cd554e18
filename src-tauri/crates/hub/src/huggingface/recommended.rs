//! A few good models to begin with.
//!
//! `recommended.json` is a list of objects, smallest first:
//! - `id`: the model on the hub.
//! - `bytes`: approximate size of the download; describing the model corrects it.
//! - `memory`: the least memory of a computer, in bytes, on which it is a good first choice.
//! - `note`: its strength, for which windows have a sentence.
//! - `config`: the part of its config.json that the memory estimate needs, so that listing sends no request.

use api::{HubModel, MemoryFit, ModelNote};
use checkpoint::ModelConfig;
use serde::Deserialize;

use crate::huggingface::summary::{blank, quantization};
use crate::memory_fit::{memory_fit, Memory, Question};

const LIST: &str = include_str!("recommended.json");

/// An entry of the list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recommended {
    id: String,
    bytes: u64,
    memory: u64,
    note: ModelNote,
    config: serde_json::Value,
}

/// The models that suit a computer with this memory, the largest first.
pub(crate) fn recommended(memory: &Memory) -> Vec<HubModel> {
    let mut suited = list();
    suited.retain(|model| model.memory <= memory.total);
    suited.reverse();
    let models = suited.into_iter().map(|model| HubModel {
        bytes: Some(model.bytes),
        quantization: quantization(&[], &model.id),
        fit: model.fit(memory),
        note: Some(model.note),
        ..blank(&model.id)
    });
    models.collect()
}

impl Recommended {
    fn fit(&self, memory: &Memory) -> Option<MemoryFit> {
        let config = ModelConfig::parse(&self.config.to_string()).ok()?;
        Some(memory_fit(&config, self.bytes, &Question::new(), memory, None))
    }
}

fn list() -> Vec<Recommended> {
    serde_json::from_str(LIST).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use checkpoint::memory::Backend;

    use crate::cache::RepositoryId;

    #[test]
    fn the_list_is_whole_and_ordered() {
        let list: Vec<Recommended> = serde_json::from_str(LIST).unwrap();
        assert!(list.len() >= 6);
        assert!(list
            .windows(2)
            .all(|pair| pair[0].memory <= pair[1].memory && pair[0].bytes < pair[1].bytes));
        for model in &list {
            RepositoryId::new(&model.id).unwrap();
            // Weights, a conversation and other programs.
            assert!(
                model.bytes * 3 / 2 + 3_000_000_000 <= model.memory,
                "{} needs more",
                model.id
            );
            // The fit that is shown, on a Mac or a computer without a GPU with the least memory that the list names.
            let config = ModelConfig::parse(&model.config.to_string()).unwrap();
            let memory = Memory {
                total: model.memory,
                free: model.memory,
                swap: 0,
            };
            for backend in [Backend::Metal, Backend::Cpu] {
                let question = Question {
                    backend,
                    ..Question::new()
                };
                let fit = memory_fit(&config, model.bytes, &question, &memory, None);
                assert_ne!(fit.word, api::FitVerdict::WillNotFit, "{}: {fit:?}", model.id);
                assert!(
                    fit.weights >= model.bytes / 10 * 9 && fit.kv > 0,
                    "{}: {fit:?}",
                    model.id
                );
            }
        }
        // One model for the smallest Mac there is.
        assert!(list[0].memory <= 8 << 30);
    }
}
