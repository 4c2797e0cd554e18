//! Fields that nearly every decoder's config has.

use crate::config::decoder::{DecoderConfig, LayerConfig, LmHead, NormConfig, NormKind};
use crate::config::limits::{check_layers, check_rotation};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The shapes that nearly every dense decoder's config has under the same names.
pub(super) struct Shapes {
    pub hidden_size: u32,
    pub vocab_size: u32,
    pub layers: u32,
    pub heads: u32,
    pub key_heads: u32,
    pub head_dim: u32,
    /// `intermediate_size`.
    pub width: u32,
    pub eps: f32,
    pub lm_head: LmHead,
}

impl Shapes {
    pub(super) fn parse(text: Fields<'_>) -> Result<Self, Error> {
        Self::with_width(text, text.required("intermediate_size")?)
    }

    /// The same if the config need not tell the width of a dense network.
    pub(super) fn with_width(text: Fields<'_>, width: u32) -> Result<Self, Error> {
        let (hidden_size, heads) = (text.required("hidden_size")?, text.required("num_attention_heads")?);
        Ok(Self {
            hidden_size,
            vocab_size: text.required("vocab_size")?,
            layers: check_layers(text.required("num_hidden_layers")?)?,
            heads,
            key_heads: text.number("num_key_value_heads")?.unwrap_or(heads),
            head_dim: text.number("head_dim")?.unwrap_or(hidden_size / heads),
            width,
            eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
            lm_head: Self::lm_head(text)?,
        })
    }

    /// The place of the output layer by `tie_word_embeddings`.
    pub(super) fn lm_head(text: Fields<'_>) -> Result<LmHead, Error> {
        Ok(match text.flag("tie_word_embeddings")? {
            Some(true) => LmHead::Tied,
            Some(false) => LmHead::Untied,
            None => LmHead::UntiedIfPresent,
        })
    }

    /// A decoder of these shapes without any of the multipliers.
    pub(super) fn decoder(&self, ropes: Vec<RopeConfig>, layers: Vec<LayerConfig>) -> DecoderConfig {
        DecoderConfig {
            hidden_size: self.hidden_size,
            vocab_size: self.vocab_size,
            read_only_tokens: 0,
            norm: NormConfig {
                kind: NormKind::RootMeanSquare,
                eps: self.eps,
                offset: false,
                bare: false,
                bare_end: false,
                after_offsets: None,
                eps_after: None,
                last_as_is: false,
            },
            ngrams: None,
            layer_runs: None,
            embedding_norm: None,
            most_positions: None,
            learned_positions: false,
            embedding_multiplier: None,
            residual_multiplier: None,
            inner_norms: false,
            gains: false,
            bidirectional: false,
            clip_residual: false,
            logits_divisor: None,
            logits_softcap: None,
            inputs_first_unless_sanitized: false,
            norm_offset_in_original: None,
            lm_head: self.lm_head,
            unwritten: &[],
            ropes,
            layers,
            unit_lm_head: false,
            loops: 1,
            cycles: None,
            loop_window: None,
            loops_normed: false,
            halved_layers: None,
            embedder: None,
            hyper: None,
            absent_layers: Vec::new(),
            renames: &[],
            folded: None,
            merged: None,
        }
    }
}

impl DecoderConfig {
    /// The checked end of a family's parser.
    pub(super) fn family(self) -> Result<Family, Error> {
        Ok(Family::Decoder(Box::new(self.check()?)))
    }
}

/// The part of a head that turns by `rotary_dim`; all of it if the config has no such number.
pub(super) fn rotary_part(text: Fields<'_>, head_dim: u32) -> Result<f32, Error> {
    const FIELD: &str = "rotary_dim";
    let Some(turning) = text.number::<u32>(FIELD)? else {
        return Ok(1.0);
    };
    check_rotation(FIELD, turning, head_dim)?;
    // A half more, because the product with the width is cut off.
    Ok(((turning as f32 + 0.5) / head_dim as f32).min(1.0))
}

/// Gives full and sliding layers the positions that `rope_parameters` has for them.
pub(super) fn ropes_by_type(
    text: Fields<'_>,
    config: &mut DecoderConfig,
    full: Defaults,
    sliding: Defaults,
) -> Result<(), Error> {
    let mut head_dim = 0;
    for attention in config.attention() {
        head_dim = attention.head_dim;
        attention.rope = Some(usize::from(attention.window.is_some()));
    }
    config.ropes = vec![
        RopeConfig::parse(text, head_dim, For::Type("full_attention"), full)?,
        RopeConfig::parse(text, head_dim, For::Type("sliding_attention"), sliding)?,
    ];
    Ok(())
}

/// The window of each layer by `layer_types`; `None` if the config has no such list.
pub(super) fn windows(text: Fields<'_>, layers: u32) -> Result<Option<Vec<Option<u32>>>, Error> {
    let sliding = text.layer_types(layers, &[("full_attention", false), ("sliding_attention", true)])?;
    let window = |sliding: bool| sliding.then(|| text.required("sliding_window")).transpose();
    sliding
        .map(|sliding| sliding.into_iter().map(window).collect())
        .transpose()
}
