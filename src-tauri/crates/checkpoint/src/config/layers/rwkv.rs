//! The two parts of a layer of RWKV 7 (arXiv:2503.14456): one whose heads carry a matrix from keys to values, and one
//! that looks at a token and the one before it.

use crate::config::limits::{check_head, check_nonzero, check_state, check_width};
use crate::error::Error;
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// Bytes of a number from the projections to the norm of what the heads found: 32 bit floats on every backend.
const WIDE: u64 = 4;

/// Tokens that are computed at once by matrix products.
pub const WKV_CHUNK: u32 = 16;

/// A part of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RwkvConfig {
    /// `attn`.
    Time(TimeMixConfig),
    /// `ffn`.
    Channel(ChannelMixConfig),
}

/// The part with heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeMixConfig {
    /// Heads.
    pub heads: u32,
    /// Width of each of them.
    pub head_dim: u32,
    /// True for the first one, whose values the others mix with theirs.
    pub first: bool,
    /// Ranks of what makes decays, rates, shares of the first values, and the gate.
    pub ranks: TimeMixRanks,
}

/// Ranks of the small products of a part with heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeMixRanks {
    /// `decay_low_rank_dim`.
    pub decays: u32,
    /// `a_low_rank_dim`.
    pub rates: u32,
    /// `v_low_rank_dim`.
    pub values: u32,
    /// `gate_low_rank_dim`.
    pub gate: u32,
}

/// The part without heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelMixConfig {
    /// Width inside.
    pub width: u32,
    /// Width of the residual stream.
    pub hidden: u32,
}

impl RwkvConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Channel(mix) => check_width("intermediate_size", mix.width.into()),
            Self::Time(mix) => {
                check_nonzero("hidden_size", mix.heads)?;
                check_head("head_dim", mix.head_dim)?;
                let inner = u64::from(mix.heads).saturating_mul(mix.head_dim.into());
                check_width("hidden_size", inner.saturating_mul(6))?;
                check_state("head_dim", inner.saturating_mul(mix.head_dim.into()))?;
                for (field, rank) in mix.ranks.named() {
                    check_nonzero(field, rank)?;
                    check_width(field, rank.into())?;
                }
                Ok(())
            }
        }
    }
}

impl TimeMixRanks {
    fn named(self) -> [(&'static str, u32); 4] {
        [
            ("decay_low_rank_dim", self.decays),
            ("a_low_rank_dim", self.rates),
            ("v_low_rank_dim", self.values),
            ("gate_low_rank_dim", self.gate),
        ]
    }
}

impl TimeMixConfig {
    fn ranks(&self) -> impl Iterator<Item = u64> {
        let first = self.first;
        let used = self.ranks.named().into_iter();
        let used = used.filter(move |(field, _)| !first || *field != "v_low_rank_dim");
        used.map(|(_, rank)| rank.into())
    }

    fn inner(&self) -> u64 {
        u64::from(self.heads) * u64::from(self.head_dim)
    }

    fn prefill(&self, pass: &mut Prefill<'_>) {
        let (inner, rows, width) = (self.inner(), pass.rows, u64::from(self.head_dim));
        let wide = |pass: &mut Prefill<'_>, numbers: u64| pass.take(rows * numbers * WIDE, rows * numbers);
        // The inputs of the rule, the gate, and what passes by the state live while one chunk follows another.
        pass.hold_in_one_layer(rows * inner * 8 * WIDE);
        // The tokens before, their differences, and what each product reads.
        for _ in 0..8 {
            pass.make(inner);
        }
        for _ in 0..3 {
            pass.product(inner, inner);
        }
        for rank in self.ranks() {
            pass.product(inner, rank);
            pass.in_place(1);
            pass.product(rank, inner);
            pass.in_place(3);
        }
        // Keys that are asked for and those that are added, by chunk and with their decays.
        for _ in 0..12 {
            wide(pass, inner);
        }
        let chunk = u64::from(WKV_CHUNK);
        let count = rows.div_ceil(chunk);
        // Products of keys with each other, and the inverse.
        for _ in 0..8 {
            pass.take(count * u64::from(self.heads) * chunk * chunk * WIDE, 0);
        }
        let state = inner * width * WIDE;
        // The part that each chunk adds to the state, and the states beside each other.
        pass.take(count * state, 0);
        for _ in 0..count {
            pass.take(state, 0);
            pass.in_place(6);
        }
        pass.take(count * state, 0);
        for _ in 0..5 {
            wide(pass, inner);
        }
        pass.in_place(6);
        pass.make(inner);
        pass.product(inner, inner);
    }
}

impl MixerCost for RwkvConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        match self {
            Self::Channel(mix) => vec![Part::matrix(2 * u64::from(mix.width), hidden)],
            Self::Time(mix) => {
                let ranks = mix.ranks().map(|rank| Part::matrix(2 * rank, hidden));
                [Part::matrix(4 * mix.inner(), hidden)]
                    .into_iter()
                    .chain(ranks)
                    .collect()
            }
        }
    }

    fn cache(&self, format: &CacheFormat, _positions: u64) -> u64 {
        let last = |hidden: u64| hidden * format.element;
        match self {
            Self::Channel(mix) => last(mix.hidden.into()),
            Self::Time(mix) => last(mix.inner()) + WIDE * mix.inner() * u64::from(mix.head_dim),
        }
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        match self {
            Self::Time(mix) => mix.prefill(pass),
            Self::Channel(mix) => {
                for _ in 0..3 {
                    pass.make(mix.hidden.into());
                }
                pass.product(mix.hidden.into(), mix.width.into());
                pass.in_place(2);
                pass.product(mix.width.into(), mix.hidden.into());
            }
        }
    }
}
