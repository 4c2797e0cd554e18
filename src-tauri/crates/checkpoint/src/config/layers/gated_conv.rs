//! The gated short convolution, `conv` (LFM 2).

use crate::config::limits::{check_kernel, check_width};
use crate::error::Error;
use crate::memory::{CacheFormat, MixerCost, Part, Prefill};

/// The gated short convolution of LFM 2, as wide as the residual stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatedConvConfig {
    /// Tokens that it sees.
    pub kernel: u32,
    /// True if the convolution and its projections must have a bias.
    pub bias: bool,
    /// True if a token is in the middle of those that it sees, as in models that read a text at once; else the last.
    pub centered: bool,
}

impl GatedConvConfig {
    /// Refuses shapes that no model has, next to a residual stream of this width.
    pub(crate) fn check(&self, hidden: u32) -> Result<(), Error> {
        check_width("hidden_size", 3 * u64::from(hidden))?;
        check_kernel("conv_L_cache", self.kernel)
    }
}

impl MixerCost for GatedConvConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        vec![
            Part::matrix(3 * hidden, hidden),
            Part::plain(hidden, self.kernel.into()),
            Part::matrix(hidden, hidden),
        ]
    }

    fn cache(&self, format: &CacheFormat, _positions: u64) -> u64 {
        u64::from(self.kernel - 1) * format.hidden * format.element
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _keys_alone: bool) {
        let hidden = pass.hidden;
        pass.product(hidden, 3 * hidden);
        pass.make(hidden);
        pass.short_conv(hidden, self.kernel.into(), pass.element);
        pass.product(hidden, hidden);
    }
}
