//! Multi-head latent attention (MLA): keys and values of all heads are made of one short vector per position, which is
//! all that a cache keeps (DeepSeek-V2, arXiv:2405.04434).

use crate::config::layers::attention::QueryScaling;
use crate::config::limits::{check_nonzero, check_width};
use crate::config::rope::RopeConfig;
use crate::error::{unusable, Error};
use crate::memory::{CacheFormat, MixerCost, Part, Prefill, ScoreShape};

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
    /// Index into [`DecoderConfig::ropes`](crate::DecoderConfig::ropes).
    pub rope: usize,
    /// Factor of the scores, without what the rope adds.
    pub scale: f32,
    /// Queries grow with their position (Mistral 4).
    pub query_scaling: Option<QueryScaling>,
    /// True if what makes the short vectors, and o, must have a bias.
    pub bias: bool,
    /// Added to the mean square in the norms of the short vectors.
    pub eps: f32,
}

impl MlaConfig {
    /// Refuses shapes that no model has.
    pub(crate) fn check(&self, ropes: &[RopeConfig]) -> Result<(), Error> {
        for (field, width) in [
            ("q_lora_rank", self.q_lora_rank.unwrap_or(1)),
            ("kv_lora_rank", self.kv_lora_rank),
            ("qk_nope_head_dim", self.qk_nope_head_dim),
            ("qk_rope_head_dim", self.qk_rope_head_dim),
            ("v_head_dim", self.v_head_dim),
        ] {
            check_nonzero(field, width)?;
        }
        let widest = u64::from(self.qk_nope_head_dim).max(self.kv_lora_rank.into())
            + u64::from(self.qk_rope_head_dim)
            + u64::from(self.v_head_dim);
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

impl MlaConfig {
    /// Heads, rank of the latent, and the widths of a query without and with rotary positions and of a value.
    fn shapes(&self) -> [u64; 5] {
        [
            self.heads,
            self.kv_lora_rank,
            self.qk_nope_head_dim,
            self.qk_rope_head_dim,
            self.v_head_dim,
        ]
        .map(u64::from)
    }
}

impl MixerCost for MlaConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let [heads, rank, still, turning, value] = self.shapes();
        let queries = heads * (still + turning);
        let first = self.q_lora_rank.map_or(queries, u64::from);
        let mut parts = vec![
            Part::matrix(first + rank + turning, hidden),
            Part::by_head(heads * (still + value), rank),
            Part::matrix(hidden, heads * value),
        ];
        parts.extend(self.q_lora_rank.map(|rank| Part::matrix(queries, rank.into())));
        parts
    }

    fn cache(&self, format: &CacheFormat, positions: u64) -> u64 {
        u64::from(self.kv_lora_rank + self.qk_rope_head_dim) * format.element * CacheFormat::grown(positions)
    }

    fn prefill(&self, pass: &mut Prefill<'_>, keys_alone: bool) {
        let [heads, rank, still, turning, value] = self.shapes();
        let (hidden, queries) = (pass.hidden, heads * (still + turning));
        pass.product(hidden, self.q_lora_rank.map_or(queries, u64::from) + rank + turning);
        pass.norm(rank, false);
        pass.turn(turning);
        pass.grow(self);
        if keys_alone {
            return;
        }
        if let Some(squeezed) = self.q_lora_rank.map(u64::from) {
            pass.norm(squeezed, false);
            pass.product(squeezed, queries);
        }
        pass.in_place(1);
        pass.turn(heads * turning);
        // Keys and values of all positions are expanded.
        let expanded = |width: u64| heads * pass.positions * width * pass.element;
        for bytes in [expanded(still), expanded(still + turning), expanded(value)] {
            pass.take(bytes, 0);
        }
        pass.make(queries);
        pass.attend(&ScoreShape {
            heads,
            width: still + turning,
            value_width: value,
            seen: pass.positions,
            sinks: false,
            capped: false,
            masked: false,
        });
        pass.product(heads * value, hidden);
    }
}
