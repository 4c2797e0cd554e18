//! SigLIP 2 at the shape of an image: as many patches as it has itself, within limits.

use protocol::ImageDetail;
use serde::Serialize;

use super::view::{merged, single};
use super::ImagePlan;

/// How an image is brought to whole patches (`get_image_size_for_max_num_patches` of transformers'
/// `image_processing_pil_siglip2.py`, asked as Phi 4 does).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NaFlex {
    /// The side of a patch.
    pub patch: u32,
    /// The fewest patches.
    pub least: u32,
    /// The most patches.
    pub most: u32,
}

impl NaFlex {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> ImagePlan {
        let most = self.most.min(detail.most_tokens());
        let own = u64::from(width / self.patch) * u64::from(height / self.patch);
        let allowed = own.clamp(self.least.min(most).into(), most.into());
        let allowed = allowed.max(1) as f64;
        let (patch, eps) = (f64::from(self.patch), 1e-5);
        let sized = |scale: f64, side: u32| ((f64::from(side) * scale / patch).ceil() * patch).max(patch);
        let (mut low, mut high) = (eps / 10.0, 100.0);
        while high - low >= eps {
            let scale = (low + high) / 2.0;
            match (sized(scale, height) / patch) * (sized(scale, width) / patch) <= allowed {
                true => low = scale,
                false => high = scale,
            }
        }
        let (across, down) = (sized(low, width) as u32, sized(low, height) as u32);
        single(merged(across, down, self.patch, 1))
    }
}
