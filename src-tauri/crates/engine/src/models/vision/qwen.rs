//! Qwen's vision encoders: 2-VL, 2.5-VL with windows, 3-VL and 3.5 with learned positions; and that of dots.ocr.
//! References: transformers' `modeling_qwen2_vl.py`, `modeling_qwen2_5_vl.py` and `modeling_qwen3_vl.py`, and
//! dots.ocr's `modeling_dots_vision.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::{PositionTable, QwenVisionConfig, TowerShape, Windows};
use mlx::ops::ids_tensor;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::{Group, PatchMask};
use super::block::{Block, Norm};
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::rope::{angles, in_squares, PatchRotation};
use super::stack::{check_blocks, load_block, load_norm, load_table, BlockNames};
use super::{check_outputs, pause, ImageEmbeddings, LayerHook, ViewInput};
use crate::error;
use crate::layers::{Linear, Pointwise};
use crate::weights::Weights;

/// Added to the variance in every norm, whatever the config says.
const EPS: f32 = 1e-6;

/// The base of the rotation's periods.
const THETA: f32 = 10_000.0;

/// The vision encoder.
#[derive(Parameters)]
pub struct QwenTower {
    #[parameters(skip)]
    config: QwenVisionConfig,
    dtype: Dtype,
    patch_proj: Linear,
    /// The norm of projected patches.
    patch_norm: Option<Norm>,
    /// `[side, side, hidden]`.
    positions: Option<Tensor>,
    blocks: Vec<Block>,
    /// The norm of patches after the last layer.
    last_norm: Option<Norm>,
    merger: Merger,
    /// One for each layer of `deepstack`.
    deep_mergers: Vec<Merger>,
}

/// The part that makes one token of the patches of a square.
#[derive(Parameters)]
struct Merger {
    /// Numbers of all patches of a square.
    width: i32,
    norm: Norm,
    /// True if all patches of a square are normed together.
    norm_together: bool,
    activation: Pointwise,
    up: Linear,
    down: Linear,
}

impl Merger {
    fn load(
        config: &QwenVisionConfig,
        path: &str,
        names: [&str; 3],
        norm_together: bool,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let hidden = config.hidden_size as i32;
        let width = hidden * (config.merge * config.merge) as i32;
        let [norm, up, down] = names.map(|name| format!("{path}.{name}"));
        let normed = if norm_together { width } else { hidden };
        let by_square = config.gated && config.dots.is_none();
        let norm = load_norm(by_square, &norm, normed, EPS, weights)?;
        let dtype = weights.dtype_of_matrix(&up).unwrap_or(Dtype::Float32);
        Ok(Self {
            width,
            norm,
            norm_together,
            activation: Pointwise::new(EncoderActivation::Gelu, dtype)?,
            up: Linear::load(weights, &up, width, width)?,
            down: Linear::load(weights, &down, width, config.out_hidden_size as i32)?,
        })
    }

    /// `[patches, hidden]` to `[tokens, width of the language part]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let squares = match self.norm_together {
            true => self.norm.forward(&x.reshape(&[-1, self.width])?)?,
            false => self.norm.forward(x)?.reshape(&[-1, self.width])?,
        };
        let up = self.activation.forward(&self.up.forward(&squares)?)?;
        self.down.forward(&up)
    }
}

impl QwenTower {
    pub(super) fn load(config: &QwenVisionConfig, text_width: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        check_outputs(config.out_hidden_size, text_width)?;
        let (hidden, side) = (config.hidden_size as i32, config.patch_size as i32);
        let path = match config.dots {
            Some(_) => "vision_tower.patch_embed.patchifier.proj",
            None => "vision_tower.patch_embed.proj",
        };
        if config.patch_bias {
            weights.require(&format!("{path}.bias"))?;
        }
        let dtype = weights.dtype(&format!("{path}.weight"));
        let inputs = COLOURS * config.frames as i32 * side * side;
        let patch_proj = load_patch_linear(weights, path, inputs, hidden, PatchOrder::ColourByColour)?;
        let table = |table: PositionTable| load_table("vision_tower.pos_embed", table.side, hidden, weights);
        let positions = config.positions.map(table).transpose()?;
        let blocks = load_blocks(config, dtype, weights)?;
        let mut normed = |path: &str, has: bool| {
            let dots = config.dots.filter(|_| has);
            dots.map(|dots| load_norm(true, path, hidden, dots.eps, weights))
                .transpose()
        };
        let patch_norm = normed("vision_tower.patch_embed.patchifier.norm", true)?;
        let after = config.dots.is_some_and(|dots| dots.normed_after);
        let last_norm = normed("vision_tower.post_trunk_norm", after)?;
        const NAMES: [&str; 3] = ["norm", "linear_fc1", "linear_fc2"];
        const OLDER: [&str; 3] = ["ln_q", "mlp.0", "mlp.2"];
        // Qwen3-Omni has the newer vision encoder with the older names.
        let older = weights.has("vision_tower.merger.ln_q.weight");
        let names = if older { OLDER } else { NAMES };
        let deep = (0..config.deepstack.len()).map(|set| {
            let lists = ["vision_tower.deepstack_merger_list", "vision_tower.merger_list"];
            let paths = lists.map(|list| format!("{list}.{set}"));
            let has = |path: &&String| weights.any(|name, _| name.starts_with(&format!("{path}.")));
            let path = paths.iter().find(has).unwrap_or(&paths[0]);
            Merger::load(config, path, names, true, weights)
        });
        let deep_mergers = deep.collect::<error::Result<Vec<_>>>()?;
        Ok(Self {
            dtype,
            patch_proj,
            patch_norm,
            last_norm,
            positions,
            blocks,
            merger: Merger::load(config, "vision_tower.merger", names, false, weights)?,
            deep_mergers,
            config: config.clone(),
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (rows, columns) = input.view.patches;
        let merge = self.config.merge;
        check_blocks(input.view, merge)?;
        let inputs = COLOURS * (self.config.frames * self.config.patch_size * self.config.patch_size) as i32;
        let patches = input.rows(inputs)?.astype(self.dtype)?;
        let mut x = self.patch_proj.forward(&patches)?;
        if let Some(norm) = &self.patch_norm {
            x = norm.forward(&x)?;
        }
        let mut places = in_squares(rows, columns, merge);
        if let Some(table) = &self.positions {
            let order: Vec<u32> = places.iter().map(|(row, column)| row * columns + column).collect();
            let positions = Resampling::LinearAligned
                .apply(table, input.view.patches)?
                .take(&ids_tensor(&order), 0)?;
            x = x.add(&positions.astype(self.dtype)?)?;
        }
        let whole = vec![(1, (rows * columns) as i32)];
        let windowed = |windows: &Windows| Windowed::new(windows, rows / merge, columns / merge, merge);
        let windows = self.config.windows.as_ref().map(windowed);
        if let Some(windows) = &windows {
            x = windows.reorder(&x, merge)?;
            places = windows.places(&places, merge);
        }
        let pairs = angles(&places, self.config.head_dim() / 2, THETA, false);
        let rotation = PatchRotation::new(&pairs, places.len(), 1);
        let mut deep = Vec::new();
        for (layer, block) in (0..).zip(&self.blocks) {
            let groups = match (&windows, &self.config.windows) {
                (Some(windows), Some(config)) if !config.full_layers.contains(&layer) => &windows.groups,
                _ => &whole,
            };
            x = block.forward(&x, Some(&rotation), &PatchMask::Windows(groups))?;
            if let Some(set) = self.config.deepstack.iter().position(|deep| *deep == layer) {
                deep.push((set, self.deep_mergers[set].forward(&x)?));
            }
            pause(&x, hook)?;
        }
        if let Some(norm) = &self.last_norm {
            x = norm.forward(&x)?;
        }
        deep.sort_by_key(|(set, _)| *set);
        let embeddings = self.merger.forward(&x)?;
        Ok(ImageEmbeddings {
            embeddings: match &windows {
                Some(windows) => embeddings.take(&ids_tensor(&windows.inverse()), 0)?,
                None => embeddings,
            },
            deep_layers: (0..deep.len()).collect(),
            deep: deep.into_iter().map(|(_, features)| features).collect(),
        })
    }
}

/// The tokens of a view in the order of windows, those of one size one after another.
struct Windowed {
    /// Token by token, where it stood.
    order: Vec<u32>,
    groups: Vec<Group>,
}

impl Windowed {
    fn new(windows: &Windows, rows: u32, columns: u32, merge: u32) -> Self {
        let side = windows.tokens;
        let starts = (0..rows)
            .step_by(side as usize)
            .flat_map(|row| (0..columns).step_by(side as usize).map(move |column| (row, column)));
        let mut all: Vec<Vec<u32>> = starts
            .map(|(top, left)| {
                let inside = (top..rows.min(top + side))
                    .flat_map(|row| (left..columns.min(left + side)).map(move |column| row * columns + column));
                inside.collect()
            })
            .collect();
        // No window sees another, so their order is free.
        all.sort_by_key(Vec::len);
        let mut groups: Vec<Group> = Vec::new();
        for window in &all {
            let patches = (window.len() as u32 * merge * merge) as i32;
            match groups.last_mut() {
                Some((count, length)) if *length == patches => *count += 1,
                _ => groups.push((1, patches)),
            }
        }
        Self {
            order: all.concat(),
            groups,
        }
    }

    /// `[patches, hidden]` in this order.
    fn reorder(&self, x: &Tensor, merge: u32) -> Result<Tensor> {
        let (patches, hidden) = (x.dim(0), x.dim(1));
        let squares = x.reshape(&[-1, (merge * merge) as i32, hidden])?;
        squares.take(&ids_tensor(&self.order), 0)?.reshape(&[patches, hidden])
    }

    fn places(&self, places: &[(u32, u32)], merge: u32) -> Vec<(u32, u32)> {
        let square = (merge * merge) as usize;
        self.order
            .iter()
            .flat_map(|token| places[*token as usize * square..][..square].iter().copied())
            .collect()
    }

    /// For each token where it stands in this order.
    fn inverse(&self) -> Vec<u32> {
        let mut inverse = vec![0; self.order.len()];
        for (place, token) in self.order.iter().enumerate() {
            inverse[*token as usize] = place as u32;
        }
        inverse
    }
}

fn load_blocks(config: &QwenVisionConfig, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Vec<Block>> {
    let network = match (config.gated, config.positions.is_some()) {
        (true, _) if config.dots.is_some() => ["mlp.fc3", "mlp.fc2"],
        (true, _) => ["mlp.up_proj", "mlp.down_proj"],
        (false, true) => ["mlp.linear_fc1", "mlp.linear_fc2"],
        (false, false) => ["mlp.fc1", "mlp.fc2"],
    };
    let gate = if config.dots.is_some() {
        "mlp.fc1"
    } else {
        "mlp.gate_proj"
    };
    let names = BlockNames {
        rms: config.gated,
        norms: ["norm1", "norm2"],
        qkv: &["attn.qkv"],
        output: "attn.proj",
        gate: config.gated.then_some(gate),
        network,
        ..BlockNames::CLIP
    };
    let shape = TowerShape {
        hidden_size: config.hidden_size,
        layers: config.layers,
        heads: config.heads,
        intermediate_size: config.intermediate_size,
        patch_size: config.patch_size,
        eps: config.dots.map_or(EPS, |dots| dots.eps),
        activation: config.activation,
    };
    let path = |layer: u32| format!("vision_tower.blocks.{layer}");
    let blocks = (0..config.layers).map(|layer| load_block(&path(layer), &names, &shape, dtype, weights));
    blocks.collect()
}
