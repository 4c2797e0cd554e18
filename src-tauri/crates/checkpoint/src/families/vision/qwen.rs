//! Qwen's towers: patches in blocks that become one token, turned by row and column. Qwen2.5-VL looks at windows in
//! most layers; Qwen3-VL and Qwen 3.5 have learned positions, and Qwen3-VL hands features of some layers to the
//! language part. Defaults are those of transformers' config classes.

use super::{check_patch, check_shapes, check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::limits::{check_heads, check_positive, check_quarters};
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::memory::VisionCost;

/// The shapes of one tower.
#[derive(Debug, Clone, PartialEq)]
pub struct QwenVisionConfig {
    /// Width of its stream.
    pub hidden_size: u32,
    /// Width inside of its networks.
    pub intermediate_size: u32,
    /// How many layers.
    pub layers: u32,
    /// Heads of queries, keys and values.
    pub heads: u32,
    /// Width of the language part.
    pub out_hidden_size: u32,
    /// Side of a patch in pixels.
    pub patch_size: u32,
    /// How often a patch's image stands in it.
    pub frames: u32,
    /// Patches on a side of the square that becomes one token.
    pub merge: u32,
    /// The activation of its networks; they are gated if it is `silu`.
    pub activation: EncoderActivation,
    /// True if its norms are by the root mean square, and its networks gated (Qwen2.5-VL).
    pub gated: bool,
    /// True if patches are projected with a bias.
    pub patch_bias: bool,
    /// The parts in which dots.ocr differs.
    pub dots: Option<DotsParts>,
    /// Learned positions beside the rotation.
    pub positions: Option<PositionTable>,
    /// Windows that patches see each other in.
    pub windows: Option<Windows>,
    /// Layers whose states go to the language part besides: set k is added after its layer k.
    pub deepstack: Vec<u32>,
}

/// The parts in which the tower of dots.ocr differs from Qwen2.5-VL's: patches are normed as they come in, and tokens
/// made of them by mean and variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DotsParts {
    /// Added to the mean square in the norms of the tower.
    pub eps: f32,
    /// True if patches are normed after the last layer.
    pub normed_after: bool,
}

/// A square table of positions, which is stretched over each image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositionTable {
    /// Rows and columns.
    pub side: u32,
}

/// Windows that patches see each other in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// Tokens on a side.
    pub tokens: u32,
    /// The layers that see the whole image.
    pub full_layers: Vec<u32>,
}

fn list(fields: Fields<'_>, field: &'static str, default: &[u32]) -> Result<Vec<u32>, Error> {
    let found = fields.numbers(field)?;
    Ok(found.map_or_else(
        || default.to_vec(),
        |numbers| numbers.iter().map(|number| *number as u32).collect(),
    ))
}

impl QwenVisionConfig {
    fn check(self) -> Result<VisionConfig, Error> {
        check_patch(self.patch_size)?;
        check_positive("rms_norm_eps", self.dots.map_or(1.0, |dots| dots.eps))?;
        check_heads("num_heads", self.hidden_size, self.heads)?;
        let head_dim = self.hidden_size / self.heads;
        check_shapes(
            self.layers,
            self.hidden_size,
            self.heads,
            head_dim,
            self.intermediate_size,
        )?;
        check_width("out_hidden_size", self.out_hidden_size.into())?;
        check_quarters("num_heads", head_dim)?;
        if !(1..=16).contains(&self.merge) || !(1..=16).contains(&self.frames) {
            let reason = format!("{} by {} patches become no token", self.merge, self.frames);
            return unusable("spatial_merge_size", reason);
        }
        if self.windows.as_ref().is_some_and(|windows| windows.tokens == 0) {
            return unusable("window_size", "no token lies in it");
        }
        Ok(VisionConfig::Qwen(self))
    }

    /// Width of a head.
    pub fn head_dim(&self) -> u32 {
        self.hidden_size / self.heads
    }
}

/// The fields that all have; defaults are the width of the stream and of the networks, the layers and the side of a
/// patch.
fn parse(
    vision: Fields<'_>,
    [hidden_size, intermediate_size, layers, patch_size]: [u32; 4],
    activation: &str,
) -> Result<QwenVisionConfig, Error> {
    Ok(QwenVisionConfig {
        hidden_size: vision.number("hidden_size")?.unwrap_or(hidden_size),
        intermediate_size: vision.number("intermediate_size")?.unwrap_or(intermediate_size),
        layers: vision.number("depth")?.unwrap_or(layers),
        heads: vision.number("num_heads")?.unwrap_or(16),
        out_hidden_size: vision.number("out_hidden_size")?.unwrap_or(3584),
        // Older configs have the second name.
        patch_size: vision
            .first(&["patch_size", "spatial_patch_size"])?
            .unwrap_or(patch_size),
        frames: vision.number("temporal_patch_size")?.unwrap_or(2),
        merge: vision.number("spatial_merge_size")?.unwrap_or(2),
        activation: EncoderActivation::named(vision.text("hidden_act")?.as_deref().unwrap_or(activation))?,
        gated: false,
        patch_bias: false,
        dots: None,
        positions: None,
        windows: None,
        deepstack: Vec::new(),
    })
}

/// Qwen2-VL, which says the width of the language part where its successors say that of the tower.
pub(crate) fn qwen2(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    let width = vision.number("embed_dim")?.unwrap_or(1280u32);
    let ratio = vision.number("mlp_ratio")?.unwrap_or(4.0f32);
    let mut config = parse(vision, [3584, 0, 32, 14], "quick_gelu")?;
    config.out_hidden_size = config.hidden_size;
    config.hidden_size = width;
    config.intermediate_size = (width as f32 * ratio) as u32;
    config.check()
}

/// Qwen2.5-VL.
pub(crate) fn qwen2_5(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    let mut config = parse(vision, [3584, 3420, 32, 14], "silu")?;
    let window = vision.number("window_size")?.unwrap_or(112u32);
    let tokens = window.checked_div(config.merge);
    config.gated = true;
    config.windows = Some(Windows {
        tokens: tokens.and_then(|side| side.checked_div(config.patch_size)).unwrap_or(0),
        full_layers: list(vision, "fullatt_block_indexes", &[7, 15, 23, 31])?,
    });
    config.check()
}

/// dots.ocr. Defaults are those of the `configuration_dots.py` beside the weights.
pub(crate) fn dots(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    let mut config = parse(vision, [1536, 4224, 42, 14], "silu")?;
    config.out_hidden_size = config.hidden_size;
    config.hidden_size = vision.number("embed_dim")?.unwrap_or(1536);
    config.layers = vision.number("num_hidden_layers")?.unwrap_or(42);
    config.heads = vision.number("num_attention_heads")?.unwrap_or(12);
    config.frames = vision.number("temporal_patch_size")?.unwrap_or(1);
    config.gated = true;
    config.dots = Some(DotsParts {
        eps: vision.number("rms_norm_eps")?.unwrap_or(1e-5),
        normed_after: vision.flag("post_norm")?.unwrap_or(true),
    });
    config.check()
}

/// Qwen3-VL, with experts or without, and Qwen 3.5.
pub(crate) fn qwen3(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let rows = vision.number("num_position_embeddings")?.unwrap_or(2304u32);
    let side = rows.isqrt();
    check_width("num_position_embeddings", rows.into())?;
    if side == 0 || side * side != rows {
        return unusable("num_position_embeddings", format!("{rows} is no square"));
    }
    let deep: &[u32] = match top.text("model_type")?.as_deref() {
        Some("qwen3_vl" | "qwen3_vl_moe") => &[8, 16, 24],
        _ => &[],
    };
    let mut config = parse(vision, [1152, 4304, 27, 16], "gelu_pytorch_tanh")?;
    config.patch_bias = true;
    config.positions = Some(PositionTable { side });
    config.deepstack = list(vision, "deepstack_visual_indexes", deep)?;
    config.check()
}

impl QwenVisionConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let hidden = u64::from(self.hidden_size);
        let square = hidden * u64::from(self.merge).pow(2);
        let mergers = 1 + self.deepstack.len() as u64;
        let patch = 3 * u64::from(self.frames) * u64::from(self.patch_size).pow(2);
        let positions = self.positions.map_or(0, |table| u64::from(table.side).pow(2));
        VisionCost {
            layers: self.layers.into(),
            hidden,
            width: self.intermediate_size.into(),
            projections: if self.gated { 3 } else { 2 },
            heads: self.heads.into(),
            others: hidden * (patch + positions) + mergers * square * (square + u64::from(self.out_hidden_size)),
            patches_of_token: u64::from(self.merge).pow(2),
            ..VisionCost::EMPTY
        }
    }
}
