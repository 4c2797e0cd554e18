//! The vision encoder of MiMo V2. Reference: mlx-vlm's `mimo_v2/vision.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::{MimoVisionConfig, MimoVisionLayer};
use mlx::ops::{concatenate, ids_tensor, join, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::attend_in_turns;
use super::block::Mlp;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::rope::{angles, in_squares, PatchRotation};
use super::stack::{check_blocks, load_mlp};
use super::{check_outputs, pause, ImageEmbeddings, LayerHook, ViewInput};
use crate::error;
use crate::layers::{LayerNorm, Linear, Pointwise, RmsNorm};
use crate::weights::Weights;

/// Added to the variance before patches are merged, whatever the config says.
const MERGER_EPS: f32 = 1e-6;

/// The base of the rotation's periods.
const THETA: f32 = 10_000.0;

/// Patches that look through a window at once.
const TOGETHER: i32 = 256;

/// The vision encoder.
#[derive(Parameters)]
pub struct MimoTower {
    #[parameters(skip)]
    config: MimoVisionConfig,
    dtype: Dtype,
    patch_proj: Linear,
    blocks: Vec<Block>,
    merger_norm: LayerNorm,
    merger_up: Linear,
    merger_activation: Pointwise,
    merger_down: Linear,
}

/// One layer.
#[derive(Parameters)]
struct Block {
    before_attention: RmsNorm,
    heads: i32,
    key_heads: i32,
    width: i32,
    /// Queries, keys and values side by side.
    qkv: Linear,
    output: Linear,
    /// Patches before and after one that it sees, and what is added to the scores of the first one, `[heads, 1, 1]`.
    window: Option<i32>,
    sinks: Option<Tensor>,
    before_mlp: RmsNorm,
    mlp: Mlp,
}

impl Block {
    fn load(
        config: &MimoVisionConfig,
        layer: &MimoVisionLayer,
        number: usize,
        dtype: Dtype,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let at = |name: &str| format!("vision_tower.blocks.{number}.{name}");
        let [heads, key_heads, width, hidden, inner] = [
            config.heads,
            config.key_heads,
            config.head_dim,
            config.hidden_size,
            config.intermediate_size,
        ]
        .map(|number| number as i32);
        let sinks = config.sinks && !layer.full;
        let sinks = sinks.then(|| weights.take(&at("attn.sinks"), &[heads])).transpose()?;
        let sinks = sinks
            .map(|sinks| sinks.astype(dtype)?.reshape(&[heads, 1, 1]))
            .transpose()?;
        let network = ["mlp.up_proj", "mlp.down_proj"];
        let path = format!("vision_tower.blocks.{number}");
        let block = Self {
            before_attention: RmsNorm::load(weights, &at("norm1"), hidden, config.eps)?,
            heads,
            key_heads,
            width,
            qkv: Linear::load(weights, &at("attn.qkv"), hidden, (heads + 2 * key_heads) * width)?,
            output: Linear::load(weights, &at("attn.proj"), heads * width, hidden)?,
            window: config.window.filter(|_| !layer.full).map(|window| window as i32),
            sinks,
            before_mlp: RmsNorm::load(weights, &at("norm2"), hidden, config.eps)?,
            mlp: load_mlp(
                &path,
                Some("mlp.gate_proj"),
                network,
                (hidden, inner, hidden),
                (EncoderActivation::Silu, dtype),
                weights,
            )?,
        };
        weights.materialize(block.tensors())?;
        Ok(block)
    }

    /// States `[patches, hidden]` to the same.
    fn forward(&self, x: &Tensor, rotation: &PatchRotation) -> Result<Tensor> {
        let (rows, turning) = (x.dim(0), self.heads + self.key_heads);
        let all = self.qkv.forward(&self.before_attention.forward(x)?)?;
        let all = all.reshape(&[rows, turning + self.key_heads, self.width])?;
        let turned = rotation.forward(&all.slice(1, 0, turning)?)?;
        let by_head = |part: Tensor| part.reshape(&[1, rows, -1, self.width])?.swapaxes(1, 2);
        let queries = by_head(turned.slice(1, 0, self.heads)?)?;
        let keys = by_head(turned.slice(1, self.heads, turning)?)?;
        let values = by_head(all.slice(1, turning, turning + self.key_heads)?)?;
        let scale = (self.width as f32).powf(-0.5);
        let found = match self.window.is_some() || self.sinks.is_some() {
            true => self.attend_near(&queries, &keys, &values, scale)?,
            false => attend_in_turns(&queries, &keys, &values, scale)?,
        };
        let found = found.swapaxes(1, 2)?.reshape(&[rows, self.heads * self.width])?;
        let x = x.add(&self.output.forward(&found)?)?;
        x.add(&self.mlp.forward(&self.before_mlp.forward(&x)?)?)
    }

    /// Attention of queries `[1, heads, length, width]` to the patches in their window.
    fn attend_near(&self, queries: &Tensor, keys: &Tensor, values: &Tensor, scale: f32) -> Result<Tensor> {
        let length = queries.dim(2);
        let window = self.window.unwrap_or(length);
        let mut found = Vec::new();
        for first in (0..length).step_by(TOGETHER as usize) {
            let last = length.min(first + TOGETHER);
            let (from, to) = ((first - window).max(0), length.min(last.saturating_add(window)));
            let sees = |row: i32| (from..to).map(move |key| (row - key).abs() <= window);
            let marks: Vec<bool> = (first..last).flat_map(sees).collect();
            let marks = Tensor::from_bool(&marks, &[last - first, to - from]);
            let mask = match self.sinks.as_ref().filter(|_| from == 0) {
                Some(sinks) => {
                    let number = |number: f32| Tensor::scalar(number, sinks.dtype());
                    let seen = marks.select(&number(0.0)?, &number(f32::NEG_INFINITY)?)?;
                    let others = Tensor::zeros(&[self.heads, 1, to - 1], sinks.dtype())?;
                    let added = concatenate(&[sinks, &others], 2)?.add(&seen)?;
                    added.reshape(&[1, self.heads, last - first, to])?
                }
                None => marks,
            };
            let part = |x: &Tensor| x.slice(2, from, to);
            let some = queries.slice(2, first, last)?;
            found.push(some.fast_attention(&part(keys)?, &part(values)?, scale, &Mask::Array(mask), None)?);
        }
        join(&found, 2)
    }
}

impl MimoTower {
    /// Loads `patch_embed.proj`, `blocks` and `merger`.
    pub(super) fn load(config: &MimoVisionConfig, text_width: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        check_outputs(config.out_hidden_size, text_width)?;
        let (hidden, side) = (config.hidden_size as i32, config.patch_size as i32);
        let square = hidden * (config.merge * config.merge) as i32;
        let inputs = COLOURS * config.frames as i32 * side * side;
        let dtype = weights.dtype("vision_tower.blocks.0.norm1.weight");
        let path = "vision_tower.patch_embed.proj";
        let patch_proj = load_patch_linear(weights, path, inputs, hidden, PatchOrder::ColourByColour)?;
        let blocks = config.layers.iter().enumerate();
        let blocks = blocks.map(|(number, layer)| Block::load(config, layer, number, dtype, weights));
        let blocks = blocks.collect::<error::Result<Vec<_>>>()?;
        let factors = weights.take("vision_tower.merger.ln_q.weight", &[hidden])?;
        let nothing = Tensor::zeros(&[hidden], factors.dtype())?;
        let tower = Self {
            config: config.clone(),
            dtype,
            patch_proj,
            blocks,
            merger_norm: LayerNorm::new(factors, nothing, MERGER_EPS)?,
            merger_up: Linear::load(weights, "vision_tower.merger.mlp.0", square, square)?,
            merger_activation: Pointwise::new(EncoderActivation::Gelu, dtype)?,
            merger_down: Linear::load(
                weights,
                "vision_tower.merger.mlp.2",
                square,
                config.out_hidden_size as i32,
            )?,
        };
        weights.materialize(tower.tensors())?;
        Ok(tower)
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (rows, columns) = input.view.patches;
        let (merge, hidden) = (self.config.merge, self.config.hidden_size as i32);
        check_blocks(input.view, merge)?;
        let inputs = COLOURS * (self.config.frames * self.config.patch_size * self.config.patch_size) as i32;
        let patches = input.rows(inputs)?.astype(self.dtype)?;
        let mut x = self.patch_proj.forward(&patches)?;
        let count = (rows * columns) as usize;
        let order = ByColumns::new(rows / merge, columns / merge, (merge * merge) as usize);
        let places = in_squares(rows, columns, merge);
        let turn = |places: &[(u32, u32)]| {
            PatchRotation::new(&angles(places, self.config.head_dim / 2, THETA, false), count, 1)
        };
        let (by_rows, by_columns) = (turn(&places), turn(&order.places(&places)));
        let mut turned = false;
        for (block, layer) in self.blocks.iter().zip(&self.config.layers) {
            if layer.columns != turned {
                x = order.apply(&x, layer.columns)?;
                turned = layer.columns;
            }
            x = block.forward(&x, if turned { &by_columns } else { &by_rows })?;
            pause(&x, hook)?;
        }
        if turned {
            x = order.apply(&x, false)?;
        }
        let square = hidden * (merge * merge) as i32;
        let squares = self.merger_norm.forward(&x)?.reshape(&[-1, square])?;
        let up = self.merger_activation.forward(&self.merger_up.forward(&squares)?)?;
        Ok(ImageEmbeddings::of(self.merger_down.forward(&up)?))
    }
}

/// The order of squares column by column.
struct ByColumns {
    order: Vec<u32>,
    inverse: Vec<u32>,
    /// Patches of a square.
    square: usize,
}

impl ByColumns {
    /// For squares in so many rows and columns.
    fn new(rows: u32, columns: u32, square: usize) -> Self {
        let order = (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column));
        let inverse = (0..rows).flat_map(|row| (0..columns).map(move |column| column * rows + row));
        Self {
            order: order.collect(),
            inverse: inverse.collect(),
            square,
        }
    }

    /// Patches `[patches, hidden]` from rows to columns, or back.
    fn apply(&self, x: &Tensor, columns: bool) -> Result<Tensor> {
        let order = if columns { &self.order } else { &self.inverse };
        let squares = x.reshape(&[-1, self.square as i32, x.dim(1)])?;
        squares.take(&ids_tensor(order), 0)?.reshape(x.shape())
    }

    fn places(&self, places: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let of = |square: &u32| places[*square as usize * self.square..][..self.square].iter().copied();
        self.order.iter().flat_map(of).collect()
    }
}
