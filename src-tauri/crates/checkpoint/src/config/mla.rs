//! Multi-head latent attention (MLA): keys and values of all heads are made of one short vector per position, which is all that a
//! cache keeps (DeepSeek-V2, arXiv:2405.04434).

use super::decoder::check_width;
use super::rope::RopeConfig;
use crate::Error;

/// The attention of one layer, `self_attn`.
#[derive(Debug, Clone, PartialEq)]
pub struct MlaConfig {
    /// Query heads.
    pub heads: u32,
    /// Width that queries are projected through; `None` if they are projected directly.
    pub q_lora_rank: Option<u32>,
    /// Width of the latent that keys and values are made of.
    pub kv_lora_rank: u32,
    /// Width of the part of a query and key without rotary positions.
    pub qk_nope_head_dim: u32,
    /// Width of the part of a query and key with rotary positions; all heads share the one of the key.
    pub qk_rope_head_dim: u32,
    /// Width of a value.
    pub v_head_dim: u32,
    /// Index into [`DecoderConfig::ropes`](super::DecoderConfig::ropes).
    pub rope: usize,
    /// Factor of the scores, without what the rope adds.
    pub scale: f32,
    /// Whether what makes the short vectors, and o, must have a bias.
    pub bias: bool,
    /// Added to the mean square in the norms of the short vectors.
    pub eps: f32,
}

impl MlaConfig {
    /// Refuses shapes that no model has.
    pub(super) fn check(&self, ropes: &[RopeConfig]) -> Result<(), Error> {
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        for (field, width) in [
            ("q_lora_rank", self.q_lora_rank.unwrap_or(1)),
            ("kv_lora_rank", self.kv_lora_rank),
            ("qk_nope_head_dim", self.qk_nope_head_dim),
            ("qk_rope_head_dim", self.qk_rope_head_dim),
            ("v_head_dim", self.v_head_dim),
        ] {
            if width == 0 {
                return unusable(field, "it is 0".into());
            }
        }
        let widest =
            u64::from(self.qk_nope_head_dim).max(self.kv_lora_rank.into()) + u64::from(self.qk_rope_head_dim) + u64::from(self.v_head_dim);
        check_width("qk_nope_head_dim", u64::from(self.heads).saturating_mul(widest))?;
        check_width("q_lora_rank", self.q_lora_rank.unwrap_or(0).into())?;
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return unusable("rope_scaling", format!("it makes the attention's scale {}", self.scale));
        }
        match ropes.get(self.rope) {
            Some(rope) if rope.dims == self.qk_rope_head_dim => Ok(()),
            _ => unusable(
                "qk_rope_head_dim",
                format!("the rope turns another number than {}", self.qk_rope_head_dim),
            ),
        }
    }
}
