//! Apertus: Llama's shape with norms of queries and keys, and a network without a gate whose activation is learned.
//! Defaults are those of transformers' `ApertusConfig`.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{EncoderActivation, QkNorm};
use crate::config::rope::Defaults;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Apertus", &["apertus"], parse)];

/// Names of the norms in the checkpoints.
const NORMS: &[(&str, &str)] = &[
    ("attention_layernorm", "input_layernorm"),
    ("feedforward_layernorm", "post_attention_layernorm"),
];

/// Apertus of 8 and 70 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if text.flag("post_norm")?.unwrap_or(false) {
        return Err(Error::Unsupported(
            "norms after attention and network (`post_norm`)".into(),
        ));
    }
    let activation = match text.text("hidden_act")?.as_deref() {
        None | Some("xielu") => EncoderActivation::Xielu,
        Some(other) => EncoderActivation::named(other)?,
    };
    let mut config = llama::ungated(text, activation, Defaults::new(12_000_000.0))?;
    if text.flag("qk_norm")?.unwrap_or(true) {
        config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    }
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    config.renames = &[NORMS];
    config.family()
}
