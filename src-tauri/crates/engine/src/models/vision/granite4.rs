//! The vision encoder of Granite 4 Vision and its projectors, which look through windows. References: transformers'
//! `modeling_granite4_vision.py` and `modeling_blip_2.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::{FeatureSet, Granite4VisionConfig};
use checkpoint::ImagePlan;
use media::ViewPixels;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};
use mlx::{Dtype, Result};

use super::attention::{attend_in_turns, PatchMask};
use super::block::Mlp;
use super::llava::{ended, join_tiles, shown};
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::stack::{first_with, load_mlp, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{Embedding, LayerNorm, Linear};
use crate::weights::Weights;

/// Added to the variance of states before they are projected, whatever the config says.
const EPS: f32 = 1e-6;

/// The paths at which files keep the vision encoder.
const PLACES: [&str; 2] = ["vision_tower.vision_model", "vision_tower"];

/// The vision encoder.
#[derive(Parameters)]
pub struct Granite4Tower {
    #[parameters(skip)]
    config: Granite4VisionConfig,
    dtype: Dtype,
    patch_embedding: Linear,
    /// `[patches, hidden]`.
    positions: Tensor,
    stack: Stack,
    /// One for each set of features.
    projectors: Vec<WindowProjector>,
    /// The mark after each row of a grid of tiles, `[1, 1, width of the language part]`.
    row_end: Tensor,
}

/// Queries that look through windows.
#[derive(Parameters)]
struct WindowProjector {
    /// Tokens and patches along a side of a window, and windows along a side of a view.
    query: i32,
    window: i32,
    windows: i32,
    #[parameters(skip)]
    corner: Option<(u32, u32)>,
    /// The share of a patch in the mean of its block.
    share: Tensor,
    norm: LayerNorm,
    /// The places that are added to queries and to the states of a window, `[1, places, hidden]`.
    queries: Tensor,
    places: Tensor,
    query_norm: LayerNorm,
    layers: Vec<Layer>,
    output: Linear,
}

/// A layer of a projector: each part is normed after it was added.
#[derive(Parameters)]
struct Layer {
    own: Attention,
    cross: Attention,
    mlp: Mlp,
    mlp_norm: LayerNorm,
}

/// Attention of queries to each other or to a window.
#[derive(Parameters)]
struct Attention {
    heads: i32,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    norm: LayerNorm,
}

impl Attention {
    fn load(config: &Granite4VisionConfig, path: &str, weights: &mut Weights<'_>) -> error::Result<Self> {
        let hidden = config.shape.hidden_size as i32;
        let mut linear = |name: &str| Linear::load(weights, &format!("{path}.{name}"), hidden, hidden);
        Ok(Self {
            heads: config.heads() as i32,
            query: linear("attention.query")?,
            key: linear("attention.key")?,
            value: linear("attention.value")?,
            output: linear("output.dense")?,
            norm: LayerNorm::load(weights, &format!("{path}.output.LayerNorm"), hidden, config.eps)?,
        })
    }

    /// Queries `[windows, places, hidden]` with what they found in `seen`.
    fn forward(&self, x: &Tensor, seen: &Tensor) -> Result<Tensor> {
        let (windows, hidden) = (x.dim(0), x.dim(2));
        let width = hidden / self.heads;
        let split = |linear: &Linear, rows: &Tensor| {
            let projected = linear.forward(&rows.reshape(&[-1, hidden])?)?;
            projected.reshape(&[windows, -1, self.heads, width])?.swapaxes(1, 2)
        };
        let (queries, keys) = (split(&self.query, x)?, split(&self.key, seen)?);
        let scale = (width as f32).powf(-0.5);
        let found = attend_in_turns(&queries, &keys, &split(&self.value, seen)?, scale)?;
        let found = found.swapaxes(1, 2)?.reshape(&[-1, hidden])?;
        let found = self.output.forward(&found)?.reshape(x.shape())?;
        self.norm.forward(&found.add(x)?)
    }
}

impl Layer {
    fn load(config: &Granite4VisionConfig, path: &str, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Self> {
        let hidden = config.shape.hidden_size as i32;
        let (sizes, kind) = ((hidden, config.width as i32, hidden), (EncoderActivation::Gelu, dtype));
        let names = ["intermediate_query.dense", "output_query.dense"];
        Ok(Self {
            own: Attention::load(config, &format!("{path}.attention"), weights)?,
            cross: Attention::load(config, &format!("{path}.crossattention"), weights)?,
            mlp: load_mlp(path, None, names, sizes, kind, weights)?,
            mlp_norm: LayerNorm::load(weights, &format!("{path}.output_query.LayerNorm"), hidden, config.eps)?,
        })
    }

    fn forward(&self, x: &Tensor, seen: &Tensor) -> Result<Tensor> {
        let x = self.own.forward(x, x)?;
        let x = self.cross.forward(&x, seen)?;
        let fed = self.mlp.forward(&x.reshape(&[-1, x.dim(2)])?)?;
        self.mlp_norm.forward(&fed.reshape(x.shape())?.add(&x)?)
    }
}

impl WindowProjector {
    fn load(
        config: &Granite4VisionConfig,
        set: &FeatureSet,
        path: &str,
        (outputs, dtype): (i32, Dtype),
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let hidden = config.shape.hidden_size as i32;
        let (query, window) = (config.rate.0 as i32, config.rate.1 as i32);
        let block = window / query;
        let former = format!("{path}.qformer");
        let layer = |layer: u32, weights: &mut Weights<'_>| {
            Layer::load(config, &format!("{former}.encoder.layer.{layer}"), dtype, weights)
        };
        Ok(Self {
            query,
            window,
            windows: config.side as i32 / window,
            corner: set.corner,
            share: Tensor::scalar(1.0 / (block * block) as f32, dtype)?,
            norm: LayerNorm::load(weights, &format!("{path}.norm"), hidden, EPS)?,
            queries: weights.take(&format!("{path}.query"), &[1, query * query, hidden])?,
            places: weights.take(&format!("{path}.image_positions"), &[1, window * window, hidden])?,
            query_norm: LayerNorm::load(weights, &format!("{former}.layernorm"), hidden, config.eps)?,
            layers: (0..config.layers)
                .map(|number| layer(number, weights))
                .collect::<error::Result<_>>()?,
            output: Linear::load(weights, &format!("{path}.out_linear"), hidden, outputs)?,
        })
    }

    /// States of a view `[patches, hidden]` to its features `[tokens, width of the language part]`.
    fn forward(&self, states: &Tensor) -> Result<Tensor> {
        let hidden = states.dim(1);
        let states = self.norm.forward(states)?;
        let seen = self.in_windows(&states, self.window)?.add(&self.places)?;
        let started = self.in_windows(&self.shrunk(&states)?, self.query)?;
        let mut x = self.query_norm.forward(&started.add(&self.queries)?)?;
        for layer in &self.layers {
            x = layer.forward(&x, &seen)?;
        }
        let (count, side) = (self.windows, self.query);
        let rows = x.reshape(&[count, count, side, side, hidden])?.swapaxes(1, 2)?;
        self.output.forward(&rows.reshape(&[-1, hidden])?)
    }

    /// A grid `[rows · columns, hidden]` as windows of so many rows, `[windows, places, hidden]`.
    fn in_windows(&self, grid: &Tensor, side: i32) -> Result<Tensor> {
        let (count, hidden) = (self.windows, grid.dim(1));
        let apart = grid.reshape(&[count, side, count, side, hidden])?.swapaxes(1, 2)?;
        apart.reshape(&[count * count, side * side, hidden])
    }

    /// A patch or the mean of each block.
    fn shrunk(&self, states: &Tensor) -> Result<Tensor> {
        let (side, hidden) = (self.windows * self.query, states.dim(1));
        let block = self.window / self.query;
        let blocks = states.reshape(&[side, block, side, block, hidden])?;
        let kept = match self.corner {
            Some((down, across)) => {
                let (down, across) = (down as i32, across as i32);
                blocks.slice(1, down, down + 1)?.slice(3, across, across + 1)?
            }
            None => blocks.sum(3, true)?.sum(1, true)?.mul(&self.share)?,
        };
        kept.reshape(&[side * side, hidden])
    }
}

impl Granite4Tower {
    pub(super) fn load(config: &Granite4VisionConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let shape = &config.shape;
        let (hidden, side, outputs) = (shape.hidden_size as i32, shape.patch_size as i32, outputs as i32);
        let path = first_with(weights, &PLACES, "embeddings.patch_embedding.weight");
        let (embeddings, layers) = (format!("{path}.embeddings"), format!("{path}.encoder.layers"));
        let dtype = weights.dtype(&format!("{embeddings}.patch_embedding.weight"));
        let (patches, order) = (format!("{embeddings}.patch_embedding"), PatchOrder::PixelByPixel);
        let table = format!("{embeddings}.position_embedding");
        let count = (config.side * config.side) as i32;
        let row_end = weights.take("image_newline", &[outputs])?.reshape(&[1, 1, outputs])?;
        let (mut plain, mut spatial) = (0.., 0..);
        let mut projectors = Vec::with_capacity(config.sets.len());
        for set in &config.sets {
            let path = match set.corner {
                None => format!("layerwise_projectors.{}", plain.next().unwrap_or(0)),
                Some(_) => format!("spatial_projectors.{}", spatial.next().unwrap_or(0)),
            };
            let projector = WindowProjector::load(config, set, &path, (outputs, dtype), weights)?;
            weights.materialize(projector.tensors())?;
            projectors.push(projector);
        }
        Ok(Self {
            dtype,
            patch_embedding: load_patch_linear(weights, &patches, COLOURS * side * side, hidden, order)?,
            positions: Embedding::load(weights, &table, count, hidden)?.into_numbers()?,
            stack: Stack::load(&layers, &BlockNames::CLIP, shape, dtype, weights)?,
            projectors,
            row_end,
            config: config.clone(),
        })
    }

    /// The features of one view, set after set.
    fn sets(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<Vec<Tensor>> {
        let config = &self.config;
        let patch = config.shape.patch_size;
        if (input.view.width, input.view.height) != (config.side * patch, config.side * patch) {
            return Err(Error::BadRequest(format!(
                "this model's tower takes no view of {} by {} pixels",
                input.view.width, input.view.height
            )));
        }
        let rows = input.cut(patch as i32)?.astype(self.dtype)?;
        let x = self.patch_embedding.forward(&rows)?.add(&self.positions)?;
        let mut states = vec![None; config.sets.len()];
        let mut keep = |layer: u32, x: &Tensor| {
            let wanted = states.iter_mut().zip(&config.sets).filter(|(_, set)| set.tap == layer);
            wanted.for_each(|(state, _)| *state = Some(x.clone()));
        };
        let all = [(1, x.dim(0))];
        let on_the_way = |layer: usize, x: &Tensor| {
            keep(layer as u32, x);
            Ok(())
        };
        let last = self
            .stack
            .forward_masked(x, None, &PatchMask::Windows(&all), on_the_way, hook)?;
        keep(config.shape.layers, &last);
        let projected = states.iter().flatten().zip(&self.projectors);
        let features = projected.map(|(states, projector)| projector.forward(states));
        Ok(features.collect::<Result<Vec<_>>>()?)
    }

    /// Encodes the views of one image, the whole image last: of each set its features first, then those of all tiles as
    /// one grid, row after row with a mark behind each.
    pub(super) fn encode_sets(
        &self,
        views: &[ViewPixels],
        plan: &ImagePlan,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<ImageEmbeddings> {
        let mut encoded: Vec<Vec<Tensor>> = vec![Vec::with_capacity(views.len()); self.config.sets.len()];
        for (pixels, view) in views.iter().zip(&plan.views) {
            let features = self.sets(&ViewInput { pixels, view }, hook)?;
            eval(&features)?;
            for (set, features) in encoded.iter_mut().zip(features) {
                set.push(features);
            }
        }
        let (mut first, mut deep, mut deep_layers, mut shape) = (None, Vec::new(), Vec::new(), (0, 0));
        for (set, views) in self.config.sets.iter().zip(encoded) {
            let features = self.in_rows(views, plan)?;
            shape = (features.dim(0), features.dim(1));
            match set.target.checked_sub(1) {
                None => first = Some(features),
                Some(before) => {
                    deep.push(features);
                    deep_layers.push(before as usize);
                }
            }
        }
        Ok(ImageEmbeddings {
            embeddings: match first {
                Some(features) => features,
                None => Tensor::zeros(&[shape.0, shape.1], self.row_end.dtype())?,
            },
            deep,
            deep_layers,
        })
    }

    /// The features of one set of all views in the order of the prompt.
    fn in_rows(&self, mut views: Vec<Tensor>, plan: &ImagePlan) -> error::Result<Tensor> {
        let Some(whole) = views.pop() else {
            return Err(Error::BadRequest("an image has no view".into()));
        };
        let side = (self.config.side / self.config.rate.1 * self.config.rate.0) as i32;
        let rows = match (&plan.joined, plan.tiles) {
            (Some(joined), Some((rows, columns))) if views.len() == (rows * columns) as usize => {
                let grid = join_tiles(&views, columns as usize, side)?;
                ended(&shown(&grid, joined)?, &self.row_end)?
            }
            _ if views.is_empty() => self.row_end.reshape(&[1, whole.dim(1)])?,
            _ => return Err(Error::BadRequest("the tiles of an image are no grid".into())),
        };
        Ok(concatenate(&[&whole, &rows], 0)?)
    }
}
