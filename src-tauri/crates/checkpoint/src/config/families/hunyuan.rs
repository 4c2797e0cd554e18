//! HunYuan, dense: Llama's shape, in which the heads of queries and keys are normed after they have turned.

use super::{llama, Source};
use crate::config::decoder::{DecoderConfig, QkNorm};
use crate::{Error, Family};

/// What the checkpoints call the norms of heads.
const NORMS: &[(&str, &str)] = &[("query_layernorm", "q_norm"), ("key_layernorm", "k_norm")];

/// HunYuan of 0.5 to 7 billion parameters, and the language part of HunyuanOCR.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = llama::decoder(source.text)?;
    if source.text.flag("use_qk_norm")?.unwrap_or(true) {
        config.attention().for_each(|attention| attention.qk_norm = QkNorm::PerHeadTurned);
    }
    DecoderConfig { renames: NORMS, ..config }.family()
}
