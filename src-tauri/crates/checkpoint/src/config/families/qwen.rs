//! Qwen 2 and 3: Llama's shape with biases on q, k and v, or with norms of queries and keys.

use super::{llama, Source};
use crate::config::decoder::{DecoderConfig, QkNorm};
use crate::config::fields::Fields;
use crate::{Error, Family};

/// Qwen 2 and 2.5, and MiMo, which has layers for more than the next token beside those used here.
pub(super) fn qwen2(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    // Built in, whatever `attention_bias` says.
    config
        .attention()
        .for_each(|attention| (attention.qkv_bias, attention.o_bias) = (true, false));
    config.family()
}

/// Qwen 3, dense.
pub(super) fn qwen3(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    config.attention().for_each(|attention| attention.qk_norm = QkNorm::PerHead);
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    // Layers from `max_window_layers` on slide, in the few models that switch it on.
    if text.texts("layer_types")?.is_none() && text.flag("use_sliding_window")?.unwrap_or(false) {
        let window = text.number("sliding_window")?;
        let first = text.number::<u32>("max_window_layers")?.unwrap_or(0) as usize;
        config.attention().skip(first).for_each(|attention| attention.window = window);
    }
    Ok(config)
}
