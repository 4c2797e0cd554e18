//! ERNIE 4.5, dense: Llama's shape, in which neighbours turn against each other; in PaddleOCR-VL, halves do.

use super::{llama, Source};
use crate::config::decoder::{DecoderConfig, FeedForward};
use crate::config::fields::Fields;
use crate::{Error, Family};

/// ERNIE 4.5 without experts.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    config.ropes.iter_mut().for_each(|rope| rope.traditional = true);
    config.family()
}

/// The language part of PaddleOCR-VL.
pub(super) fn paddleocr(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text)?.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    let bias = text.flag("use_bias")?.unwrap_or(false);
    config
        .attention()
        .for_each(|attention| (attention.qkv_bias, attention.o_bias) = (bias, bias));
    for layer in &mut config.layers {
        if let FeedForward::Dense(dense) = &mut layer.feed_forward {
            dense.bias = bias;
        }
    }
    Ok(config)
}
