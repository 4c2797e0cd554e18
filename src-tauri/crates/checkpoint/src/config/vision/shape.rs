//! The shapes that plain vision encoders have in common, and their parser.

use super::{check_patch, check_shapes};
use crate::config::activation::EncoderActivation;
use crate::config::fields::Fields;
use crate::error::Error;
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

    /// Refuses shapes that no tower has, so that nothing overflows or is allocated for them.
    pub(super) fn check(self) -> Result<Self, Error> {
        if self.heads == 0 || !self.hidden_size.is_multiple_of(self.heads) {
            return Err(Error::InvalidField {
                field: "num_attention_heads",
                reason: format!("{} numbers cannot be shared by {} heads", self.hidden_size, self.heads),
            });
        }
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
        match self.head_dim().is_multiple_of(4) {
            true => Ok(self),
            false => Err(Error::InvalidField {
                field: "num_attention_heads",
                reason: format!("heads of {} numbers have no four quarters", self.head_dim()),
            }),
        }
    }
}

/// How many patches lie along a side of `pixels`.
pub(super) fn patches_along(field: &'static str, pixels: u32, patch: u32) -> Result<u32, Error> {
    const LARGEST: u32 = 1 << 13;
    if patch == 0 || pixels < patch || pixels > LARGEST {
        return Err(Error::InvalidField {
            field,
            reason: format!("{pixels} pixels hold no row of patches of {patch}"),
        });
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
        Some(_) => Err(Error::InvalidField {
            field,
            reason: "it is not one size for both sides".into(),
        }),
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
    match written.unwrap_or(2) {
        merge @ 1..=16 => Ok(merge),
        other => Err(Error::InvalidField {
            field,
            reason: format!("{other} is not from 1 to 16"),
        }),
    }
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
        false => Err(Error::InvalidField {
            field: FIELD,
            reason: format!("there is no layer {wanted} of {layers}"),
        }),
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
