//! BitNet: Llama's shape with two more norms in every layer and weights of -1, 0 and 1. Defaults are those of
//! transformers' `BitNetConfig`.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::Activation;
use crate::config::rope::Defaults;
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("BitNet b1.58", &["bitnet"], parse)];

/// BitNet of 2 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let activation = match text.text("hidden_act")?.as_deref() {
        None | Some("relu2") => Activation::SquaredRelu,
        Some(_) => llama::activation(text)?,
    };
    let mut config = llama::activated(text, activation, Defaults::new(500_000.0))?;
    config.inner_norms = true;
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    config.family()
}
