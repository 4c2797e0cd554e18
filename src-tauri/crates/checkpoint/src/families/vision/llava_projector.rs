//! The projectors of LLaVA and of models like it.

use crate::config::activation::EncoderActivation;
use crate::memory::VisionCost;

/// How states become features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LlavaProjector {
    /// Two projections, patch by patch, as wide inside as the language part.
    Network(EncoderActivation),
    /// One projection, patch by patch (PaliGemma).
    Projection,
    /// The patches of each block side by side, in grids whose rows end with a mark, through two projections together
    /// with the marks (Phi 3 Vision).
    Marked {
        /// Patches along a side of a block.
        merge: u32,
    },
    /// The patches of each block number by number, zeros beside the last ones, through two projections; a mark lies
    /// between the grid of the whole image and that of the tiles (DeepSeek-VL2).
    Unfolded {
        /// Patches along a side of a block.
        merge: u32,
        /// Width inside.
        width: u32,
    },
    /// The patches of each block side by side, through a gated network (Aya Vision).
    Gated {
        /// Patches along a side of a block.
        merge: u32,
        /// Width of what comes up, of which one half gates the other.
        width: u32,
        /// The epsilon of the norm before it, if there is one.
        norm: Option<f32>,
    },
}

impl LlavaProjector {
    /// The cost of a tower with it after the states of `taps` layers.
    pub(super) fn added_to(self, cost: VisionCost, taps: usize) -> VisionCost {
        let hidden = cost.hidden;
        let inside = |merge: u32, width: u32| u64::from(width) * hidden * u64::from(merge).pow(2);
        let (joined, more) = match self {
            Self::Network(_) => {
                let inputs = taps as u64 * cost.hidden;
                let others = cost.others + inputs * inputs;
                return VisionCost { others, ..cost };
            }
            Self::Projection => return cost,
            Self::Marked { merge } => (cost.joined(merge), 0),
            Self::Unfolded { merge, width } | Self::Gated { merge, width, .. } => {
                (cost.joined(merge), inside(merge, width))
            }
        };
        VisionCost {
            others: joined.others + more,
            ..joined
        }
    }
}
