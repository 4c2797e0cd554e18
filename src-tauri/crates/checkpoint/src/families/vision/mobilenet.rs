//! MobileNet v5, the tower of Gemma 3n: convolutions and attention over a grid. Of its network a config says nothing
//! but its name; how many blocks of which kind and width there are is told by the weights.

use super::{check_width, VisionConfig};
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::memory::VisionCost;

/// The numbers of the encoder and its projector that are known before the weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MobileNetConfig {
    /// Width of its features.
    pub hidden_size: u32,
    /// Places along a side of the grid of features.
    pub side: u32,
    /// Marks with embeddings in the tower's width: how many there are, and the id of the first.
    pub marks: u32,
    /// The id of the first such mark.
    pub first_mark: u32,
    /// The id of the mark that closes an image.
    pub closing: u32,
    /// Added to the mean square in the norms before and after the projection.
    pub eps: f32,
}

pub(crate) fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    const TOKENS: &str = "vision_soft_tokens_per_image";
    let name = vision.text("architecture")?;
    if name.as_deref().is_some_and(|name| name != "mobilenetv5_300m_enc") {
        return Err(Error::Unsupported(format!(
            "a tower of the kind `{}`",
            name.unwrap_or_default()
        )));
    }
    let tokens = top.number(TOKENS)?.unwrap_or(256u32);
    let side = tokens.isqrt();
    if !(1..=64).contains(&side) || side * side != tokens {
        return unusable(TOKENS, format!("{tokens} is no square"));
    }
    let config = MobileNetConfig {
        hidden_size: vision.number("hidden_size")?.unwrap_or(2048),
        side,
        marks: vision.number("vocab_size")?.unwrap_or(128),
        first_mark: vision.number("vocab_offset")?.unwrap_or(262_144),
        closing: top.number("eoi_token_id")?.unwrap_or(262_144),
        eps: vision.number("rms_norm_eps")?.unwrap_or(1e-6),
    };
    check_width("hidden_size", config.hidden_size.into())?;
    check_width("vocab_size", config.marks.into())?;
    Ok(VisionConfig::MobileNet(config))
}

impl MobileNetConfig {
    /// Which of the marks closes an image, if it is one of them.
    pub fn closing_mark(&self) -> Option<u32> {
        self.closing
            .checked_sub(self.first_mark)
            .filter(|mark| *mark < self.marks)
    }
}

impl MobileNetConfig {
    /// A fixed network, which takes most when its second stage widens what the first one made of 768 by 768 pixels.
    pub(super) fn cost(&self) -> VisionCost {
        const PARAMETERS: u64 = 300_000_000;
        const PLACES: u64 = 192 * 192;
        VisionCost {
            hidden: 128,
            width: 6 * 128,
            projections: 2,
            others: PARAMETERS + u64::from(self.hidden_size) * u64::from(self.marks),
            tokens: u64::from(self.side).pow(2),
            together: Some(PLACES),
            ..VisionCost::EMPTY
        }
    }
}
