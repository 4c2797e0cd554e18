//! The assistant of Gemma 4: a few layers that attend to the keys and values of the model itself. Reference:
//! transformers' `Gemma4AssistantConfig`.

use super::{Attention, Gemma4Config};
use crate::config::fields::Fields;
use crate::config::limits::{check_nonzero, check_range, check_width};
use crate::error::{unusable, Error};
use crate::memory::{ModelCost, Storage};

/// The shapes of an assistant.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantConfig {
    /// Its layers, none of which has keys and values of its own, and its output layer.
    pub text: Gemma4Config,
    /// Width of the model's states.
    pub model_width: u32,
    /// The groups of tokens among which it looks for the next one; `None` if it looks at all.
    pub centroids: Option<Centroids>,
}

/// Groups of as many tokens each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Centroids {
    /// How many.
    pub count: u32,
    /// The groups of which the tokens are compared.
    pub top_k: u32,
}

impl AssistantConfig {
    /// Reads an assistant's file; `text` is its `text_config`.
    pub(crate) fn parse(top: Fields<'_>, text: Fields<'_>) -> Result<Self, Error> {
        let mut config = Gemma4Config::parse_layers(text, None, 0)?;
        let shared = text.number("num_kv_shared_layers")?.unwrap_or(0) as usize;
        if shared != 0 && shared != config.layers.len() {
            return unusable("num_kv_shared_layers", "an assistant has no keys and values of its own");
        }
        config.num_kv_shared_layers = config.layers.len() as u32;
        let unknown = [
            (config.use_double_wide_mlp, "a wider network"),
            (config.experts.is_some(), "experts"),
            (config.hidden_size_per_layer_input.is_some(), "inputs for each layer"),
        ];
        if let Some((_, part)) = unknown.into_iter().find(|(has, _)| *has) {
            return Err(Error::Unsupported(format!("an assistant with {part}")));
        }
        if let Some(tied) = top.flag("tie_word_embeddings")? {
            config.tie_word_embeddings = tied;
        }
        const WIDTH: &str = "backbone_hidden_size";
        let model_width = match top.number(WIDTH)? {
            Some(width) => width,
            None => text.required(WIDTH)?,
        };
        check_nonzero(WIDTH, model_width)?;
        check_width(WIDTH, 2 * u64::from(model_width))?;
        let centroids = match top.flag("use_ordered_embeddings")?.unwrap_or(false) {
            false => None,
            true => {
                let count = top.number("num_centroids")?.unwrap_or(2048);
                let top_k = top.number("centroid_intermediate_top_k")?.unwrap_or(32);
                check_range("num_centroids", count, 1..=config.vocab_size.max(1))?;
                if !config.vocab_size.is_multiple_of(count) {
                    return unusable(
                        "num_centroids",
                        format!("{} tokens are no groups of {count}", config.vocab_size),
                    );
                }
                check_range("centroid_intermediate_top_k", top_k, 1..=count)?;
                Some(Centroids { count, top_k })
            }
        };
        Ok(Self {
            text: config,
            model_width,
            centroids,
        })
    }

    /// True if its heads can attend to the keys and values of the last layers of this model.
    pub(crate) fn reads_keys_of(&self, model: &Gemma4Config) -> bool {
        let own = &model.layers[..model.own_kv_layers()];
        [Attention::Sliding, Attention::Full].into_iter().all(|kind| {
            let Some(mine) = self.text.layers.iter().position(|other| *other == kind) else {
                return true;
            };
            own.iter().rposition(|other| *other == kind).is_some_and(|layer| {
                self.text.head_width(mine) == model.head_width(layer)
                    && self.text.num_attention_heads.is_multiple_of(model.key_heads(layer))
            })
        }) && model.altup.is_none()
    }

    pub(crate) fn cost(&self, storage: Storage) -> ModelCost {
        let width = u64::from(self.model_width);
        let groups = self.centroids.map(|centroids| [0, centroids.count.into()]);
        ModelCost {
            // The projections of what it reads, and back to the model's width.
            tables: [[0, 2 * width], [0, width]].into_iter().chain(groups).collect(),
            ..self.text.cost(storage)
        }
    }
}
