//! Multi-head latent attention (MLA): keys and values of all heads are made of one short vector per position, which is
//! all that a cache keeps (DeepSeek-V2, arXiv:2405.04434).

use crate::config::layers::attention::{GateSource, QueryScaling};
use crate::config::limits::{check_head, check_nonzero, check_positive, check_rotation, check_width};
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
    /// Index into [`DecoderConfig::ropes`](crate::DecoderConfig::ropes); `None` if nothing turns (Kimi Linear).
    pub rope: Option<usize>,
    /// Factor of the scores, without what the rope adds.
    pub scale: f32,
    /// Queries grow with their position (Mistral 4).
    pub query_scaling: Option<QueryScaling>,
    /// The positions that a query looks at; all if there is none.
    pub indexer: Option<IndexerConfig>,
    /// True if a query looks at the positions that the index of an earlier layer chose (Hunyuan 4).
    pub follows: bool,
    /// True if every head has a `sinks`, the score of nothing at all (Hunyuan 4).
    pub sinks: bool,
    /// True if what makes the short vectors, and o, must have a bias.
    pub bias: bool,
    /// Factor of the latents after their norm (LongCat Flash).
    pub latent_factor: f32,
    /// The logistic gate that what each head found goes through, by `g_proj`: of one number for it (Ling 3) or of as
    /// many as it has (Hunyuan 4).
    pub gate: Option<GateSource>,
    /// Added to the mean square in the norms of the short vectors.
    pub eps: f32,
}

/// An index that chooses the positions a query looks at, `self_attn.indexer`: a few small heads score all of them by
/// keys of their own, one for each position (DeepSeek V3.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexerConfig {
    /// Heads that score.
    pub heads: u32,
    /// Width of one of them.
    pub head_dim: u32,
    /// Positions that are chosen; all if there are no more.
    pub top_k: u32,
    /// Index into [`DecoderConfig::ropes`](crate::DecoderConfig::ropes).
    pub rope: usize,
    /// True if the last numbers of a head turn instead of the first (Hunyuan 4).
    pub turns_last: bool,
    /// Added to the variance in the norm of its keys, or to the mean square.
    pub eps: f32,
    /// True if that norm is by the root of the mean square (LongCat Flash with an index).
    pub rms: bool,
    /// Positions at the beginning that are always chosen.
    pub first: u32,
    /// Positions up to a query's own that are always chosen.
    pub near: u32,
}

impl IndexerConfig {
    fn check(&self, ropes: &[RopeConfig]) -> Result<(), Error> {
        check_nonzero("index_n_heads", self.heads)?;
        check_nonzero("index_topk", self.top_k)?;
        check_width("index_topk", self.top_k.into())?;
        check_width("index_init_tokens", self.first.into())?;
        check_width("index_local_tokens", self.near.into())?;
        let always = u64::from(self.first) + u64::from(self.near);
        if always > self.top_k.into() {
            return unusable("index_topk", format!("{always} positions are always chosen"));
        }
        check_head("index_head_dim", self.head_dim)?;
        check_width("index_n_heads", u64::from(self.heads) * u64::from(self.head_dim))?;
        check_positive("rms_norm_eps", self.eps)?;
        match ropes.get(self.rope) {
            Some(rope) => check_rotation("qk_rope_head_dim", rope.dims, self.head_dim),
            None => Ok(()),
        }
    }
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
        check_width("v_head_dim", self.gate_width())?;
        check_width("q_lora_rank", self.q_lora_rank.unwrap_or(0).into())?;
        check_positive("kv_lora_rank", self.latent_factor)?;
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return unusable("rope_scaling", format!("it makes the attention's scale {}", self.scale));
        }
        if let Some(indexer) = self.indexer {
            indexer.check(ropes)?;
            // The index reads the short vectors of queries.
            self.q_lora_rank.ok_or(Error::MissingField("q_lora_rank"))?;
        }
        match self.rope.map(|rope| ropes.get(rope)) {
            None => Ok(()),
            Some(Some(rope)) if rope.dims == self.qk_rope_head_dim => Ok(()),
            Some(_) => unusable(
                "qk_rope_head_dim",
                format!("the rope turns another number than {}", self.qk_rope_head_dim),
            ),
        }
    }
}

impl MlaConfig {
    /// Numbers of the gate for each token.
    fn gate_width(&self) -> u64 {
        match self.gate {
            None => 0,
            Some(GateSource::Heads) => self.heads.into(),
            Some(GateSource::Queries | GateSource::Numbers) => u64::from(self.heads) * u64::from(self.v_head_dim),
        }
    }

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

impl IndexerConfig {
    /// Its projections, the scores of all positions, and the marks of those that are chosen.
    fn prefill(&self, pass: &mut Prefill<'_>, rank: u64) {
        let (heads, width) = (u64::from(self.heads), u64::from(self.head_dim));
        pass.product(rank, heads * width);
        pass.product(pass.hidden, width + heads);
        pass.norm(width, false);
        pass.turn((heads + 1) * width);
        if pass.positions <= self.top_k.into() {
            return;
        }
        // They are gone before the next layer has its own.
        let all = pass.rows.saturating_mul(pass.positions);
        let scores = heads.saturating_mul(all).saturating_mul(pass.element);
        pass.hold_in_one_layer(scores.saturating_add(all.saturating_mul(16)));
        pass.in_place(8);
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
        parts.extend(self.gate.map(|_| Part::matrix(self.gate_width(), hidden)));
        if let (Some(indexer), Some(rank)) = (self.indexer, self.q_lora_rank) {
            let (heads, width) = (u64::from(indexer.heads), u64::from(indexer.head_dim));
            parts.push(Part::matrix(heads * width, rank.into()));
            parts.push(Part::matrix(width + heads, hidden));
        }
        parts
    }

    fn cache(&self, format: &CacheFormat, positions: u64) -> u64 {
        let index = self.indexer.map_or(0, |indexer| indexer.head_dim);
        u64::from(self.kv_lora_rank + self.qk_rope_head_dim + index) * format.element * CacheFormat::grown(positions)
    }

    fn prefill(&self, pass: &mut Prefill<'_>, keys_alone: bool) {
        let [heads, rank, still, turning, value] = self.shapes();
        let (hidden, queries) = (pass.hidden, heads * (still + turning));
        pass.product(hidden, self.q_lora_rank.map_or(queries, u64::from) + rank + turning);
        pass.norm(rank, false);
        if self.rope.is_some() {
            pass.turn(turning);
        }
        pass.grow(self);
        if keys_alone {
            return;
        }
        if let Some(squeezed) = self.q_lora_rank.map(u64::from) {
            pass.norm(squeezed, false);
            pass.product(squeezed, queries);
        }
        if let (Some(indexer), Some(rank)) = (self.indexer, self.q_lora_rank) {
            indexer.prefill(pass, rank.into());
        }
        pass.in_place(1);
        if self.rope.is_some() {
            pass.turn(heads * turning);
        }
        // Keys and values of all positions are expanded.
        let expanded = |width: u64| (heads * pass.positions).saturating_mul(width * pass.element);
        let widths = [still, still + turning, value];
        match self.indexer {
            Some(_) => widths.map(expanded).into_iter().for_each(|bytes| pass.take(bytes, 0)),
            // Those of one layer are gone before the next one has its own.
            None => pass.hold_in_one_layer(expanded(widths.iter().sum())),
        }
        pass.make(queries);
        pass.attend(&ScoreShape {
            heads,
            width: still + turning,
            value_width: value,
            seen: pass.positions,
            sinks: self.sinks,
            capped: false,
            striped: false,
            masked: false,
        });
        if self.gate.is_some() {
            pass.product(hidden, self.gate_width());
            pass.make(heads * value);
            pass.in_place(2);
        }
        pass.product(heads * value, hidden);
    }
}
