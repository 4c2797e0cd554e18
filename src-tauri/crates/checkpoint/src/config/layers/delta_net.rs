//! The gated delta net, `linear_attn` (Qwen 3.5, Qwen 3 Next, OLMo Hybrid), or `self_attn` if each number of a key has
//! a decay of its own (Kimi Linear).

use crate::config::limits::{check_kernel, check_nonzero, check_positive, check_state, check_width};
use crate::error::{unusable, Error};
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// Tokens that the engine's delta rule computes together.
pub const RULE_CHUNK: u32 = 64;

/// The same if each number of a key has a decay of its own.
pub const CHANNEL_CHUNK: u32 = 16;

/// Bytes of a number from the convolution to the gated norm: 32 bit floats on every backend.
const WIDE: u64 = 4;

/// The gated delta net of Qwen 3.5: heads that carry a matrix from keys to values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeltaNetConfig {
    /// Heads of queries and keys.
    pub key_heads: u32,
    /// Heads of values, of which several may share one of the keys.
    pub value_heads: u32,
    /// Width of a query and of a key.
    pub key_width: u32,
    /// Width of a value.
    pub value_width: u32,
    /// Tokens that the convolution before it sees.
    pub kernel: u32,
    /// How the checkpoint keeps the projections of the input.
    pub projections: DeltaProjections,
    /// True if rates reach up to 2 instead of 1, so that a state may turn its sign (`linear_allow_neg_eigval`).
    pub negates: bool,
    /// Decays of each number of a key; `None` if a head has one for all.
    pub channels: Option<ChannelDecays>,
    /// True if the gate of the output is the logistic function, and not that times the gate.
    pub logistic: bool,
    /// Added to the mean square in the norm of the output.
    pub norm_eps: f32,
}

/// Decays of each number of a key by itself, and a logistic gate of the output (Kimi Linear).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelDecays {
    /// Width that decays and gate are projected through, `f_a_proj` and `f_b_proj`, `g_a_proj` and `g_b_proj`; `None`
    /// if they are projected directly, `f_proj` and `g_proj` (Ling 3).
    pub rank: Option<u32>,
    /// The logarithm of the strongest decay, below 0, of which a logistic function gives the share; `None` if decays
    /// are as strong as they like.
    pub lower_bound: Option<f32>,
}

/// How a checkpoint keeps the projections of a delta net's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaProjections {
    /// `in_proj_qkv`, `in_proj_z`, `in_proj_b` and `in_proj_a` (Qwen 3.5).
    Apart,
    /// `in_proj_qkvz` and `in_proj_ba`, with the rows of each key head together (Qwen 3 Next).
    ByKeyHead,
    /// `q_proj`, `k_proj`, `v_proj`, `g_proj`, `b_proj` and `a_proj`, and mostly three convolutions, `q_conv1d`,
    /// `k_conv1d` and `v_conv1d` (OLMo Hybrid).
    Single,
}

impl DeltaNetConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.key_heads == 0 || self.value_heads == 0 || !self.value_heads.is_multiple_of(self.key_heads) {
            let reason = format!(
                "{} heads of values cannot share {} of keys",
                self.value_heads, self.key_heads
            );
            return unusable("linear_num_key_heads", reason);
        }
        check_nonzero("linear_key_head_dim", self.key_width)?;
        check_nonzero("linear_value_head_dim", self.value_width)?;
        let (keys, values) = (
            u64::from(self.key_heads).saturating_mul(self.key_width.into()),
            u64::from(self.value_heads).saturating_mul(self.value_width.into()),
        );
        check_width("linear_num_key_heads", keys)?;
        check_width("linear_num_value_heads", values)?;
        let joined = 2 * (keys + values + u64::from(self.value_heads));
        check_width("linear_num_value_heads", joined)?;
        check_state("linear_key_head_dim", values.saturating_mul(self.key_width.into()))?;
        check_positive("layer_norm_epsilon", self.norm_eps)?;
        if let Some(channels) = self.channels {
            check_nonzero("head_dim", channels.rank.unwrap_or(1))?;
            check_width("head_dim", 2 * u64::from(channels.rank.unwrap_or(1)))?;
            check_width("num_heads", 4 * keys + values)?;
            check_positive("kda_lower_bound", -channels.lower_bound.unwrap_or(-1.0))?;
        }
        check_kernel("linear_conv_kernel_dim", self.kernel)
    }
}

impl DeltaNetConfig {
    /// Numbers of all queries, or of all keys, and of all values, for one token.
    fn widths(&self) -> (u64, u64) {
        (
            u64::from(self.key_heads) * u64::from(self.key_width),
            u64::from(self.value_heads) * u64::from(self.value_width),
        )
    }

    /// Decays of a token.
    fn decays(&self) -> u64 {
        let width = self.channels.map_or(1, |_| self.key_width);
        u64::from(self.value_heads) * u64::from(width)
    }

    /// Width that decays and gate are projected through.
    fn rank(&self) -> Option<u64> {
        self.channels?.rank.map(u64::from)
    }

    /// Numbers that the first projection makes for the gate, the rates and the decays.
    fn gates(&self) -> u64 {
        let directly = self.widths().1 + self.decays();
        u64::from(self.value_heads) + self.rank().map_or(directly, |rank| 2 * rank)
    }
}

impl MixerCost for DeltaNetConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let (keys, values) = self.widths();
        let mut parts = vec![
            Part::matrix(2 * keys + values + self.gates(), hidden),
            Part::plain(2 * keys + values, self.kernel.into()),
            Part::matrix(hidden, values),
        ];
        if let Some(rank) = self.rank() {
            parts.extend([Part::matrix(values, rank), Part::matrix(self.decays(), rank)]);
        }
        parts
    }

    fn cache(&self, _format: &CacheFormat, _positions: u64) -> u64 {
        let (keys, values) = self.widths();
        WIDE * (values * u64::from(self.key_width) + u64::from(self.kernel - 1) * (2 * keys + values))
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        let (value_heads, decays) = (u64::from(self.value_heads), self.decays());
        let (keys, values) = self.widths();
        let mixed = 2 * keys + values;
        let rows = pass.rows;
        let wide = |pass: &mut Prefill<'_>, numbers: u64| pass.take(rows * numbers * WIDE, rows * numbers);
        pass.product(pass.hidden, mixed + self.gates());
        if let Some(rank) = self.rank() {
            pass.product(rank, values);
            pass.product(rank, decays);
        }
        if pass.element != WIDE {
            wide(pass, mixed);
        }
        pass.short_conv(mixed, self.kernel.into(), WIDE);
        wide(pass, mixed);
        pass.in_place(1);
        // Unit vectors, values in rows of their own, decays and rates.
        for numbers in [2 * keys, 2 * keys, values, 3 * (value_heads + decays)] {
            wide(pass, numbers);
        }
        match self.channels {
            Some(_) => self.rule_by_channel(pass),
            None => self.rule(pass),
        }
        // The norm of the outputs, its gate, and both in the type of the stream.
        for numbers in [values, values, values, values] {
            wide(pass, numbers);
        }
        pass.in_place(2);
        if pass.element != WIDE {
            pass.make(values);
        }
        pass.product(values, pass.hidden);
    }
}

impl DeltaNetConfig {
    /// The delta rule by chunks (the engine's `DeltaRule::chunks`, in its order).
    fn rule(&self, pass: &mut Prefill<'_>) {
        let chunk = u64::from(RULE_CHUNK);
        let [key_heads, value_heads, key_width, value_width] =
            [self.key_heads, self.value_heads, self.key_width, self.value_width].map(u64::from);
        let rows = pass.rows;
        let chunks = rows.div_ceil(chunk);
        let squares = rows * chunk;
        let make = |pass: &mut Prefill<'_>, numbers: u64| pass.take(numbers * WIDE, numbers);
        // Copies in the order of the chunks.
        for numbers in [rows * key_heads * key_width; 3] {
            make(pass, numbers);
        }
        // The decay between tokens, and the similarity of their keys.
        for numbers in [
            value_heads * squares,
            value_heads * squares,
            key_heads * squares,
            value_heads * squares,
        ] {
            make(pass, numbers);
        }
        pass.in_place(4);
        // The inverse of the triangles, by blocks, and the solver.
        for numbers in [value_heads * squares; 8] {
            make(pass, numbers);
        }
        pass.in_place(24);
        for numbers in [
            key_heads * squares,
            value_heads * squares,
            rows * value_heads * key_width,
            rows * value_heads * key_width,
            rows * value_heads * key_width,
        ] {
            make(pass, numbers);
        }
        let state = value_heads * value_width * key_width;
        for _ in 0..chunks {
            let of_values = chunk * value_heads * value_width;
            for numbers in [of_values, of_values, state, state] {
                make(pass, numbers);
            }
            pass.in_place(1);
        }
        // States and corrections joined, one copy for each, then the outputs, in the order of the tokens at last.
        make(pass, chunks * state);
        pass.in_place(2 * chunks);
        for numbers in [rows * value_heads * value_width; 4] {
            make(pass, numbers);
        }
    }

    /// The same if each number of a key has a decay of its own.
    fn rule_by_channel(&self, pass: &mut Prefill<'_>) {
        let chunk = u64::from(CHANNEL_CHUNK);
        let (heads, width) = (u64::from(self.value_heads), u64::from(self.value_width));
        let (rows, decays) = (pass.rows, self.decays());
        let (chunks, values, squares) = (rows.div_ceil(chunk), heads * width, rows * chunk * heads);
        let make = |pass: &mut Prefill<'_>, numbers: u64| pass.take(numbers * WIDE, numbers);
        // Copies in the order of the chunks, and what is left of the state.
        for _ in 0..5 {
            make(pass, rows * decays);
        }
        // For each token of all chunks what later ones find of its key.
        for _ in 0..chunk {
            make(pass, rows * decays);
            pass.in_place(8);
        }
        for _ in 0..8 {
            make(pass, squares);
        }
        pass.in_place(12);
        for _ in 0..4 {
            make(pass, rows * decays);
        }
        let state = values * u64::from(self.key_width);
        for _ in 0..chunks {
            for numbers in [chunk * values, chunk * values, state, state] {
                make(pass, numbers);
            }
            pass.in_place(1);
        }
        make(pass, chunks * state);
        pass.in_place(2 * chunks);
        for _ in 0..4 {
            make(pass, rows * values);
        }
    }
}
