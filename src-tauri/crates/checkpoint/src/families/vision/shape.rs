//! The shapes that plain vision encoders have in common, and their parser.

use super::{check_patch, check_shapes};
use crate::config::activation::EncoderActivation;
use crate::config::limits::{check_heads, check_quarters, check_range};
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::memory::VisionCost;

/// A stack of layers that see whole images: norm, attention, norm, network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TowerShape {
    /// Width of the stream.
    pub hidden_size: u32,
    /// How many layers.
    pub layers: u32,
    /// Heads of queries, keys and values, which share the stream's width.
    pub heads: u32,
    /// Width inside of the networks.
    pub intermediate_size: u32,
    /// Side of a patch in pixels.
    pub patch_size: u32,
    /// Added to the variance in every norm.
    pub eps: f32,
    /// The activation of the networks.
    pub activation: EncoderActivation,
}

impl TowerShape {
    /// Width of a head.
    pub fn head_dim(&self) -> u32 {
        self.hidden_size / self.heads
    }

    /// Reads a shape by transformers' usual names. Defaults are the hidden size, the layers, the heads, the width of
    /// the networks and the side of a patch, and the activation.
    pub(super) fn parse(
        vision: Fields<'_>,
        [hidden_size, layers, heads, intermediate_size, patch_size]: [u32; 5],
        eps: f32,
        default: EncoderActivation,
    ) -> Result<Self, Error> {
        let shape = Self {
            hidden_size: vision.number("hidden_size")?.unwrap_or(hidden_size),
            layers: vision.number("num_hidden_layers")?.unwrap_or(layers),
            heads: vision.number("num_attention_heads")?.unwrap_or(heads),
            intermediate_size: vision.number("intermediate_size")?.unwrap_or(intermediate_size),
            patch_size: square(vision, "patch_size")?.unwrap_or(patch_size),
            eps,
            activation: activation(vision, "hidden_act", default)?,
        };
        shape.check()
    }

    /// Patches along a side of the learned positions, for images of `default` pixels unless the config says more.
    pub(super) fn side(&self, vision: Fields<'_>, default: u32) -> Result<u32, Error> {
        let pixels = square(vision, "image_size")?.unwrap_or(default);
        patches_along("image_size", pixels, self.patch_size)
    }

    /// Refuses shapes that no tower has, so that nothing overflows or is allocated for them.
    pub(super) fn check(self) -> Result<Self, Error> {
        check_heads("num_attention_heads", self.hidden_size, self.heads)?;
        check_patch(self.patch_size)?;
        check_shapes(
            self.layers,
            self.hidden_size,
            self.heads,
            self.head_dim(),
            self.intermediate_size,
        )?;
        Ok(self)
    }

    /// Refuses heads that rows and columns of patches cannot share to turn in halves.
    pub(super) fn check_turning(self) -> Result<Self, Error> {
        check_quarters("num_attention_heads", self.head_dim())?;
        Ok(self)
    }
}

/// How many patches lie along a side of `pixels`.
pub(super) fn patches_along(field: &'static str, pixels: u32, patch: u32) -> Result<u32, Error> {
    const LARGEST: u32 = 1 << 13;
    if patch == 0 || pixels < patch || pixels > LARGEST {
        return unusable(field, format!("{pixels} pixels hold no row of patches of {patch}"));
    }
    Ok(pixels / patch)
}

/// A size that is written as one number or as two equal ones.
pub(super) fn square(fields: Fields<'_>, field: &'static str) -> Result<Option<u32>, Error> {
    match fields.numbers(field)?.as_deref() {
        None => Ok(None),
        Some([first, rest @ ..])
            if rest.iter().all(|other| other == first) && *first >= 1.0 && first.fract() == 0.0 =>
        {
            Ok(Some(*first as u32))
        }
        Some(_) => unusable(field, "it is not one size for both sides"),
    }
}

/// The activation by its name in transformers, or a default.
pub(super) fn activation(
    fields: Fields<'_>,
    field: &'static str,
    default: EncoderActivation,
) -> Result<EncoderActivation, Error> {
    match fields.text(field)? {
        Some(name) => EncoderActivation::named(&name),
        None => Ok(default),
    }
}

/// Patches along a side of a block that becomes one token.
pub(super) fn merge(field: &'static str, written: Option<u32>) -> Result<u32, Error> {
    check_range(field, written.unwrap_or(2), 1..=16)
}

/// The number of layers up to the one whose states are used: `vision_feature_layer`, which counts the input as the
/// first, or from the end if it is negative.
pub(super) fn layers_used(top: Fields<'_>, layers: u32) -> Result<u32, Error> {
    const FIELD: &str = "vision_feature_layer";
    let wanted = match top.numbers(FIELD)?.as_deref() {
        None => -1.0,
        Some([one]) => *one,
        Some(_) => {
            return Err(Error::Unsupported(
                "features of several layers of a vision tower".into(),
            ))
        }
    };
    let used = if wanted < 0.0 {
        wanted + 1.0 + layers as f32
    } else {
        wanted
    };
    match used.fract() == 0.0 && used >= 1.0 && used <= layers as f32 {
        true => Ok(used as u32),
        false => unusable(FIELD, format!("there is no layer {wanted} of {layers}")),
    }
}

impl TowerShape {
    /// The cost of `layers` with learned positions for `side` patches along a side, and patches of `frames` frames.
    pub(super) fn cost(&self, projections: u64, side: u32, frames: u32) -> VisionCost {
        let hidden = u64::from(self.hidden_size);
        let patch = 3 * u64::from(frames) * u64::from(self.patch_size).pow(2);
        VisionCost {
            layers: self.layers.into(),
            hidden,
            width: self.intermediate_size.into(),
            projections,
            heads: self.heads.into(),
            others: hidden * (patch + u64::from(side).pow(2)),
            ..VisionCost::EMPTY
        }
    }
}
