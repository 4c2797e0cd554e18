//! Gemma 4's vision encoder. Reference: transformers' `modeling_gemma4.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::Gemma4VisionConfig;
use mlx::ops::ids_tensor;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::{Attention, HeadNorms, PatchMask, Projections};
use super::block::{Block, Mlp, Norm};
use super::linear::ClippedLinear;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::rope::{angles, PatchRotation};
use super::stack::row_by_row;
use super::{pause, ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{ones, Linear, Pointwise, RmsNorm};
use crate::weights::Weights;

/// The vision encoder.
#[derive(Parameters)]
pub struct Gemma4Tower {
    patch_size: i32,
    pooling: i32,
    rows: u32,
    head_dim: u32,
    theta: f32,
    input_proj: Linear,
    /// `[positions, hidden]`: of columns, and of rows.
    positions: [Tensor; 2],
    layers: Vec<Block>,
    /// √hidden over the patches of a token, in 32 bit floats.
    pool_factor: Tensor,
    /// The mean that is subtracted from the pooled states, and the factor that follows.
    standard: Option<[Tensor; 2]>,
    pre_projection_norm: RmsNorm,
    embedding_projection: Linear,
    two: Tensor,
    half: Tensor,
}

impl Gemma4Tower {
    pub(super) fn load(config: &Gemma4VisionConfig, text_width: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        const PROJECTION: &str = "embed_vision.embedding_projection";
        let (hidden, side) = (config.hidden_size as i32, config.patch_size as i32);
        let path = |name: &str| format!("vision_tower.{name}");
        let (inputs, embedder) = (side * side * COLOURS, path("patch_embedder.input_proj"));
        let input_proj = load_patch_linear(weights, &embedder, inputs, hidden, PatchOrder::PixelByPixel)?;
        let rows = config.positions as i32;
        let table = weights.take(&path("patch_embedder.position_embedding_table"), &[2, rows, hidden])?;
        let dtype = table.dtype();
        let of_axis = |axis: i32| table.slice(0, axis, axis + 1)?.reshape(&[rows, hidden])?.contiguous();
        let positions = [of_axis(0)?, of_axis(1)?];
        weights.materialize(&positions)?;
        let mut take = |name: &str| Ok::<_, Error>(weights.take(&path(name), &[hidden])?.astype(Dtype::Float32)?);
        let standard = match config.standardized {
            true => Some([take("std_bias")?, take("std_scale")?]),
            false => None,
        };
        let patches = (config.pooling * config.pooling) as f32;
        Ok(Self {
            patch_size: side,
            pooling: config.pooling as i32,
            rows: config.positions,
            head_dim: config.head_dim,
            theta: config.theta,
            input_proj,
            positions,
            layers: (0..config.layers)
                .map(|layer| load_block(config, layer, dtype, weights))
                .collect::<error::Result<_>>()?,
            pool_factor: Tensor::scalar((hidden as f32).sqrt() / patches, Dtype::Float32)?,
            standard,
            pre_projection_norm: RmsNorm::new(ones(hidden, dtype)?, config.eps),
            embedding_projection: Linear::load(weights, PROJECTION, hidden, text_width as i32)?,
            two: Tensor::scalar(2.0, Dtype::Float32)?,
            half: Tensor::scalar(0.5, Dtype::Float32)?,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (rows, columns) = input.view.patches;
        if rows > self.rows
            || columns > self.rows
            || input.view.tokens != (rows / self.pooling as u32, columns / self.pooling as u32)
        {
            return Err(Error::BadRequest(format!(
                "this model's tower takes no grid of {rows} by {columns} patches"
            )));
        }
        let places = row_by_row(input.view.patches);
        let patches = input.rows(self.patch_size * self.patch_size * COLOURS)?;
        let patches = patches.sub(&self.half)?.mul(&self.two)?;
        let by_column = ids_tensor(&places.iter().map(|(_, column)| *column).collect::<Vec<_>>());
        let by_row = ids_tensor(&places.iter().map(|(row, _)| *row).collect::<Vec<_>>());
        let mut x = self.input_proj.forward(&patches.astype(self.positions[0].dtype())?)?;
        let [columns_of, rows_of] = &self.positions;
        x = x.add(&columns_of.take(&by_column, 0)?.add(&rows_of.take(&by_row, 0)?)?)?;
        // The first half of a head turns by the column, the second by the row.
        let rotation = PatchRotation::new(&angles(&places, self.head_dim / 2, self.theta, true), places.len(), 2);
        let whole = [(1, places.len() as i32)];
        for layer in &self.layers {
            x = layer.forward(&x, Some(&rotation), &PatchMask::Windows(&whole))?;
            pause(&x, hook)?;
        }
        let pooled = self.pool(&x, rows as i32, columns as i32)?;
        let normed = self.pre_projection_norm.forward(&pooled)?;
        Ok(ImageEmbeddings::of(self.embedding_projection.forward(&normed)?))
    }

    /// The mean of each square of patches, times √hidden; the sums are too large for 16 bits.
    fn pool(&self, x: &Tensor, rows: i32, columns: i32) -> Result<Tensor> {
        let (side, hidden) = (self.pooling, x.dim(1));
        let squares = x
            .astype(Dtype::Float32)?
            .reshape(&[rows / side, side, columns / side, side, hidden])?;
        let pooled = squares.sum(3, false)?.sum(1, false)?.mul(&self.pool_factor)?;
        let pooled = pooled.reshape(&[-1, hidden])?;
        match &self.standard {
            Some([bias, scale]) => pooled.sub(bias)?.mul(scale)?.astype(x.dtype()),
            None => pooled.astype(x.dtype()),
        }
    }
}

fn load_block(
    config: &Gemma4VisionConfig,
    layer: u32,
    dtype: Dtype,
    weights: &mut Weights<'_>,
) -> error::Result<Block> {
    let path = |name: &str| format!("vision_tower.encoder.layers.{layer}.{name}");
    let (hidden, width) = (config.hidden_size as i32, config.intermediate_size as i32);
    let (heads, head_dim) = (config.heads as i32, config.head_dim as i32);
    let mut linear = |name: &str, inputs: i32, outputs: i32| {
        ClippedLinear::load(weights, &path(name), inputs, outputs, config.clipped)
    };
    let projections = Projections::Apart(Box::new([
        linear("self_attn.q_proj", hidden, heads * head_dim)?,
        linear("self_attn.k_proj", hidden, heads * head_dim)?,
        linear("self_attn.v_proj", hidden, heads * head_dim)?,
    ]));
    let output = linear("self_attn.o_proj", heads * head_dim, hidden)?;
    let mlp = Mlp {
        activation: Pointwise::new(EncoderActivation::GeluTanh, dtype)?,
        gate: Some(linear("mlp.gate_proj", hidden, width)?),
        up: linear("mlp.up_proj", hidden, width)?,
        down: linear("mlp.down_proj", width, hidden)?,
    };
    let mut norm = |name: &str, width: i32| RmsNorm::load(weights, &path(name), width, config.eps);
    Ok(Block {
        before_attention: Norm::Rms(norm("input_layernorm", hidden)?),
        after_attention: Some(Norm::Rms(norm("post_attention_layernorm", hidden)?)),
        before_mlp: Norm::Rms(norm("pre_feedforward_layernorm", hidden)?),
        after_mlp: Some(Norm::Rms(norm("post_feedforward_layernorm", hidden)?)),
        attention: Attention {
            heads,
            width: head_dim,
            // Queries and keys are normed, so that nothing is left to scale.
            scale: 1.0,
            projections,
            norms: HeadNorms::All([
                norm("self_attn.q_norm", head_dim)?,
                norm("self_attn.k_norm", head_dim)?,
                RmsNorm::new(ones(head_dim, dtype)?, config.eps),
            ]),
            output,
        },
        mlp,
    })
}
