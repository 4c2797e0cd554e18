//! How images are brought into the form that a model's tower takes, as its processor's file says: to which size, by
//! which filter, with which numbers and in which order. Nothing here touches a pixel: [`ImageProcessor::plan`] tells
//! from an image's size what it will cost, room `media` does what a plan says.

use protocol::ImageDetail;
use serde::Serialize;

use crate::error::{Error, Result};

mod any_resolution;
mod corner_tiles;
mod cropped_tiles;
mod naflex;
mod overlapping_tiles;
mod padded_tiles;
pub(crate) mod parts;
mod patch_budget;
mod processor_config;
mod quarters;
mod sizing;
mod slices;
mod smart_resize;
mod stretched_tiles;
mod tiles;
mod view;

pub use any_resolution::{AnyResolution, Cropped};
pub use corner_tiles::{covered_patches, CornerTiles};
pub use cropped_tiles::CroppedTiles;
pub use naflex::NaFlex;
pub use overlapping_tiles::OverlappingTiles;
pub use padded_tiles::PaddedTiles;
pub use patch_budget::PatchBudget;
pub(crate) use processor_config::{ProcessorConfig, CLIP, IMAGENET};
pub use quarters::{Part, Quarters};
pub use sizing::{Padded, Sizing};
pub use slices::Slices;
pub use smart_resize::{Enlarging, Features, SmartResize};
pub use stretched_tiles::StretchedTiles;
pub use tiles::{ImageSplitting, LfmTiles, RatioTiles, TileChoice, TiledCanvas};

/// More pixels than any plan has: 16,384 tokens of 32 by 32, twice.
const MAX_PIXELS: u64 = 1 << 25;

/// The preprocessing of a model's images.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageProcessor {
    /// To which size.
    pub sizing: Sizing,
    /// How images are resized.
    pub filter: Filter,
    /// The scaling of pixel values.
    pub scaling: Scaling,
    /// The order of the numbers.
    pub layout: Layout,
}

/// The filter that images are resized by, named and computed as Pillow does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// The mean of an area.
    Box,
    /// A triangle.
    Bilinear,
    /// Hamming's window over a sinc.
    Hamming,
    /// Keys' cubic with a = −0.5.
    Bicubic,
    /// Lanczos' window of three lobes.
    Lanczos,
}

/// The scaling of the 256 values of a color channel: `(value · factor − mean) / std`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scaling {
    /// Factor of a value, usually 1/255.
    pub factor: Option<f64>,
    /// Mean and standard deviation of red, green and blue.
    pub normalization: Option<([f32; 3], [f32; 3])>,
}

/// The order in which a view's numbers stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// The image: `[3, height, width]`.
    Planes,
    /// A row for each patch: `[patches, numbers of a patch]`.
    Patches {
        /// Width and height of a patch in pixels.
        side: u32,
        /// Patches on a side of the square blocks in which they follow each other, each of which becomes one token; 1:
        /// row by row.
        block: u32,
        /// How often a patch's image stands in it, for towers that take frames.
        frames: u32,
        /// Within a patch: color by color (`[3, frames, side, side]`), or pixel by pixel (`[side, side, 3]`).
        colour_by_colour: bool,
    },
}

/// An image as a model will see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePlan {
    /// Width and height at which the model is shown the image: of all tiles together if it is cut into some.
    pub resized: (u32, u32),
    /// Widths and heights that the image is brought to, one after the other. The last is the one that is cut into
    /// tiles, or the view itself.
    pub steps: Vec<(u32, u32)>,
    /// The inputs of the vision encoder, in the order of their features in the prompt.
    pub views: Vec<View>,
    /// Rows and columns if the views are tiles of the image, row by row.
    pub tiles: Option<(u32, u32)>,
    /// True if the last view is the full image, after its tiles.
    pub whole: bool,
    /// The grid of the features of all tiles, if they are shown as one, after those of the full image (LLaVA-NeXT).
    pub joined: Option<JoinedTiles>,
}

/// The features of all tiles as one grid, with a mark after each row of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinedTiles {
    /// Rows and columns in its middle that the image covers.
    pub covered: (u32, u32),
    /// Rows and columns that those are brought to.
    pub shown: (u32, u32),
}

/// One image that goes through the tower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
    /// Rows and columns of the tower's grid.
    pub patches: (u32, u32),
    /// Rows and columns of the grid that the tower's features make.
    pub tokens: (u32, u32),
    /// Features of it in the prompt: one for each place of the grid, and in HunyuanOCR one more for each row and two
    /// around. Those of tiles that are shown as one grid are counted there. None if the model looks at features beside
    /// its prompt, as Llama 3.2 does.
    pub features: u32,
}

impl ImagePlan {
    /// Rows and columns of tiles like this view, brought to this size together, and the whole in one more view: a
    /// mark ends each of its rows, and one parts it from the tiles, whose features are this grid.
    fn marked_tiles(view: View, tiles: (u32, u32), size: (u32, u32), grid: (u32, u32)) -> Self {
        let mut views = vec![view; (tiles.0 * tiles.1 + 1) as usize];
        if let Some(whole) = views.last_mut() {
            whole.features = view.tokens.0 * (view.tokens.1 + 1) + 1;
        }
        Self {
            resized: size,
            steps: vec![size],
            views,
            tiles: Some(tiles),
            whole: true,
            joined: Some(JoinedTiles {
                covered: grid,
                shown: grid,
            }),
        }
    }

    /// Features in the prompt, of all views; marks around them are not counted.
    pub fn tokens(&self) -> usize {
        match (&self.joined, self.views.last()) {
            (
                Some(JoinedTiles {
                    shown: (rows, columns), ..
                }),
                Some(whole),
            ) => (rows * (columns + 1) + whole.features) as usize,
            _ => self.views.iter().map(|view| view.features as usize).sum(),
        }
    }

    /// Patches of the largest view: views go through a tower one at a time, so that it decides what encoding takes.
    pub fn most_patches(&self) -> u64 {
        let patches = |view: &View| u64::from(view.patches.0) * u64::from(view.patches.1);
        self.views.iter().map(patches).max().unwrap_or(0)
    }
}

impl ImageProcessor {
    /// Plans an image of this size. An image that is too narrow for the model is an error.
    pub fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        if width == 0 || height == 0 {
            return Err(Error::TooNarrow { width, height });
        }
        let plan = self.sizing.plan(width, height, detail)?;
        let pixels = plan
            .views
            .iter()
            .map(|view| u64::from(view.width) * u64::from(view.height))
            .sum::<u64>();
        let steps = plan
            .steps
            .iter()
            .map(|(width, height)| u64::from(*width) * u64::from(*height));
        match pixels.max(steps.max().unwrap_or(0)) > MAX_PIXELS {
            true => Err(Error::InvalidProcessor {
                field: "size",
                reason: format!("it makes {} megapixels of an image", pixels / 1_000_000),
            }),
            false => Ok(plan),
        }
    }

    /// The details below this one, the closest first, with the patches of the image's largest view at each: for the
    /// words of a refusal.
    pub fn less_detail(&self, (width, height): (u32, u32), than: ImageDetail) -> Vec<(ImageDetail, u64)> {
        let less = [ImageDetail::Normal, ImageDetail::Quick].into_iter();
        let less = less.filter(|detail| detail.most_tokens() < than.most_tokens());
        less.filter_map(|detail| Some((detail, self.plan(width, height, detail).ok()?.most_patches())))
            .collect()
    }

    /// All its settings as a text, which differs if and only if they do: for keys of caches.
    pub fn key(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
