//! Attention over latents: keys and values of all heads are made of one short vector per position, which is all that a
//! cache keeps (DeepSeek-V2, arXiv:2405.04434).

use super::decoder::check_width;
use super::rope::RopeConfig;
use super::ConfigError;

/// The attention of one layer, `self_attn`.
#[derive(Debug, Clone, PartialEq)]
pub struct LatentConfig {
    /// Query heads.
    pub heads: u32,
    /// Width that queries are squeezed through (`q_lora_rank`); `None` where they are not.
    pub query_rank: Option<u32>,
    /// Width of the vector that keys and values are made of (`kv_lora_rank`).
    pub rank: u32,
    /// Numbers of a query and key that keep still (`qk_nope_head_dim`).
    pub still: u32,
    /// Numbers of a query and key that turn, those of the key shared by all heads (`qk_rope_head_dim`).
    pub turning: u32,
    /// Width of a value (`v_head_dim`).
    pub value: u32,
    /// Index into [`DecoderConfig::ropes`](super::DecoderConfig::ropes).
    pub rope: usize,
    /// Factor of the scores, without what the rope adds.
    pub scale: f32,
    /// Whether what makes the short vectors, and o, must have a bias.
    pub bias: bool,
    /// Added to the mean square in the norms of the short vectors.
    pub eps: f32,
}

impl LatentConfig {
    /// Refuses shapes that no model has.
    pub(super) fn check(&self, ropes: &[RopeConfig]) -> Result<(), ConfigError> {
        let unusable = |field, reason: String| Err(ConfigError::Unusable { field, reason });
        for (field, width) in [
            ("q_lora_rank", self.query_rank.unwrap_or(1)),
            ("kv_lora_rank", self.rank),
            ("qk_nope_head_dim", self.still),
            ("qk_rope_head_dim", self.turning),
            ("v_head_dim", self.value),
        ] {
            if width == 0 {
                return unusable(field, "it is 0".into());
            }
        }
        let widest = u64::from(self.still).max(self.rank.into()) + u64::from(self.turning) + u64::from(self.value);
        check_width("qk_nope_head_dim", u64::from(self.heads).saturating_mul(widest))?;
        check_width("q_lora_rank", self.query_rank.unwrap_or(0).into())?;
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return unusable("rope_scaling", format!("it makes the attention's scale {}", self.scale));
        }
        match ropes.get(self.rope) {
            Some(rope) if rope.dims == self.turning => Ok(()),
            _ => unusable("qk_rope_head_dim", format!("the rope turns another number than {}", self.turning)),
        }
    }
}
