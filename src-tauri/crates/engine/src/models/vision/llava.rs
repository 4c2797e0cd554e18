//! CLIP and SigLIP with the projectors of LLaVA and models like it. References: transformers' `modeling_clip.py`,
//! `modeling_siglip.py`, `modeling_llava.py`, `modeling_llava_next.py`, `modeling_llava_onevision.py`,
//! `modeling_aya_vision.py`, `modeling_janus.py` and `modeling_paligemma.py`; `image_embedding_phi3_v.py` beside the weights of Phi 3 Vision.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::image_processor::JoinedTiles;
use checkpoint::vision::{LlavaConfig, LlavaProjector};
use checkpoint::ImagePlan;
use media::ViewPixels;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};
use mlx::{Dtype, Result};

use super::attention::PatchMask;
use super::block::Mlp;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::stack::{first_with, join_blocks, load_mlp, network_names, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{Embedding, LayerNorm, Linear, Pointwise};
use crate::weights::Weights;

/// The paths at which conversions and originals keep the vision encoder.
const PLACES: [&str; 5] = [
    "vision_tower.vision_tower.vision_model",
    "vision_embed_tokens.img_processor.vision_model",
    "vision_tower.vision_model",
    "vision_tower",
    "vision_model",
];

const PROJECTOR: &str = "multi_modal_projector";

/// The path of the encoder in Janus, whose parts have timm's names.
const TIMM: &str = "vision_model.vision_tower";

/// Layers by timm's names.
const TIMM_BLOCK: BlockNames = BlockNames {
    norms: ["norm1", "norm2"],
    qkv: &["attn.qkv"],
    output: "attn.proj",
    ..BlockNames::CLIP
};

/// The path of the projector and the marks of Phi 3 Vision.
const MARKED: &str = "vision_embed_tokens";

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct LlavaTower {
    #[parameters(skip)]
    config: LlavaConfig,
    dtype: Dtype,
    patch_embedding: Linear,
    /// The class token with its position, `[1, hidden]`, and the norm after the positions (CLIP).
    class: Option<(Tensor, LayerNorm)>,
    /// `[patches, hidden]`.
    positions: Tensor,
    stack: Stack,
    post_layernorm: Option<LayerNorm>,
    projector: Projector,
    /// The factor of features and marks.
    multiplier: Option<Tensor>,
    /// The mark after each row of a grid of tiles, `[1, 1, width of the language part]`; in Phi 3 Vision as wide as the
    /// states of a block.
    row_end: Option<Tensor>,
    /// The mark between the grid of all tiles and that of the whole image, as wide as the other one, `[1, width]` (Phi 3
    /// Vision, DeepSeek-VL2).
    between: Option<Tensor>,
}

#[derive(Parameters)]
enum Projector {
    Network(Box<Mlp>),
    Projection(Linear),
    Marked(Box<Mlp>),
    Unfolded(Box<Mlp>),
    Gated(Box<GatedNetwork>),
}

/// `down(x · silu(gate))`, where `x` and `gate` are the halves of what comes up.
#[derive(Parameters)]
pub(super) struct GatedNetwork {
    norm: Option<LayerNorm>,
    up: Linear,
    silu: Pointwise,
    down: Linear,
}

impl LlavaTower {
    pub(super) fn load(config: &LlavaConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let shape = &config.shape;
        let (hidden, side, outputs) = (shape.hidden_size as i32, shape.patch_size as i32, outputs as i32);
        let (patches, first) = ((config.side * config.side) as i32, i32::from(config.class_token));
        let timm = weights.has(&format!("{TIMM}.patch_embed.proj.weight"));
        let path = match timm {
            true => TIMM.to_owned(),
            false => first_with(weights, &PLACES, "embeddings.patch_embedding.weight"),
        };
        let embeddings = format!("{path}.embeddings");
        let (patch_embedding, layers, after, names) = match timm {
            true => (
                format!("{path}.patch_embed.proj"),
                format!("{path}.blocks"),
                "norm",
                &TIMM_BLOCK,
            ),
            false => (
                format!("{embeddings}.patch_embedding"),
                format!("{path}.encoder.layers"),
                "post_layernorm",
                &BlockNames::CLIP,
            ),
        };
        let dtype = weights.dtype(&format!("{layers}.0.{}.weight", names.norms[0]));
        let positions = match timm {
            true => weights
                .take(&format!("{path}.pos_embed"), &[1, first + patches, hidden])?
                .reshape(&[first + patches, hidden])?,
            false => {
                let table = format!("{embeddings}.position_embedding");
                Embedding::load(weights, &table, first + patches, hidden)?.into_numbers()?
            }
        };
        let class = match config.class_token {
            true => {
                let class = weights.take(&format!("{embeddings}.class_embedding"), &[hidden])?;
                let class = class.reshape(&[1, hidden])?.add(&positions.slice(0, 0, 1)?)?;
                // The name is misspelled in CLIP itself.
                let norm = LayerNorm::load(weights, &format!("{path}.pre_layrnorm"), hidden, shape.eps)?;
                weights.materialize([&class])?;
                Some((class, norm))
            }
            false => None,
        };
        let positions = positions.slice(0, first, first + patches)?.contiguous()?;
        let after = || LayerNorm::load(weights, &format!("{path}.{after}"), hidden, shape.eps);
        let post_layernorm = config.post_norm.then(after).transpose()?;
        let multiplier = config
            .multiplier
            .map(|factor| Tensor::scalar(factor, dtype))
            .transpose()?;
        let (row_end, between) = match config.projector {
            LlavaProjector::Marked { merge } => {
                let block = hidden * (merge * merge) as i32;
                let end = weights.take(&format!("{MARKED}.sub_GN"), &[1, 1, 1, block])?;
                let between = weights.take(&format!("{MARKED}.glb_GN"), &[1, 1, block])?;
                (Some(end.reshape(&[1, 1, block])?), Some(between.reshape(&[1, block])?))
            }
            LlavaProjector::Unfolded { .. } => {
                let end = weights.take("image_newline", &[outputs])?.reshape(&[1, 1, outputs])?;
                // The name is misspelled in the original files.
                let names = ["view_separator", "view_seperator"];
                let name = names.into_iter().find(|name| weights.has(name)).unwrap_or(names[0]);
                let between = weights.take(name, &[outputs])?.reshape(&[1, outputs])?;
                (Some(end), Some(between))
            }
            _ if config.row_ends => {
                let end = weights.take("image_newline", &[outputs])?.reshape(&[1, 1, outputs])?;
                (Some(end), None)
            }
            _ => (None, None),
        };
        let row_end = match (row_end, &multiplier) {
            (Some(end), Some(factor)) => Some(end.mul(factor)?),
            (end, _) => end,
        };
        weights.materialize([&positions].into_iter().chain(&row_end).chain(&between))?;
        let order = PatchOrder::PixelByPixel;
        Ok(Self {
            dtype,
            patch_embedding: load_patch_linear(weights, &patch_embedding, COLOURS * side * side, hidden, order)?,
            class,
            positions,
            stack: Stack::load(&layers, names, shape, dtype, weights)?,
            post_layernorm,
            projector: Projector::load(config, outputs, dtype, weights)?,
            multiplier,
            row_end,
            between,
            config: config.clone(),
        })
    }

    /// True if rows of features end with a mark, so that all views of an image are needed at once.
    pub(super) fn ends_rows(&self) -> bool {
        self.row_end.is_some()
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (config, grid) = (&self.config, input.view.patches);
        if grid != (config.side, config.side) {
            return Err(Error::BadRequest(format!(
                "this model's tower takes no grid of {} by {} patches",
                grid.0, grid.1
            )));
        }
        let rows = input.cut(config.shape.patch_size as i32)?.astype(self.dtype)?;
        let patches = self.patch_embedding.forward(&rows)?.add(&self.positions)?;
        let x = match &self.class {
            Some((class, norm)) => norm.forward(&concatenate(&[class, &patches], 0)?)?,
            None => patches,
        };
        let mut states = vec![None; config.taps.len()];
        let mut keep = |layer: u32, x: &Tensor| {
            let wanted = states.iter_mut().zip(&config.taps).filter(|(_, tap)| **tap == layer);
            wanted.for_each(|(state, _)| *state = Some(x.clone()));
        };
        let all = [(1, x.dim(0))];
        let on_the_way = |layer: usize, x: &Tensor| {
            keep(layer as u32, x);
            Ok(())
        };
        let windows = PatchMask::Windows(&all);
        let last = self.stack.forward_masked(x, None, &windows, on_the_way, hook)?;
        keep(config.shape.layers, &last);
        let states: Vec<&Tensor> = states.iter().flatten().collect();
        let joined = match &states[..] {
            [one] => (*one).clone(),
            several => concatenate(several, 1)?,
        };
        let first = i32::from(config.class_token);
        let joined = joined.slice(0, first, joined.dim(0))?;
        let joined = match &self.post_layernorm {
            Some(norm) => norm.forward(&joined)?,
            None => joined,
        };
        let features = self.projector.forward(&joined, grid, config)?;
        Ok(ImageEmbeddings::of(match &self.multiplier {
            Some(factor) => features.mul(factor)?,
            None => features,
        }))
    }

    /// Encodes the views of one image, the whole image last: its features first, then those of all tiles as one grid,
    /// row after row with a mark behind each. In Phi 3 Vision and DeepSeek-VL2 rows of the whole end so too, and a mark lies
    /// between both grids; in Phi 3 Vision the tiles come first, and marks go through the projector too.
    pub(super) fn encode_rows(
        &self,
        views: &[ViewPixels],
        plan: &ImagePlan,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<ImageEmbeddings> {
        let mut encoded = Vec::with_capacity(views.len());
        for (pixels, view) in views.iter().zip(&plan.views) {
            let features = self.encode(&ViewInput { pixels, view }, hook)?.embeddings;
            eval([&features])?;
            encoded.push(features);
        }
        let (Some(whole), Some(end)) = (encoded.pop(), &self.row_end) else {
            return Err(Error::BadRequest("an image has no view".into()));
        };
        if let Some(between) = &self.between {
            let tiles = plan
                .tiles
                .filter(|(rows, columns)| encoded.len() == (rows * columns) as usize);
            let (Some((_, columns)), Some(view)) = (tiles, plan.views.last()) else {
                return Err(Error::BadRequest("the tiles of an image are no grid".into()));
            };
            let side = view.tokens.0 as i32;
            let tiles = ended(&join_tiles(&encoded, columns.max(1) as usize, side)?, end)?;
            let whole = ended(&join_tiles(&[whole], 1, side)?, end)?;
            return Ok(ImageEmbeddings::of(match &self.projector {
                Projector::Marked(network) => network.forward(&concatenate(&[&tiles, between, &whole], 0)?)?,
                _ => concatenate(&[&whole, between, &tiles], 0)?,
            }));
        }
        let width = whole.dim(1);
        let rows = match (&plan.joined, plan.tiles) {
            (Some(joined), Some((rows, columns))) if encoded.len() == (rows * columns) as usize => {
                let side = self.config.side as i32;
                let grid = join_tiles(&encoded, columns as usize, side)?;
                ended(&shown(&grid, joined)?, end)?
            }
            _ if encoded.is_empty() => end.reshape(&[1, width])?,
            _ => return Err(Error::BadRequest("the tiles of an image are no grid".into())),
        };
        Ok(ImageEmbeddings::of(concatenate(&[&whole, &rows], 0)?))
    }
}

/// Features of tiles `[side · side, width]`, row by row, as one grid `[rows, columns, width]`.
pub(super) fn join_tiles(tiles: &[Tensor], columns: usize, side: i32) -> Result<Tensor> {
    let square = |tile: &Tensor| tile.reshape(&[side, side, tile.dim(1)]);
    let row = |tiles: &[Tensor]| {
        let squares = tiles.iter().map(square).collect::<Result<Vec<_>>>()?;
        concatenate(&squares.iter().collect::<Vec<_>>(), 1)
    };
    let rows = tiles.chunks(columns.max(1)).map(row).collect::<Result<Vec<_>>>()?;
    concatenate(&rows.iter().collect::<Vec<_>>(), 0)
}

/// The middle of a grid that the image covers, brought to as many rows and columns as are shown.
pub(super) fn shown(grid: &Tensor, joined: &JoinedTiles) -> Result<Tensor> {
    let (rows, columns) = (joined.covered.0 as i32, joined.covered.1 as i32);
    let (above, before) = ((grid.dim(0) - rows) / 2, (grid.dim(1) - columns) / 2);
    let grid = grid.slice(0, above, above + rows)?.slice(1, before, before + columns)?;
    if joined.shown == joined.covered {
        return Ok(grid);
    }
    let resampled = Resampling::Linear.apply(&grid, joined.shown)?;
    let (rows, columns) = (joined.shown.0 as i32, joined.shown.1 as i32);
    resampled.reshape(&[rows, columns, grid.dim(2)])?.astype(grid.dtype())
}

/// The rows of a grid `[rows, columns, width]`, one after another with a mark behind each. A very long image covers no
/// column of it.
pub(super) fn ended(grid: &Tensor, end: &Tensor) -> Result<Tensor> {
    let (rows, columns, width) = (grid.dim(0), grid.dim(1), grid.dim(2));
    let ends = Tensor::zeros(&[rows, 1, width], grid.dtype())?.add(end)?;
    if columns == 0 {
        return ends.reshape(&[rows, width]);
    }
    concatenate(&[grid, &ends], 1)?.reshape(&[rows * (columns + 1), width])
}

impl Projector {
    fn load(config: &LlavaConfig, outputs: i32, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Self> {
        const NETWORK: [&str; 2] = ["linear_1", "linear_2"];
        let states = (config.shape.hidden_size * config.taps.len() as u32) as i32;
        match config.projector {
            LlavaProjector::Network(activation) => {
                let sizes = (states, outputs, outputs);
                let (path, names) = network_names(weights);
                let network = load_mlp(path, None, names, sizes, (activation, dtype), weights)?;
                Ok(Self::Network(Box::new(network)))
            }
            LlavaProjector::Projection => {
                let path = format!("{PROJECTOR}.linear");
                Ok(Self::Projection(Linear::load(weights, &path, states, outputs)?))
            }
            LlavaProjector::Marked { merge } => {
                let sizes = (states * (merge * merge) as i32, outputs, outputs);
                let (path, names) = (format!("{MARKED}.img_projection"), ["0", "2"]);
                let network = load_mlp(&path, None, names, sizes, (EncoderActivation::Gelu, dtype), weights)?;
                Ok(Self::Marked(Box::new(network)))
            }
            LlavaProjector::Unfolded { merge, width } => {
                let sizes = (states * (merge * merge) as i32, width as i32, outputs);
                let (path, names) = network_names(weights);
                let network = load_mlp(path, None, names, sizes, (EncoderActivation::Gelu, dtype), weights)?;
                Ok(Self::Unfolded(Box::new(network)))
            }
            LlavaProjector::Gated { merge, width, norm } => {
                let (block, width) = (states * (merge * merge) as i32, width as i32);
                let [up, down] = NETWORK.map(|name| format!("{PROJECTOR}.{name}"));
                let norm = norm.map(|eps| LayerNorm::load(weights, &format!("{PROJECTOR}.layernorm"), block, eps));
                Ok(Self::Gated(Box::new(GatedNetwork::new(
                    norm.transpose()?,
                    Linear::load(weights, &up, block, width)?,
                    Linear::load(weights, &down, width / 2, outputs)?,
                    dtype,
                )?)))
            }
        }
    }

    fn forward(&self, states: &Tensor, grid: (u32, u32), config: &LlavaConfig) -> Result<Tensor> {
        match (self, config.projector) {
            (Self::Network(network), _) => network.forward(states),
            (Self::Projection(projection), _) => projection.forward(states),
            // Its network takes the marks as well.
            (Self::Marked(_), LlavaProjector::Marked { merge }) => join_blocks(states, grid, merge),
            (Self::Unfolded(network), LlavaProjector::Unfolded { merge, .. }) => {
                let whole = |patches: u32| patches.next_multiple_of(merge);
                let (padded, width) = ((whole(grid.0), whole(grid.1)), states.dim(1));
                let blocks = join_blocks(&widened(states, grid, padded)?, padded, merge)?;
                let (count, patches) = (blocks.dim(0), (merge * merge) as i32);
                let numbers = blocks.reshape(&[count, patches, width])?.swapaxes(1, 2)?;
                network.forward(&numbers.reshape(&[count, patches * width])?)
            }
            (Self::Gated(network), LlavaProjector::Gated { merge, .. }) => {
                network.forward(&join_blocks(states, grid, merge)?)
            }
            _ => unreachable!("it was loaded by this description"),
        }
    }
}

/// States of a grid `[rows · columns, width]` with zeros on the right and below, up to as many rows and columns.
pub(super) fn widened(states: &Tensor, (rows, columns): (u32, u32), to: (u32, u32)) -> Result<Tensor> {
    let (rows, columns, width) = (rows as i32, columns as i32, states.dim(1));
    let (down, across) = (to.0 as i32, to.1 as i32);
    let mut grid = states.reshape(&[rows, columns, width])?;
    if across > columns {
        let right = Tensor::zeros(&[rows, across - columns, width], states.dtype())?;
        grid = concatenate(&[&grid, &right], 1)?;
    }
    if down > rows {
        let below = Tensor::zeros(&[down - rows, across, width], states.dtype())?;
        grid = concatenate(&[&grid, &below], 0)?;
    }
    grid.reshape(&[down * across, width])
}

impl GatedNetwork {
    /// Of these projections.
    pub(super) fn new(norm: Option<LayerNorm>, up: Linear, down: Linear, dtype: Dtype) -> error::Result<Self> {
        Ok(Self {
            norm,
            up,
            silu: Pointwise::new(EncoderActivation::Silu, dtype)?,
            down,
        })
    }

    /// `[blocks, numbers]` to `[blocks, width of the language part]`.
    pub(super) fn forward(&self, blocks: &Tensor) -> Result<Tensor> {
        let normed = self.norm.as_ref().map(|norm| norm.forward(blocks)).transpose()?;
        let up = self.up.forward(normed.as_ref().unwrap_or(blocks))?;
        let half = up.dim(1) / 2;
        let gate = self.silu.forward(&up.slice(1, half, 2 * half)?)?;
        self.down.forward(&gate.mul(&up.slice(1, 0, half)?)?)
    }
}
