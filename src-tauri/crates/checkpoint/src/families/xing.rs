//! XING 4.0: DeepSeek V3 with several streams between the layers. Defaults are those of mlx-vlm.

use super::deepseek::{self, INTERLEAVED, LATENT_EPS};
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{BetweenStreams, HyperConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("XING 4.0", &["xing4_0"], parse)];

/// XING 4.0.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = deepseek::decoder(text, Some(LATENT_EPS), text.required("v_head_dim")?, INTERLEAVED)?;
    config.hyper = Some(HyperConfig {
        streams: text.number("hc_mult")?.unwrap_or(4),
        eps: text.number("hc_eps")?.unwrap_or(1e-6),
        between: BetweenStreams::Balanced {
            iterations: text.number("hc_sinkhorn_iters")?.unwrap_or(20),
            bounds: (
                text.number("mhc_h_res_clamp_min")?.unwrap_or(-30.0),
                text.number("mhc_h_res_clamp_max")?.unwrap_or(30.0),
            ),
        },
        head: false,
    });
    config.family()
}
