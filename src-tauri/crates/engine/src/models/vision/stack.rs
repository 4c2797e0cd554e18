//! Loading stacks of plain layers: the same parts under each family's names.

use std::ops::Range;

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::TowerShape;
use checkpoint::View;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::{Attention, HeadNorms, PatchMask, Projections};
use super::block::{Block, Mlp, Norm};
use super::linear::ClippedLinear;
use super::rope::PatchRotation;
use super::{pause, LayerHook};
use crate::error::{self, Error};
use crate::layers::{Embedding, LayerNorm, Linear, Pointwise, RmsNorm};
use crate::weights::Weights;

/// The epsilon of norms for which transformers leaves it to torch.
pub const TORCH_EPS: f32 = 1e-5;

/// The names of a layer's tensors, and the parts that they make up.
#[derive(Clone, Copy)]
pub struct BlockNames {
    /// True if norms are by the root mean square.
    pub rms: bool,
    /// The norm before attention and the one before the network.
    pub norms: [&'static str; 2],
    /// The projections of queries, keys and values: one name or three.
    pub qkv: &'static [&'static str],
    /// The output projection (`o_proj`).
    pub output: &'static str,
    /// Norms of queries and keys, and whether they are over all heads together.
    pub qk_norms: Option<([&'static str; 2], bool)>,
    /// Factors `[hidden]` of what attention and the network add.
    pub scales: Option<[&'static str; 2]>,
    /// Single numbers that, squeezed by tanh, are factors of what attention and the network add.
    pub gates: Option<[&'static str; 2]>,
    /// The projection that the activation gates, if there is one.
    pub gate: Option<&'static str>,
    /// The first projection and the last one.
    pub network: [&'static str; 2],
}

impl BlockNames {
    /// As CLIP names them, from which others differ in a few.
    pub const CLIP: Self = Self {
        rms: false,
        norms: ["layer_norm1", "layer_norm2"],
        qkv: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        output: "self_attn.out_proj",
        qk_norms: None,
        scales: None,
        gates: None,
        gate: None,
        network: ["mlp.fc1", "mlp.fc2"],
    };
}

/// Layers, first to last.
#[derive(Parameters)]
pub struct Stack(Vec<Block>);

impl Stack {
    /// Loads `path.0` and so on.
    pub fn load(
        path: &str,
        names: &BlockNames,
        shape: &TowerShape,
        dtype: Dtype,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let blocks =
            (0..shape.layers).map(|layer| load_block(&format!("{path}.{layer}"), names, shape, dtype, weights));
        Ok(Self(blocks.collect::<error::Result<_>>()?))
    }

    /// Takes the patches of one view `[patches, hidden]` through all layers.
    pub fn forward(
        &self,
        x: Tensor,
        rotation: Option<&PatchRotation>,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<Tensor> {
        let whole = [(1, x.dim(0))];
        self.forward_masked(x, rotation, &PatchMask::Windows(&whole), |_, _| Ok(()), hook)
    }

    /// The same through some of the layers.
    pub fn forward_part(&self, layers: Range<usize>, x: Tensor, hook: &mut LayerHook<'_>) -> error::Result<Tensor> {
        let whole = [(1, x.dim(0))];
        let mut x = x;
        for block in &self.0[layers] {
            x = block.forward(&x, None, &PatchMask::Windows(&whole))?;
            pause(&x, hook)?;
        }
        Ok(x)
    }

    /// The same through all layers with this mask; `on_the_way` is given what comes into each layer.
    pub fn forward_masked(
        &self,
        x: Tensor,
        rotation: Option<&PatchRotation>,
        mask: &PatchMask<'_>,
        mut on_the_way: impl FnMut(usize, &Tensor) -> error::Result<()>,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<Tensor> {
        let mut x = x;
        for (layer, block) in self.0.iter().enumerate() {
            on_the_way(layer, &x)?;
            x = block.forward(&x, rotation, mask)?;
            pause(&x, hook)?;
        }
        Ok(x)
    }
}

/// Loads one layer at `path`.
pub fn load_block(
    path: &str,
    names: &BlockNames,
    shape: &TowerShape,
    dtype: Dtype,
    weights: &mut Weights<'_>,
) -> error::Result<Block> {
    let at = |name: &str| format!("{path}.{name}");
    let (hidden, width) = (shape.hidden_size as i32, shape.intermediate_size as i32);
    let (head_dim, sizes) = (shape.head_dim() as i32, (hidden, width, hidden));
    let activation = (shape.activation, dtype);
    let norm = |name: &str, weights: &mut Weights<'_>| load_norm(names.rms, &at(name), hidden, shape.eps, weights);
    let scale = |half: usize, weights: &mut Weights<'_>| match (names.scales, names.gates) {
        (Some(scales), _) => weights
            .take(&at(scales[half]), &[hidden])
            .map(|factors| Some(Norm::Scale(factors))),
        (None, Some(gates)) => Ok(Some(Norm::Scale(weights.take(&at(gates[half]), &[1])?.tanh()?))),
        (None, None) => Ok(None),
    };
    let outputs = 3 * hidden / names.qkv.len() as i32;
    let parts: Vec<_> = names.qkv.iter().map(|name| (at(name), outputs)).collect();
    let qk_norm = |name: &str, whole: bool, weights: &mut Weights<'_>| {
        RmsNorm::load(weights, &at(name), if whole { hidden } else { head_dim }, shape.eps)
    };
    let norms = match names.qk_norms {
        None => HeadNorms::None,
        Some(([queries, keys], whole)) => {
            let kind = if whole {
                HeadNorms::Whole
            } else {
                HeadNorms::QueriesAndKeys
            };
            kind([qk_norm(queries, whole, weights)?, qk_norm(keys, whole, weights)?])
        }
    };
    let block = Block {
        before_attention: norm(names.norms[0], weights)?,
        attention: Attention {
            heads: shape.heads as i32,
            width: head_dim,
            scale: (head_dim as f32).powf(-0.5),
            projections: Projections::Joined(Linear::load_joined(weights, &parts, hidden)?),
            norms,
            output: ClippedLinear::plain(weights, &at(names.output), hidden, hidden)?,
        },
        after_attention: scale(0, weights)?,
        before_mlp: norm(names.norms[1], weights)?,
        mlp: load_mlp(path, names.gate, names.network, sizes, activation, weights)?,
        after_mlp: scale(1, weights)?,
    };
    weights.materialize(block.tensors())?;
    Ok(block)
}

/// Loads a norm.
pub fn load_norm(rms: bool, path: &str, width: i32, eps: f32, weights: &mut Weights<'_>) -> error::Result<Norm> {
    Ok(match rms {
        true => Norm::Rms(RmsNorm::load(weights, path, width, eps)?),
        false => Norm::Layer(LayerNorm::load(weights, path, width, eps)?),
    })
}

/// Loads a network below `path`: inputs, width inside and outputs.
pub fn load_mlp(
    path: &str,
    gate: Option<&str>,
    [up, down]: [&str; 2],
    (inputs, width, outputs): (i32, i32, i32),
    (activation, dtype): (EncoderActivation, Dtype),
    weights: &mut Weights<'_>,
) -> error::Result<Mlp> {
    let mut linear = |name: &str, inputs: i32, outputs: i32| {
        ClippedLinear::plain(weights, &format!("{path}.{name}"), inputs, outputs)
    };
    Ok(Mlp {
        gate: gate.map(|gate| linear(gate, inputs, width)).transpose()?,
        up: linear(up, inputs, width)?,
        down: linear(down, width, outputs)?,
        activation: Pointwise::new(activation, dtype)?,
    })
}

/// The first of these paths below which a tensor of this name lies; the first of all if none does, so that loading
/// names it.
pub fn first_with(weights: &Weights<'_>, paths: &[&str], name: &str) -> String {
    let found = paths.iter().find(|path| weights.has(&format!("{path}.{name}")));
    found
        .or(paths.first())
        .map_or_else(String::new, |path| (*path).to_owned())
}

/// Paths of projectors of two projections, and the names of those: of conversions first, then of original files of the
/// first LLaVA and of models after it, of Janus and of
/// DeepSeek-VL2.
const NETWORKS: [(&str, [&str; 2]); 5] = [
    ("multi_modal_projector", ["linear_1", "linear_2"]),
    ("mm_projector", ["linear_1", "linear_2"]),
    ("mm_projector", ["0", "2"]),
    ("aligner.layers", ["0", "2"]),
    ("projector.layers", ["0", "2"]),
];

/// The path of a projector of two projections in this file, and the names of those.
pub fn network_names(weights: &Weights<'_>) -> (&'static str, [&'static str; 2]) {
    let there = |(path, names): &&(&str, [&str; 2])| weights.has(&format!("{path}.{}.weight", names[0]));
    *NETWORKS.iter().find(there).unwrap_or(&NETWORKS[0])
}

/// Loads learned positions `path` as numbers `[side, side, width]`.
pub fn load_table(path: &str, side: u32, width: i32, weights: &mut Weights<'_>) -> error::Result<Tensor> {
    load_table_after(0, path, side, width, weights)
}

/// The same of a table that has `before` rows of something else before them.
pub fn load_table_after(
    before: i32,
    path: &str,
    side: u32,
    width: i32,
    weights: &mut Weights<'_>,
) -> error::Result<Tensor> {
    let side = side as i32;
    let rows = Embedding::load(weights, path, before + side * side, width)?.into_numbers()?;
    let table = rows
        .slice(0, before, before + side * side)?
        .reshape(&[side, side, width])?;
    weights.materialize([&table])?;
    Ok(table)
}

/// Refuses a view whose patches are not complete blocks of `merge` × `merge`.
pub fn check_blocks(view: &View, merge: u32) -> error::Result<()> {
    let (rows, columns) = view.patches;
    if rows.is_multiple_of(merge) && columns.is_multiple_of(merge) && rows * columns > 0 {
        return Ok(());
    }
    Err(Error::BadRequest(format!(
        "this model's tower takes no grid of {rows} by {columns} patches"
    )))
}

/// Joins the `merge` × `merge` patches of each block of a grid `[rows · columns, width]`, row after row of it:
/// `[blocks, merge · merge · width]`.
pub fn join_blocks(x: &Tensor, (rows, columns): (u32, u32), merge: u32) -> Result<Tensor> {
    let (width, merge) = (x.dim(-1), merge as i32);
    let (down, across) = (rows as i32 / merge, columns as i32 / merge);
    x.reshape(&[down, merge, across, merge * width])?
        .swapaxes(1, 2)?
        .reshape(&[down * across, merge * merge * width])
}

/// Row and column of each patch of a grid, row after row.
pub fn row_by_row((rows, columns): (u32, u32)) -> Vec<(u32, u32)> {
    (0..rows)
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .collect()
}
