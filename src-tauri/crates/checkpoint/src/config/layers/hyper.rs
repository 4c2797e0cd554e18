//! Several streams between the layers, of which each part reads a mixture and which it writes back to
//! (arXiv:2409.19606, with the constraint of arXiv:2512.24880).

use crate::config::limits::{check_nonzero, check_positive, check_range, check_width};
use crate::error::{unusable, Error};
use crate::memory::Part;

/// Hyper-connections of a decoder, `attn_hc` and `ffn_hc` of each layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyperConfig {
    /// How many streams.
    pub streams: u32,
    /// Added to the sums by which a matrix is scaled, or else to the shares of streams.
    pub eps: f32,
    /// How streams are mixed with each other on the way.
    pub between: BetweenStreams,
    /// True if learned shares of the streams, `hc_head`, come before the last norm instead of their mean (Hunyuan 4).
    pub head: bool,
}

/// How streams are mixed with each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BetweenStreams {
    /// By a matrix whose rows and columns sum up to about 1 (XING 4.0).
    Balanced {
        /// How often it is scaled, rows and columns in turn.
        iterations: u32,
        /// The least and the greatest logarithm of its numbers before.
        bounds: (f32, f32),
    },
    /// The same of shares of each row, in 32 bits, turned over (DeepSeek V4).
    Shares {
        /// How often it is scaled, columns alone at first.
        iterations: u32,
    },
    /// They are not, and a part reads their mean, each number of them times a logistic gate; `attn_hyper_connection`,
    /// `mlp_hyper_connection`, and `hyper_connection_mixer` in place of the last norm (Qwen 4).
    Gated {
        /// Width that the gates are projected through.
        rank: u32,
    },
    /// They are not: each keeps what it has (Hunyuan 4).
    Kept {
        /// The most that a stream takes of what a part gave.
        magnitude: f32,
    },
}

impl HyperConfig {
    /// Numbers that a connection makes of all streams.
    pub fn numbers(&self) -> u32 {
        match self.between {
            BetweenStreams::Balanced { .. } | BetweenStreams::Shares { .. } => (2 + self.streams) * self.streams,
            BetweenStreams::Kept { .. } => 2 * self.streams,
            BetweenStreams::Gated { .. } => self.streams,
        }
    }

    /// True if what the streams end in is normed already.
    pub fn ends_normed(&self) -> bool {
        matches!(self.between, BetweenStreams::Gated { .. })
    }

    /// The matrices of the connections of a layer, where they are more than a few numbers.
    pub(crate) fn weights(&self, hidden: u64) -> Vec<Part> {
        let all = u64::from(self.streams) * hidden;
        match self.between {
            BetweenStreams::Gated { rank } => {
                let connection = [
                    Part::matrix(2 * u64::from(rank), all),
                    Part::matrix(self.streams.into(), all),
                ];
                [connection, connection].concat()
            }
            BetweenStreams::Balanced { .. } | BetweenStreams::Shares { .. } | BetweenStreams::Kept { .. } => Vec::new(),
        }
    }

    pub(crate) fn check(&self, hidden: u32) -> Result<(), Error> {
        check_range("hc_mult", self.streams, 2..=16)?;
        check_width("hc_mult", u64::from(self.streams) * u64::from(hidden))?;
        check_positive("hc_eps", self.eps)?;
        match self.between {
            BetweenStreams::Gated { rank } => {
                check_nonzero("hc_lowrank", rank)?;
                check_width("hc_lowrank", rank.into())
            }
            BetweenStreams::Kept { magnitude } => check_positive("hc_magnitude", magnitude),
            BetweenStreams::Shares { iterations } => check_range("hc_sinkhorn_iters", iterations, 1..=64).map(|_| ()),
            BetweenStreams::Balanced { iterations, bounds } => {
                check_range("hc_sinkhorn_iters", iterations, 0..=64)?;
                match bounds.0 < bounds.1 && bounds.1 < 80.0 {
                    true => Ok(()),
                    false => unusable("mhc_h_res_clamp_max", "it bounds nothing"),
                }
            }
        }
    }
}
