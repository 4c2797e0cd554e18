//! Several streams between the layers, of which each part reads a mixture and which it writes back to
//! (arXiv:2409.19606, with the constraint of arXiv:2512.24880).

use crate::config::limits::{check_positive, check_range, check_width};
use crate::error::{unusable, Error};

/// Hyper-connections of a decoder, `attn_hc` and `ffn_hc` of each layer (XING 4.0).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyperConfig {
    /// How many streams.
    pub streams: u32,
    /// How often the matrix between them is scaled, rows and columns in turn.
    pub iterations: u32,
    /// Added to the sums by which it is scaled.
    pub eps: f32,
    /// The least and the greatest logarithm of its numbers before.
    pub bounds: (f32, f32),
}

impl HyperConfig {
    /// Numbers that a connection makes of all streams.
    pub fn numbers(&self) -> u32 {
        (2 + self.streams) * self.streams
    }

    pub(crate) fn check(&self, hidden: u32) -> Result<(), Error> {
        check_range("hc_mult", self.streams, 2..=16)?;
        check_range("hc_sinkhorn_iters", self.iterations, 0..=64)?;
        check_width("hc_mult", u64::from(self.streams) * u64::from(hidden))?;
        check_positive("hc_eps", self.eps)?;
        match self.bounds.0 < self.bounds.1 && self.bounds.1 < 80.0 {
            true => Ok(()),
            false => unusable("mhc_h_res_clamp_max", "it bounds nothing"),
        }
    }
}
