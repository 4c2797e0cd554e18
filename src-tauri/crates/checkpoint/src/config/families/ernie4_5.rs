//! ERNIE 4.5, dense: Llama's shape, in which neighbours turn against each other.

use super::{llama, Source};
use crate::config::decoder::FeedForward;
use crate::{Error, Family};

/// ERNIE 4.5 without experts.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    let bias = source.text.flag("use_bias")?.unwrap_or(false);
    config.ropes.iter_mut().for_each(|rope| rope.traditional = true);
    config
        .attention()
        .for_each(|attention| (attention.qkv_bias, attention.o_bias) = (bias, bias));
    for layer in &mut config.layers {
        if let FeedForward::Dense(dense) = &mut layer.feed_forward {
            dense.bias = bias;
        }
    }
    config.family()
}
