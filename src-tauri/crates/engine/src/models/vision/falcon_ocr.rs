//! The input projection of Falcon-OCR, which has no vision encoder: patches are tokens among others after it.
//! Reference: mlx-vlm's `models/falcon_ocr`; transformers has no such model.

use checkpoint::vision::FalconPatchesConfig;
use mlx::parameters::Parameters;
use mlx::Dtype;

use super::patches::COLOURS;
use super::{pause, ImageEmbeddings, LayerHook, ViewInput};
use crate::error::Result;
use crate::layers::Linear;
use crate::weights::Weights;

/// The projection of patches, pixel by pixel.
#[derive(Parameters)]
pub struct FalconPatches {
    /// Numbers of a patch.
    numbers: i32,
    dtype: Dtype,
    img_projector: Linear,
}

impl FalconPatches {
    pub(super) fn load(config: &FalconPatchesConfig, outputs: u32, weights: &mut Weights<'_>) -> Result<Self> {
        const PATH: &str = "img_projector";
        let numbers = COLOURS * (config.patch_size * config.patch_size) as i32;
        Ok(Self {
            numbers,
            dtype: weights.dtype_of_matrix(PATH).unwrap_or(Dtype::Float32),
            img_projector: Linear::load(weights, PATH, numbers, outputs as i32)?,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> Result<ImageEmbeddings> {
        let rows = input.rows(self.numbers)?.astype(self.dtype)?;
        let projected = self.img_projector.forward(&rows)?;
        pause(&projected, hook)?;
        Ok(ImageEmbeddings::of(projected))
    }
}
