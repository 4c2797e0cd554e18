//! The encoder of SAM with the convolutions that make its grid a sixteenth as large: windows of patches that see each
//! other and some layers in which all do, scores with learned summands by rows and columns between two patches.
//! References: `deepencoder.py` beside the weights of DeepSeek-OCR, and mlx-vlm's `deepseekocr/sam.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::memory::MAX_VISION_SCORES;
use checkpoint::vision::SamConfig;
use mlx::ops::{join, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::block::Mlp;
use super::llava::widened;
use super::mobilenet_blocks::{Convolution, FeatureMap, KernelLayout, LoadContext};
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::stack::load_mlp;
use super::{pause, LayerHook};
use crate::error;
use crate::layers::{LayerNorm, Linear};
use crate::weights::Weights;

/// The path of the encoder.
const PATH: &str = "sam_model";

/// The epsilon of its norms.
const EPS: f32 = 1e-6;

/// The encoder.
#[derive(Parameters)]
pub struct Sam {
    dtype: Dtype,
    patch_embedding: Linear,
    /// `[side, side, width]`.
    positions: Tensor,
    blocks: Vec<SamBlock>,
    narrow: (Linear, LayerNorm),
    mixed: (Convolution, LayerNorm),
    smaller: (Convolution, Convolution),
}

#[derive(Parameters)]
struct SamBlock {
    /// Patches along a side of a window; none if all patches see each other.
    #[parameters(skip)]
    window: Option<i32>,
    norms: [LayerNorm; 2],
    attention: SamAttention,
    mlp: Mlp,
}

#[derive(Parameters)]
struct SamAttention {
    #[parameters(skip)]
    heads: i32,
    qkv: Linear,
    output: Linear,
    /// Vectors for a distance in rows and in columns, `[2 · side - 1, width of a head]`.
    distances: [Tensor; 2],
}

impl Sam {
    pub(super) fn load(config: &SamConfig, weights: &mut Weights<'_>) -> error::Result<Self> {
        let (width, side, patch) = (config.width as i32, config.side as i32, config.patch_size as i32);
        let dtype = weights.dtype(&format!("{PATH}.blocks.0.norm1.weight"));
        let (embedding, order) = (format!("{PATH}.patch_embed.proj"), PatchOrder::PixelByPixel);
        let patch_embedding = load_patch_linear(weights, &embedding, COLOURS * patch * patch, width, order)?;
        let positions = weights.take(&format!("{PATH}.pos_embed"), &[1, side, side, width])?;
        let positions = positions.reshape(&[side, side, width])?;
        let blocks = (0..config.layers).map(|layer| SamBlock::load(layer, config, dtype, weights));
        let blocks = blocks.collect::<error::Result<_>>()?;
        let layout = match weights.shape(&format!("{PATH}.neck.2.weight")) {
            Some([_, 3, 3, channels]) if *channels != 3 => KernelLayout::Ohwi,
            _ => KernelLayout::Oihw,
        };
        let channels = config.channels as i32;
        let norm = |index: usize, weights: &mut Weights<'_>| {
            LayerNorm::load(weights, &format!("{PATH}.neck.{index}"), channels, EPS)
        };
        let norms = (norm(1, weights)?, norm(3, weights)?);
        let mut loading = LoadContext { weights, layout };
        let narrow = loading.pointwise(&format!("{PATH}.neck.0"))?;
        let mixed = Convolution::load_centered(&format!("{PATH}.neck.2"), 1, &mut loading)?;
        let mut smaller = |name: &str| Convolution::load_centered(&format!("{PATH}.{name}"), 2, &mut loading);
        let smaller = (smaller("net_2")?, smaller("net_3")?);
        weights.materialize([&positions])?;
        Ok(Self {
            dtype,
            patch_embedding,
            positions,
            blocks,
            narrow: (narrow, norms.0),
            mixed: (mixed, norms.1),
            smaller,
        })
    }

    /// Rows of patches of a square, `[side · side, numbers]`, to a grid of a quarter as many rows and columns.
    pub(super) fn encode(&self, rows: &Tensor, side: u32, hook: &mut LayerHook<'_>) -> error::Result<FeatureMap> {
        let positions = Resampling::CubicAntialiased.apply(&self.positions, (side, side))?;
        let rows = rows.astype(self.dtype)?;
        let mut x = self
            .patch_embedding
            .forward(&rows)?
            .add(&positions.astype(self.dtype)?)?;
        let side = side as i32;
        for block in &self.blocks {
            x = block.forward(&x, side)?;
            pause(&x, hook)?;
        }
        let narrow = self.narrow.1.forward(&self.narrow.0.forward(&x)?)?;
        let grid = FeatureMap {
            states: narrow,
            rows: side,
            columns: side,
        };
        let mixed = self.mixed.0.forward(&grid)?;
        let mixed = mixed.with(self.mixed.1.forward(&mixed.states)?);
        Ok(self.smaller.1.forward(&self.smaller.0.forward(&mixed)?)?)
    }
}

impl SamBlock {
    fn load(layer: u32, config: &SamConfig, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Self> {
        let path = format!("{PATH}.blocks.{layer}");
        let (width, heads) = (config.width as i32, config.heads as i32);
        let window = (!config.whole.contains(&layer)).then_some(config.window as i32);
        let distances = 2 * window.unwrap_or(config.side as i32) - 1;
        let norm =
            |name: &str, weights: &mut Weights<'_>| LayerNorm::load(weights, &format!("{path}.{name}"), width, EPS);
        let distance = |name: &str, weights: &mut Weights<'_>| {
            weights.take(&format!("{path}.attn.{name}"), &[distances, width / heads])
        };
        let attention = SamAttention {
            heads,
            qkv: Linear::load(weights, &format!("{path}.attn.qkv"), width, 3 * width)?,
            output: Linear::load(weights, &format!("{path}.attn.proj"), width, width)?,
            distances: [distance("rel_pos_h", weights)?, distance("rel_pos_w", weights)?],
        };
        let (sizes, gelu) = ((width, config.inside as i32, width), EncoderActivation::Gelu);
        let block = Self {
            window,
            norms: [norm("norm1", weights)?, norm("norm2", weights)?],
            attention,
            mlp: load_mlp(
                &format!("{path}.mlp"),
                None,
                ["lin1", "lin2"],
                sizes,
                (gelu, dtype),
                weights,
            )?,
        };
        weights.materialize(block.tensors())?;
        Ok(block)
    }

    /// States of a square grid, `[side · side, width]`, to the same.
    fn forward(&self, x: &Tensor, side: i32) -> Result<Tensor> {
        let normed = self.norms[0].forward(x)?;
        let attended = match self.window {
            None => self.attention.forward(&normed, 1, side)?,
            Some(window) => {
                let (width, count) = (x.dim(1), (side + window - 1) / window);
                let padded = count * window;
                let grid = widened(&normed, (side as u32, side as u32), (padded as u32, padded as u32))?;
                let apart = [count, window, count, window, width];
                let windows = grid.reshape(&apart)?.transpose(&[0, 2, 1, 3, 4])?;
                let windows = windows.reshape(&[padded * padded, width])?;
                let found = self.attention.forward(&windows, count * count, window)?;
                let found = found.reshape(&[count, count, window, window, width])?;
                let grid = found.transpose(&[0, 2, 1, 3, 4])?.reshape(&[padded, padded, width])?;
                let grid = grid.slice(0, 0, side)?.slice(1, 0, side)?;
                grid.reshape(&[side * side, width])?
            }
        };
        let x = x.add(&attended)?;
        x.add(&self.mlp.forward(&self.norms[1].forward(&x)?)?)
    }
}

impl SamAttention {
    /// States of square windows that follow each other, `[count · side · side, width]`, to the same.
    fn forward(&self, x: &Tensor, count: i32, side: i32) -> Result<Tensor> {
        let (width, length, heads) = (x.dim(1), side * side, self.heads);
        let head = width / heads;
        let all = self.qkv.forward(x)?.reshape(&[count, length, 3, heads, head])?;
        let all = all.transpose(&[2, 0, 3, 1, 4])?;
        let part = |index: i32| all.slice(0, index, index + 1)?.reshape(&[count, heads, length, head]);
        let (queries, keys, values) = (part(0)?, part(1)?, part(2)?);
        let [down, across] = [self.table(0, side)?, self.table(1, side)?];
        let across = across.reshape(&[1, 1, side, head, side])?;
        let of_a_row = count as u64 * heads as u64 * side as u64 * length as u64 * 4;
        let together = (MAX_VISION_SCORES / of_a_row.max(1)).clamp(1, side as u64) as i32;
        let mut found = Vec::new();
        for first in (0..side).step_by(together as usize) {
            let last = side.min(first + together);
            let rows = last - first;
            let some = queries.slice(2, first * side, last * side)?;
            let by_row = some.reshape(&[count, heads, rows, side, head])?;
            let table = down.slice(0, first, last)?.reshape(&[1, 1, rows, head, side])?;
            let above = by_row.matmul(&table)?;
            let beside = by_row.swapaxes(2, 3)?.matmul(&across)?.swapaxes(2, 3)?;
            let above = above.reshape(&[count, heads, rows * side, side, 1])?;
            let beside = beside.reshape(&[count, heads, rows * side, 1, side])?;
            let summands = above.add(&beside)?.reshape(&[count, heads, rows * side, length])?;
            let scale = (head as f32).powf(-0.5);
            found.push(some.fast_attention(&keys, &values, scale, &Mask::Array(summands), None)?);
        }
        let found = join(&found, 2)?.transpose(&[0, 2, 1, 3])?;
        self.output.forward(&found.reshape(&[count * length, width])?)
    }

    /// The share of each place along an axis for a query at each place, `[side, width of a head, side]`. Distances in a grid
    /// of another size than they were learned on lie between those.
    fn table(&self, axis: usize, side: i32) -> Result<Tensor> {
        let learned = &self.distances[axis];
        let (from, width) = (learned.dim(0), learned.dim(1));
        let shares = Resampling::Linear.matrix(from, 2 * side - 1);
        let mut places = Vec::with_capacity((side * side * from) as usize);
        for query in 0..side {
            for key in 0..side {
                let start = ((query - key + side - 1) * from) as usize;
                places.extend(&shares[start..start + from as usize]);
            }
        }
        let places = Tensor::from_f32(&places, &[side * side, from]);
        let table = places
            .matmul(&learned.astype(Dtype::Float32)?)?
            .astype(learned.dtype())?;
        table.reshape(&[side, side, width])?.swapaxes(1, 2)
    }
}
