//! Mamba, `mamba` (Gu, Dao: Linear-Time Sequence Modeling with Selective State Spaces, 2023, arXiv:2312.00752).

use crate::config::limits::{check_kernel, check_nonzero, check_positive, check_state, check_width};
use crate::error::Error;
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// Tokens whose decays the engine's selective scan computes together.
pub const SELECTIVE_CHUNK: u32 = 16;

/// Bytes of a number from the convolution to the gate: 32 bit floats on every backend.
const WIDE: u64 = 4;

/// Mamba: every channel carries a row of numbers from token to token, each of which fades at a speed of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MambaConfig {
    /// Channels (`intermediate_size`, `mamba_expand` times the stream).
    pub inner: u32,
    /// Width of what a channel carries (`state_size`, `mamba_d_state`).
    pub state_width: u32,
    /// Tokens that the convolution before it sees (`conv_kernel`, `mamba_d_conv`).
    pub kernel: u32,
    /// Width from which steps are projected (`time_step_rank`, `mamba_dt_rank`).
    pub rank: u32,
    /// True if the convolution must have a bias.
    pub conv_bias: bool,
    /// True if the projections from and to the stream must have a bias.
    pub bias: bool,
    /// The norms of steps and places.
    pub norms: ScanInputNorms,
}

/// The norms of what steps are projected from, and of the places that are written and read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScanInputNorms {
    /// None.
    None,
    /// Without factors, with this added to the mean square (Falcon Mamba).
    Bare(f32),
    /// `dt_layernorm`, `b_layernorm` and `c_layernorm`, with this added to the mean square (Jamba).
    Weighted(f32),
}

impl MambaConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_nonzero("intermediate_size", self.inner)?;
        check_nonzero("state_size", self.state_width)?;
        check_nonzero("time_step_rank", self.rank)?;
        check_width("intermediate_size", 2 * u64::from(self.inner))?;
        check_width("state_size", u64::from(self.rank) + 2 * u64::from(self.state_width))?;
        check_state("state_size", u64::from(self.inner) * u64::from(self.state_width))?;
        check_kernel("conv_kernel", self.kernel)?;
        match self.norms {
            ScanInputNorms::None => Ok(()),
            ScanInputNorms::Bare(eps) | ScanInputNorms::Weighted(eps) => check_positive("mixer_rms_eps", eps),
        }
    }
}

impl MixerCost for MambaConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let [inner, state_width, rank] = [self.inner, self.state_width, self.rank].map(u64::from);
        vec![
            Part::matrix(2 * inner, hidden),
            Part::plain(inner, self.kernel.into()),
            Part::matrix(rank + 2 * state_width, inner),
            Part::matrix(inner, rank),
            Part::plain(inner, state_width),
            Part::matrix(hidden, inner),
        ]
    }

    fn cache(&self, _format: &CacheFormat, _positions: u64) -> u64 {
        WIDE * u64::from(self.inner) * u64::from(self.state_width + self.kernel - 1)
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        let [inner, state_width, rank] = [self.inner, self.state_width, self.rank].map(u64::from);
        let rows = pass.rows;
        let wide = |pass: &mut Prefill<'_>, numbers: u64| pass.take(rows * numbers * WIDE, rows * numbers);
        // The gate before and after its activation, values, steps, what is written, and the outputs, which are joined at
        // last, live while one token follows another.
        pass.hold_in_one_layer(rows * inner * (2 * pass.element + 6 * WIDE));
        pass.product(pass.hidden, 2 * inner);
        if pass.element != WIDE {
            wide(pass, inner);
        }
        pass.short_conv(inner, self.kernel.into(), WIDE);
        wide(pass, inner);
        pass.in_place(1);
        pass.product(inner, rank + 2 * state_width);
        if self.norms != ScanInputNorms::None {
            wide(pass, rank + 2 * state_width);
        }
        pass.product(rank, inner);
        // Steps, and what is written of each channel.
        for numbers in [inner, inner] {
            wide(pass, numbers);
        }
        pass.in_place(1);
        let chunk = u64::from(SELECTIVE_CHUNK).min(rows);
        let carried = inner * state_width;
        for _ in 0..rows.div_ceil(chunk) {
            // Decays, what is written, then the states one by one and beside each other.
            for _ in 0..2 {
                pass.take(chunk * carried * WIDE, chunk * carried);
            }
            pass.in_place(1);
            for _ in 0..chunk {
                pass.take(carried * WIDE, carried);
                pass.in_place(1);
            }
            pass.take(chunk * carried * WIDE, chunk * carried);
            pass.take(chunk * inner * WIDE, chunk * carried);
        }
        // The outputs, what passes by the states, and the gate.
        for numbers in [inner; 4] {
            wide(pass, numbers);
        }
        pass.in_place(2);
        if pass.element != WIDE {
            pass.make(inner);
        }
        pass.product(inner, pass.hidden);
    }
}
