//! Mixtral: Llama's shape with experts.

use super::{llama, Source};
use crate::config::decoder::{Activation, DecoderConfig, Feed};
use crate::config::experts::{ExpertsConfig, RouterConfig, Scores};
use crate::config::{ConfigError, Family};

/// What the checkpoints call the experts.
const NAMES: &[(&str, &str)] = &[("block_sparse_moe", "mlp")];

/// Mixtral of 8 times 7 and 8 times 22 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, ConfigError> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    let experts = ExpertsConfig {
        experts: text.number("num_local_experts")?.unwrap_or(8),
        chosen: text.number("num_experts_per_tok")?.unwrap_or(2),
        width: text.required("intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(Scores::Softmax, true),
        shared: None,
    };
    config.layers.iter_mut().for_each(|layer| layer.feed = Feed::Experts(experts));
    DecoderConfig { renames: NAMES, ..config }.family()
}
