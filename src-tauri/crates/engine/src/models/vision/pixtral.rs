//! Pixtral's tower, and what joins it to language parts.

use checkpoint::config::vision::pixtral::PixtralConfig;

use super::attention::{AttentionNames, PatchNorms};
use super::block::{Between, BlockNames, NormKind, Stack, TowerMlp};
use super::first_that_has;
use super::patches::{load_patch_linear, patch_rows, PatchShape};
use super::rope::{in_rows, PatchRope, Turning};
use crate::error::Result;
use crate::layers::{Linear, RmsNorm};
use crate::parameters::Parameters;
use crate::tensor::Tensor;
use crate::weights::Weights;

/// Where conversions and originals keep the tower.
const PLACES: [&str; 3] = ["vision_tower.vision_model", "vision_tower", "vision_encoder"];

/// Where they keep the projector.
const PROJECTORS: [&str; 2] = ["multi_modal_projector", "vision_projection"];

const BLOCK: BlockNames = BlockNames {
    norm: NormKind::Rms,
    norms: ["attention_norm", "ffn_norm"],
    attention: AttentionNames {
        qkv: &["attention.q_proj", "attention.k_proj", "attention.v_proj"],
        out: "attention.o_proj",
        norms: (PatchNorms::None, ["", ""]),
    },
    up: &["feed_forward.gate_proj", "feed_forward.up_proj"],
    down: "feed_forward.down_proj",
    scales: None,
};

/// A tower with its projector.
pub struct Pixtral {
    config: PixtralConfig,
    patch_conv: Linear,
    ln_pre: RmsNorm,
    stack: Stack,
    merger: Option<Merger>,
    projector: TowerMlp,
}

struct Merger {
    merge: i32,
    norm: RmsNorm,
    merging_layer: Linear,
}

impl Pixtral {
    /// Builds the tower; every tensor of it is computed when this returns.
    pub fn load(config: &PixtralConfig, weights: &mut Weights<'_>) -> Result<Self> {
        let shape = &config.shape;
        let (hidden, outputs) = (shape.hidden as i32, config.outputs as i32);
        let path = first_that_has(weights, &PLACES, "ln_pre.weight");
        let projector = first_that_has(weights, &PROJECTORS, "linear_2.weight");
        let dtype = weights.dtype(&format!("{path}.ln_pre.weight"));
        let merger = match config.merger {
            Some(merger) => {
                let merge = merger.merge as i32;
                Some(Merger {
                    merge,
                    norm: RmsNorm::load(weights, &format!("{projector}.norm"), hidden, merger.eps)?,
                    merging_layer: Linear::load(
                        weights,
                        &format!("{projector}.patch_merger.merging_layer"),
                        merge * merge * hidden,
                        hidden,
                    )?,
                })
            }
            None => None,
        };
        Ok(Self {
            patch_conv: load_patch_linear(weights, &format!("{path}.patch_conv"), PatchShape::still(shape.patch), hidden)?,
            ln_pre: RmsNorm::load(weights, &format!("{path}.ln_pre"), hidden, shape.eps)?,
            stack: Stack::load(weights, &format!("{path}.transformer.layers"), &BLOCK, shape, dtype)?,
            merger,
            projector: TowerMlp::load(
                weights,
                &projector,
                (&["linear_1"], "linear_2"),
                (hidden, outputs, outputs),
                config.activation,
                dtype,
            )?,
            config: *config,
        })
    }

    /// The features `[tokens, width]` of a picture `[3, height, width]`.
    pub fn encode(&self, pixels: &Tensor, grid: (u32, u32), between: &mut Between<'_>) -> Result<Tensor> {
        let shape = &self.config.shape;
        let rows = self.patch_conv.forward(&patch_rows(pixels, shape.patch as i32)?)?;
        let width = (shape.hidden / shape.heads) as i32;
        let rope = PatchRope::new(Turning::Alternating(self.config.theta), width, &in_rows(grid));
        let states = self.stack.forward(self.ln_pre.forward(&rows)?, Some(&rope), between)?;
        match &self.merger {
            Some(merger) => self.projector.forward(&merger.forward(&states, (grid.0 as i32, grid.1 as i32))?),
            None => self.projector.forward(&states),
        }
    }
}

impl Merger {
    /// One row for each block of patches, whose numbers lie channel by channel.
    fn forward(&self, states: &Tensor, (rows, columns): (i32, i32)) -> Result<Tensor> {
        let (merge, hidden) = (self.merge, states.dim(-1));
        let (down, over) = (rows / merge, columns / merge);
        let blocks = self
            .norm
            .forward(states)?
            .reshape(&[down, merge, over, merge, hidden])?
            .transpose(&[0, 2, 4, 1, 3])?;
        self.merging_layer.forward(&blocks.reshape(&[down * over, hidden * merge * merge])?)
    }
}

impl Parameters for Merger {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            merge: _,
            norm,
            merging_layer,
        } = self;
        norm.visit(visitor);
        merging_layer.visit(visitor);
    }
}

impl Parameters for Pixtral {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            config: _,
            patch_conv,
            ln_pre,
            stack,
            merger,
            projector,
        } = self;
        patch_conv.visit(visitor);
        ln_pre.visit(visitor);
        stack.visit(visitor);
        merger.visit(visitor);
        projector.visit(visitor);
    }
}
