//! Falcon-OCR's patches, which have no tower: a projection makes tokens of them, and the language part does the rest.

use super::{check_patch, VisionConfig};
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::memory::VisionCost;

/// The projection of patches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FalconPatchesConfig {
    /// Side of a patch in pixels.
    pub patch_size: u32,
}

/// Falcon-OCR, whose file describes all in one.
pub(crate) fn parse(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    for (field, only) in [("temporal_patch_size", 1), ("channel_size", 3)] {
        if let Some(other) = top.number::<u32>(field)?.filter(|number| *number != only) {
            return unusable(field, format!("{other} is not {only}"));
        }
    }
    let patch_size = top.number("spatial_patch_size")?.unwrap_or(16);
    check_patch(patch_size)?;
    Ok(VisionConfig::Falcon(FalconPatchesConfig { patch_size }))
}

impl FalconPatchesConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let patch = 3 * u64::from(self.patch_size).pow(2);
        VisionCost {
            hidden: patch,
            others: patch.pow(2),
            ..VisionCost::EMPTY
        }
    }
}
