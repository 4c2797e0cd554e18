//! Vision towers as configs describe them. Each kind is a file here that reads `vision_config` and what the wrapper says about
//! joining it to the language part; the engine has a file of the same name that builds it.

pub mod glm;
pub mod internvit;
pub mod pixtral;
pub mod siglip;

use super::decoder::{check_layers, check_width};
use super::encoder::EncoderActivation;
use super::fields::Fields;
use crate::Error;

/// More pixels than the side of any patch or tile has.
const LARGEST_SIDE: u32 = 1 << 14;

/// A stack of layers that see whole pictures: norm, attention, norm, network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TowerShape {
    /// Width of the stream.
    pub hidden: u32,
    /// How many layers.
    pub layers: u32,
    /// Attention heads, which share the stream's width.
    pub heads: u32,
    /// Width inside of the networks.
    pub width: u32,
    /// Pixels of a patch's side.
    pub patch: u32,
    /// Added to the variance by the norms.
    pub eps: f32,
    /// The activation of the networks.
    pub activation: EncoderActivation,
}

impl TowerShape {
    /// Refuses shapes that no tower has, so that nothing overflows or is allocated for them.
    fn check(self) -> Result<Self, Error> {
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        check_layers(self.layers)?;
        check_width("hidden_size", 3 * u64::from(self.hidden))?;
        check_width("intermediate_size", 2 * u64::from(self.width))?;
        if self.heads == 0 || !self.hidden.is_multiple_of(self.heads) {
            return unusable(
                "num_attention_heads",
                format!("{} heads cannot share {} numbers", self.heads, self.hidden),
            );
        }
        if self.patch == 0 || self.patch > LARGEST_SIDE {
            return unusable("patch_size", format!("{} is not from 1 to {LARGEST_SIDE}", self.patch));
        }
        Ok(self)
    }
}

/// How many patches lie along a side of `pixels`.
fn grid(field: &'static str, pixels: u32, patch: u32) -> Result<u32, Error> {
    if patch == 0 || pixels < patch || pixels > LARGEST_SIDE {
        return Err(Error::InvalidField {
            field,
            reason: format!("{pixels} pixels hold no row of patches of {patch}"),
        });
    }
    Ok(pixels / patch)
}

/// A size that may be written as one number or as two equal ones.
fn square(fields: Fields<'_>, field: &'static str) -> Result<Option<u32>, Error> {
    match fields.numbers(field)?.as_deref() {
        None => Ok(None),
        Some([first, rest @ ..]) if rest.iter().all(|other| other == first) && *first >= 1.0 && first.fract() == 0.0 => {
            Ok(Some(*first as u32))
        }
        Some(_) => Err(Error::InvalidField {
            field,
            reason: "it is not one size for both sides".into(),
        }),
    }
}

/// The activation by its name in transformers, or a default.
fn activation(fields: Fields<'_>, field: &'static str, default: EncoderActivation) -> Result<EncoderActivation, Error> {
    match fields.text(field)? {
        Some(name) => EncoderActivation::named(&name),
        None => Ok(default),
    }
}

/// Of so many layers those up to the one whose states are wanted: `vision_feature_layer`, which counts the input as the first and
/// from the end if it is negative.
fn layers_used(top: Fields<'_>, layers: u32) -> Result<u32, Error> {
    const FIELD: &str = "vision_feature_layer";
    let wanted = match top.numbers(FIELD)?.as_deref() {
        None => -1.0,
        Some([one]) => *one,
        Some(_) => return Err(Error::Unsupported("features of several layers of a vision tower".into())),
    };
    let used = if wanted < 0.0 { wanted + 1.0 + layers as f32 } else { wanted };
    match used.fract() == 0.0 && used >= 1.0 && used <= layers as f32 {
        true => Ok(used as u32),
        false => Err(Error::InvalidField {
            field: FIELD,
            reason: format!("there is no layer {wanted} of {layers}"),
        }),
    }
}
