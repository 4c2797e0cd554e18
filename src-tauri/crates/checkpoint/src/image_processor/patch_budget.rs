//! Nemotron Nano Omni: whole patches of about an image's own size, as many as a budget has and not too few.

use protocol::ImageDetail;
use serde::Serialize;

use super::view::{merged, single};
use super::ImagePlan;
use crate::error::{Error, Result};

/// How an image is brought to whole tokens (`_compute_target_patches` of mlx-vlm's
/// `image_processing_nemotron_h_nano_omni.py`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatchBudget {
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
    /// The fewest patches of a small image.
    pub least: u32,
    /// The most patches.
    pub most: u32,
}

impl PatchBudget {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        let of_token = self.merge * self.merge;
        let most = self.most.min(detail.most_tokens().saturating_mul(of_token));
        let least = self.least.min(most);
        let own = |pixels: u32| (f64::from(pixels) / f64::from(self.patch) + 0.5).round_ties_even();
        let (mut across, mut down) = (own(width), own(height));
        let factor = (f64::from(most) / (across * down)).sqrt().min(1.0);
        (across, down) = ((factor * across).floor(), (factor * down).floor());
        let narrow = || Error::TooNarrow { width, height };
        if across < 1.0 || down < 1.0 {
            return Err(narrow());
        }
        if most > least && across * down < f64::from(least) {
            let factor = (f64::from(least) / (across * down)).sqrt();
            (across, down) = ((factor * across).ceil(), (factor * down).ceil());
        }
        let whole = |side: f64, other: f64| {
            let (side, other, merge) = (side as u32, other as u32, self.merge);
            match u64::from(side.next_multiple_of(merge)) * u64::from(other) <= u64::from(most) {
                true => side.next_multiple_of(merge),
                false => (side / merge * merge).max(merge),
            }
        };
        let rows = whole(down, across);
        let columns = whole(across, rows.into());
        let view = merged(columns * self.patch, rows * self.patch, self.patch, self.merge);
        match view.features <= detail.most_tokens() {
            true => Ok(single(view)),
            false => Err(narrow()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use protocol::ImageDetail::{Full, Quick};

    use super::*;

    #[test]
    fn patches_are_those_of_the_original_processor() {
        let rule = PatchBudget {
            patch: 16,
            merge: 2,
            least: 1024,
            most: 13_312,
        };
        let patches = |size: (u32, u32), detail| rule.plan(size.0, size.1, detail).unwrap().views[0].patches;
        for (size, wanted) in SIZES {
            assert_eq!(patches(size, Full), wanted, "{size:?}");
        }
        assert_eq!(patches((4000, 3000), Quick), (38, 52));
        assert!(rule.plan(1, 40_000, Quick).is_err());
    }

    /// Widths and heights, and rows and columns of patches.
    const SIZES: [((u32, u32), (u32, u32)); 6] = [
        ((10, 10), (32, 32)),
        ((640, 480), (30, 40)),
        ((641, 479), (30, 42)),
        ((1000, 300), (20, 64)),
        ((37, 4001), (294, 4)),
        ((4000, 3000), (100, 132)),
    ];
}
