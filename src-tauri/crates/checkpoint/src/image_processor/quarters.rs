//! Idefics 2: the four quarters of an image, and the whole, each within limits of its sides.

use protocol::ImageDetail;
use serde::Serialize;

use super::{ImagePlan, View};
use crate::error::{Error, Result};

/// How an image is cut and brought to its sizes (`get_resize_output_image_size` and `split_images` of transformers'
/// `image_processing_pil_idefics2.py`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quarters {
    /// The shortest side of a view.
    pub shortest: u32,
    /// The longest one.
    pub longest: u32,
    /// True if there are quarters; otherwise the full image alone.
    pub splitting: bool,
    /// The side of a patch.
    pub patch: u32,
    /// Features of a view, whatever its size.
    pub features: u32,
}

/// A part of an image: its corner, and its width and height.
pub type Part = ((u32, u32), (u32, u32));

impl Quarters {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        let splits = self.splitting && 5 * self.features <= detail.most_tokens();
        if splits && width.min(height) < 2 {
            return Err(Error::TooNarrow { width, height });
        }
        let mut views = Vec::new();
        if splits {
            views.extend((0..4).map(|index| self.view(quarter(index, (width, height)).1)));
        }
        let whole = self.view((width, height));
        views.push(whole);
        Ok(ImagePlan {
            resized: (whole.width, whole.height),
            steps: Vec::new(),
            views,
            tiles: splits.then_some((2, 2)),
            whole: true,
            joined: None,
        })
    }

    fn view(&self, (width, height): (u32, u32)) -> View {
        let ratio = f64::from(width) / f64::from(height);
        let longest = f64::from(self.longest);
        let (across, down) = if width >= height && width > self.longest {
            (self.longest, (longest / ratio) as u32)
        } else if height > width && height > self.longest {
            ((longest * ratio) as u32, self.longest)
        } else {
            (width, height)
        };
        let (width, height) = (across.max(self.shortest), down.max(self.shortest));
        View {
            width,
            height,
            patches: (height / self.patch, width / self.patch),
            tokens: (1, self.features),
            features: self.features,
        }
    }
}

/// A quarter of an image of this size, row by row; the later ones have the pixel that is left.
pub(super) fn quarter(index: u32, (width, height): (u32, u32)) -> Part {
    let (right, below) = (index % 2 == 1, index / 2 == 1);
    let half = |side: u32, later: bool| match later {
        true => (side / 2, side - side / 2),
        false => (0, side / 2),
    };
    let ((left, across), (top, down)) = (half(width, right), half(height, below));
    ((left, top), (across, down))
}
