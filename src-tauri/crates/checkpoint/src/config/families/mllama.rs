//! Llama 3.2 Vision: Llama with layers between that look at pictures.

use super::{llama, Source};
use crate::config::decoder::{CrossAttentionConfig, DecoderConfig, LmHead, Mixer};
use crate::config::vision::MllamaVisionConfig;
use crate::{Error, Family};

/// Tokens that only stand for pictures.
const READ_ONLY_TOKENS: u32 = 8;

/// The layers that look at pictures, unless the config says so.
const CROSS_ATTENTION_LAYERS: [u32; 8] = [3, 8, 13, 18, 23, 28, 33, 38];

/// The text model beside a tower.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    const FIELD: &str = "cross_attention_layers";
    let text = source.text;
    let mut decoder = llama::decoder(text)?;
    let looking: Vec<u32> = match text.numbers(FIELD)? {
        Some(layers) => layers.into_iter().map(|layer| layer as u32).collect(),
        None => CROSS_ATTENTION_LAYERS
            .into_iter()
            .filter(|layer| (*layer as usize) < decoder.layers.len())
            .collect(),
    };
    let states = MllamaVisionConfig::states(source.top);
    for layer in looking {
        let count = decoder.layers.len();
        let layer = decoder.layers.get_mut(layer as usize).ok_or_else(|| Error::InvalidField {
            field: FIELD,
            reason: format!("there is no layer {layer} of {count}"),
        })?;
        if let Mixer::Attention(attention) = &layer.mixer {
            layer.mixer = Mixer::CrossAttention(CrossAttentionConfig {
                heads: attention.heads,
                key_heads: attention.key_heads,
                head_dim: attention.head_dim,
                states,
            });
        }
    }
    if !decoder.layers.iter().any(|layer| matches!(layer.mixer, Mixer::Attention(_))) {
        return Err(Error::InvalidField {
            field: FIELD,
            reason: "no layer is left that looks at text".into(),
        });
    }
    DecoderConfig {
        read_only_tokens: READ_ONLY_TOKENS,
        lm_head: LmHead::Untied,
        ..decoder
    }
    .family()
}
