//! Lightning attention, `self_attn` (arXiv:2401.04658): heads carry a matrix from keys to values that fades by a fixed
//! share with each token.

use crate::config::layers::mamba2::{Mamba2Config, ScanNorm};
use crate::config::limits::{check_head, check_nonzero, check_positive, check_rotation, check_state, check_width};
use crate::config::rope::RopeConfig;
use crate::error::{unusable, Error};
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// Bytes of a number of what the heads carry.
const WIDE: u64 = 4;

/// The lightning attention of Ling 2.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LightningConfig {
    /// Heads of queries, keys and values.
    pub heads: u32,
    /// Width of each of them.
    pub width: u32,
    /// Index into [`DecoderConfig::ropes`](crate::DecoderConfig::ropes).
    pub rope: usize,
    /// True if `q_norm` and `k_norm` norm each head.
    pub qk_norm: bool,
    /// True if the projections of queries, keys and values must have a bias.
    pub qkv_bias: bool,
    /// True if `o_proj` must.
    pub o_bias: bool,
    /// Groups that the output is normed in, by `g_norm`, before a logistic gate, `g_proj`.
    pub norm_groups: u32,
    /// Factor of how fast all heads fade; the later the layer, the slower.
    pub fading: f32,
}

impl LightningConfig {
    fn inner(&self) -> u64 {
        u64::from(self.heads).saturating_mul(self.width.into())
    }

    /// How fast each head fades: the logarithms of its decays, positive.
    pub fn slopes(&self) -> Vec<f32> {
        // 2 to the -8/n, the -16/n, …, for the power of two below; then every other of twice as many.
        let of = |count: u32| (1..=count).map(move |head| (-8.0 * f64::from(head) / f64::from(count)).exp2());
        let whole = self.heads.checked_ilog2().map_or(0, |power| 1 << power);
        let between = of(2 * whole).step_by(2).take((self.heads - whole) as usize);
        of(whole)
            .chain(between)
            .map(|slope| slope as f32 * self.fading)
            .collect()
    }

    pub(crate) fn check(&self, ropes: &[RopeConfig]) -> Result<(), Error> {
        check_nonzero("num_attention_heads", self.heads)?;
        check_head("head_dim", self.width)?;
        check_width("num_attention_heads", self.inner().saturating_mul(4))?;
        check_state("head_dim", self.inner().saturating_mul(self.width.into()))?;
        if self.norm_groups == 0 || !self.inner().is_multiple_of(self.norm_groups.into()) {
            let reason = format!("{} numbers do not make {} groups", self.inner(), self.norm_groups);
            return unusable("group_norm_size", reason);
        }
        check_positive("num_hidden_layers", self.fading)?;
        match ropes.get(self.rope) {
            Some(rope) => check_rotation("partial_rotary_factor", rope.dims, self.width),
            None => Ok(()),
        }
    }

    /// The scan that computes it.
    fn scan(&self) -> Mamba2Config {
        Mamba2Config {
            heads: self.heads,
            head_width: self.width,
            groups: self.heads,
            state_width: self.width,
            kernel: 1,
            conv_bias: false,
            bias: false,
            step_limit: (0.0, f32::INFINITY),
            step_rank: None,
            norm: ScanNorm::Gate,
        }
    }
}

impl MixerCost for LightningConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        vec![
            Part::matrix(4 * self.inner(), hidden),
            Part::matrix(hidden, self.inner()),
        ]
    }

    fn cache(&self, _format: &CacheFormat, _positions: u64) -> u64 {
        WIDE * self.inner() * u64::from(self.width)
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        let (inner, rows) = (self.inner(), pass.rows);
        let wide = |pass: &mut Prefill<'_>, numbers: u64| pass.take(rows * numbers * WIDE, rows * numbers);
        pass.product(pass.hidden, 4 * inner);
        if self.qk_norm {
            pass.norm(inner, false);
            pass.norm(inner, false);
        }
        pass.turn(inner);
        pass.turn(inner);
        for _ in 0..3 {
            wide(pass, inner);
        }
        self.scan().scan(pass);
        for _ in 0..3 {
            wide(pass, inner);
        }
        pass.in_place(1);
        pass.make(inner);
        pass.product(inner, pass.hidden);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_fade_by_powers_of_two() {
        let of = |heads: u32| {
            let config = LightningConfig {
                heads,
                width: 32,
                rope: 0,
                qk_norm: false,
                qkv_bias: false,
                o_bias: false,
                norm_groups: 1,
                fading: 1.0,
            };
            config.slopes()
        };
        assert_eq!(of(4), [0.25, 0.0625, 0.015_625, 0.003_906_25]);
        assert_eq!(of(6)[4..], [0.5, 0.125]);
    }
}
