//! The real-gated linear recurrent unit, `recurrent` (De et al.: Griffin, 2024, arXiv:2402.19427).

use crate::config::limits::{check_heads, check_kernel, check_nonzero, check_width};
use crate::error::Error;
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// Bytes of a number from the convolution to the gate: 32 bit floats on every backend.
const WIDE: u64 = 4;

/// A recurrent unit that carries one number per channel, beside a branch that gates what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RgLruConfig {
    /// Channels (`lru_width`).
    pub width: u32,
    /// Heads, each of which makes the gates of its channels of those alone.
    pub heads: u32,
    /// Tokens that the convolution before it sees (`conv1d_width`).
    pub kernel: u32,
}

impl RgLruConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_nonzero("lru_width", self.width)?;
        check_width("lru_width", 2 * u64::from(self.width))?;
        check_heads("lru_width", self.width, self.heads)?;
        check_kernel("conv1d_width", self.kernel)
    }
}

impl MixerCost for RgLruConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let width = u64::from(self.width);
        vec![
            Part::matrix(2 * width, hidden),
            Part::plain(width, self.kernel.into()),
            // The gates of each head.
            Part::plain(2 * width, width / u64::from(self.heads)),
            Part::matrix(hidden, width),
        ]
    }

    fn cache(&self, _format: &CacheFormat, _positions: u64) -> u64 {
        WIDE * u64::from(self.width) * u64::from(self.kernel)
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        let (rows, width) = (pass.rows, u64::from(self.width));
        let wide = |pass: &mut Prefill<'_>, numbers: u64| pass.take(rows * numbers * WIDE, rows * numbers);
        // The branch beside the unit, what goes in, and decays.
        pass.hold_in_one_layer(rows * width * (2 * pass.element + 2 * WIDE));
        pass.product(pass.hidden, 2 * width);
        if pass.element != WIDE {
            wide(pass, width);
        }
        pass.short_conv(width, self.kernel.into(), WIDE);
        // The channels by head, their gates, decays, and what goes in.
        for numbers in [width, 2 * width, 2 * width, width, width] {
            wide(pass, numbers);
        }
        pass.in_place(8);
        // The recurrence, for twice as many tokens each time.
        for _ in 0..rows.next_power_of_two().ilog2() {
            for _ in 0..4 {
                wide(pass, width);
            }
            pass.in_place(1);
        }
        // The branch beside it.
        for numbers in [width, width] {
            wide(pass, numbers);
        }
        pass.in_place(4);
        if pass.element != WIDE {
            pass.make(width);
        }
        pass.product(width, pass.hidden);
    }
}
