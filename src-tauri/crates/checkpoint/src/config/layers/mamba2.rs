//! Mamba 2, `mamba` (Dao, Gu: Transformers are SSMs, 2024, arXiv:2405.21060).

use crate::config::limits::{check_kernel, check_nonzero, check_state, check_width};
use crate::error::{unusable, Error};
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// Tokens that the engine's scan computes together.
pub const SCAN_CHUNK: u32 = 64;

/// Bytes of a number from the convolution to the norm: 32 bit floats on every backend.
const WIDE: u64 = 4;

/// Mamba 2: heads that carry a matrix from token to token, which fades at a speed that each token sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mamba2Config {
    /// Heads of what is written to the states (`mamba_n_heads`, `num_heads`).
    pub heads: u32,
    /// Width of such a head (`mamba_d_head`, `head_dim`).
    pub head_width: u32,
    /// Groups of heads that share where they write and read (`mamba_n_groups`, `n_groups`).
    pub groups: u32,
    /// Width of those places (`mamba_d_state`, `state_size`).
    pub state_width: u32,
    /// Tokens that the convolution before it sees (`mamba_d_conv`, `conv_kernel`).
    pub kernel: u32,
    /// True if the convolution must have a bias.
    pub conv_bias: bool,
    /// True if the projections must have a bias.
    pub bias: bool,
    /// The smallest and the largest step (`time_step_limit`).
    pub step_limit: (f32, f32),
    /// The norm of the output.
    pub norm: ScanNorm,
    /// Width that steps are projected through by `bcdt_proj`, which makes them and the places of the convolved values,
    /// in one group, and `dt_proj`; each is normed between. `None` if `in_proj` makes all (PLaMo 2).
    pub step_rank: Option<u32>,
}

/// The norm of what a state-space layer gives, `norm`, and the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanNorm {
    /// None: the gate alone (Falcon-H1).
    Gate,
    /// The gated output is normed, in so many groups.
    AfterGate {
        /// How many.
        groups: u32,
    },
    /// The output is normed in so many groups and gated then.
    BeforeGate {
        /// How many.
        groups: u32,
    },
}

impl ScanNorm {
    /// How many groups are normed each by itself.
    pub fn groups(self) -> Option<u32> {
        match self {
            Self::Gate => None,
            Self::AfterGate { groups } | Self::BeforeGate { groups } => Some(groups),
        }
    }
}

impl Mamba2Config {
    /// Width of all heads together.
    pub fn inner(&self) -> u64 {
        u64::from(self.heads).saturating_mul(self.head_width.into())
    }

    /// Channels of the convolution: what is written, and where each group writes and reads.
    pub fn channels(&self) -> u64 {
        if self.step_rank.is_some() {
            return self.inner();
        }
        let places = u64::from(self.groups).saturating_mul(self.state_width.into());
        self.inner().saturating_add(places.saturating_mul(2))
    }

    /// Numbers that `bcdt_proj` makes.
    pub fn made(&self) -> Option<u64> {
        self.step_rank
            .map(|rank| u64::from(rank) + 2 * u64::from(self.state_width))
    }

    /// Numbers that `in_proj` makes.
    fn projected(&self) -> u64 {
        let steps = self.step_rank.map_or(self.heads, |_| 0);
        self.inner()
            .saturating_add(self.channels())
            .saturating_add(steps.into())
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_width("mamba_d_state", self.made().unwrap_or(0))?;
        check_nonzero("mamba_d_state", self.step_rank.unwrap_or(1))?;
        if self.groups == 0 || self.heads == 0 || !self.heads.is_multiple_of(self.groups) {
            let reason = format!("{} heads cannot share {} groups", self.heads, self.groups);
            return unusable("n_groups", reason);
        }
        check_nonzero("mamba_head_dim", self.head_width)?;
        check_nonzero("state_size", self.state_width)?;
        check_width("mamba_head_dim", self.projected())?;
        check_state("state_size", self.inner().saturating_mul(self.state_width.into()))?;
        check_kernel("conv_kernel", self.kernel)?;
        if self.step_limit.0 < 0.0 || self.step_limit.1 <= 0.0 {
            return unusable("time_step_limit", "steps are above 0");
        }
        match self.norm.groups() {
            Some(groups) if groups == 0 || !self.inner().is_multiple_of(groups.into()) => {
                let reason = format!("{} numbers cannot be normed in {groups} groups", self.inner());
                unusable("n_groups", reason)
            }
            _ => Ok(()),
        }
    }
}

impl MixerCost for Mamba2Config {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let mut parts = vec![
            Part::matrix(self.projected(), hidden),
            Part::plain(self.channels(), self.kernel.into()),
            Part::matrix(hidden, self.inner()),
        ];
        if let (Some(made), Some(rank)) = (self.made(), self.step_rank) {
            parts.extend([
                Part::matrix(made, self.inner()),
                Part::matrix(self.heads.into(), rank.into()),
            ]);
        }
        parts
    }

    fn cache(&self, _format: &CacheFormat, _positions: u64) -> u64 {
        WIDE * (self.inner() * u64::from(self.state_width) + u64::from(self.kernel - 1) * self.channels())
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        let (heads, inner, channels) = (u64::from(self.heads), self.inner(), self.channels());
        let rows = pass.rows;
        let wide = |pass: &mut Prefill<'_>, numbers: u64| pass.take(rows * numbers * WIDE, rows * numbers);
        pass.hold_in_one_layer(self.held(pass));
        pass.product(pass.hidden, self.projected());
        if pass.element != WIDE {
            wide(pass, channels);
        }
        pass.short_conv(channels, self.kernel.into(), WIDE);
        wide(pass, channels);
        pass.in_place(1);
        if let (Some(made), Some(rank)) = (self.made(), self.step_rank) {
            if pass.element != WIDE {
                pass.make(inner);
            }
            pass.product(inner, made);
            for _ in 0..3 {
                pass.norm(made / 3, false);
            }
            pass.product(rank.into(), heads);
        }
        // Steps and decays, what is written in rows of its own, and what passes by the states.
        for numbers in [heads, heads, heads] {
            wide(pass, numbers);
        }
        self.scan(pass);
        for numbers in [inner, inner] {
            wide(pass, numbers);
        }
        pass.in_place(1);
        // The gate and the norm.
        for numbers in [inner, inner] {
            wide(pass, numbers);
        }
        pass.in_place(1);
        if self.norm != ScanNorm::Gate {
            wide(pass, inner);
        }
        if pass.element != WIDE {
            pass.make(inner);
        }
        pass.product(inner, pass.hidden);
    }
}

impl Mamba2Config {
    /// Bytes that live nearly from the first operation to the last: the gate, what passes by the states, and what is
    /// written to them.
    pub(crate) fn held(&self, pass: &Prefill<'_>) -> u64 {
        let (inner, channels) = (self.inner(), self.channels());
        pass.rows * ((inner + channels + u64::from(self.heads)) * pass.element + (channels + inner) * WIDE)
    }

    /// The scan by chunks (the engine's `StateSpace::chunks`, in its order).
    pub(crate) fn scan(&self, pass: &mut Prefill<'_>) {
        let [heads, groups, state_width] = [self.heads, self.groups, self.state_width].map(u64::from);
        let (rows, inner) = (pass.rows, self.inner());
        let chunk = u64::from(SCAN_CHUNK).min(rows);
        let chunks = rows.div_ceil(chunk);
        let squares = rows * chunk;
        let make = |pass: &mut Prefill<'_>, numbers: u64| pass.take(numbers * WIDE, numbers);
        // The inputs of the state, in the order of the chunks and times their steps.
        make(pass, rows * inner);
        // The decay between tokens.
        for numbers in [heads * squares; 2] {
            make(pass, numbers);
        }
        pass.in_place(2);
        // Places in the order of the chunks.
        for numbers in [rows * groups * state_width; 2] {
            make(pass, numbers);
        }
        // The weight of each position for each later one.
        for numbers in [groups * squares, heads * squares] {
            make(pass, numbers);
        }
        for numbers in [rows * inner, chunks * inner * state_width] {
            make(pass, numbers);
        }
        for _ in 0..chunks {
            make(pass, inner * state_width);
            pass.in_place(1);
        }
        // The states joined, then the outputs, in the order of the tokens at last.
        make(pass, chunks * inner * state_width);
        for numbers in [rows * inner; 4] {
            make(pass, numbers);
        }
    }
}
