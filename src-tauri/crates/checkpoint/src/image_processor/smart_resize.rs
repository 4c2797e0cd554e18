//! The sizing rule that Qwen's processors call `smart_resize`: both sides become multiples of a factor, the area stays
//! within limits.

use protocol::ImageDetail;
use serde::Serialize;

use super::{ImagePlan, View};
use crate::error::{Error, Result};

/// The longer side may be this many times the shorter one.
const MAX_RATIO: f64 = 200.0;

/// `smart_resize` of Qwen, and of the families that took it over with changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SmartResize {
    /// The side of a patch in pixels.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
    /// How often the area counts: towers of GLM that take frames count each.
    pub frames: u32,
    /// The fewest pixels.
    pub min_pixels: u32,
    /// The most pixels.
    pub max_pixels: u32,
    /// The first step for images smaller than a token, or for all.
    pub enlarging: Enlarging,
    /// The features of the grid in the prompt.
    pub features: Features,
}

/// The step before the area is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Enlarging {
    /// Nothing.
    None,
    /// Both sides are reckoned larger until the shorter one has a token (GLM).
    Together,
    /// One side after the other (PaddleOCR-VL).
    InTurn,
    /// The image is resized until its sides lie between these (Falcon-OCR).
    Between {
        /// The shortest side.
        shortest: u32,
        /// The longest side.
        longest: u32,
    },
}

/// The features in the prompt for a grid of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Features {
    /// One for each.
    Grid,
    /// One more at the end of each row, and two around all (HunyuanOCR).
    Rows,
}

impl Features {
    fn count(self, (rows, columns): (u32, u32)) -> u32 {
        match self {
            Self::Grid => rows * columns,
            Self::Rows => rows * (columns + 1) + 2,
        }
    }
}

impl SmartResize {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        let factor = self.patch * self.merge;
        let token = u64::from(factor) * u64::from(factor) * u64::from(self.frames);
        let limit = detail.most_tokens();
        let mut most = u64::from(self.max_pixels).min(u64::from(limit) * token);
        let first = match self.enlarging {
            Enlarging::Between { shortest, longest } => between(width, height, shortest, longest),
            _ => (width, height),
        };
        loop {
            let size = self.resize(first, most)?;
            let tokens = (size.1 / factor, size.0 / factor);
            let features = self.features.count(tokens);
            // Features around the grid count too, and a side is never less than a token.
            if features > limit && most > token {
                most = (most * u64::from(limit) / u64::from(features)).min(most - 1).max(token);
                continue;
            }
            return Ok(ImagePlan {
                resized: size,
                steps: if first == (width, height) {
                    vec![size]
                } else {
                    vec![first, size]
                },
                views: vec![View {
                    width: size.0,
                    height: size.1,
                    patches: (size.1 / self.patch, size.0 / self.patch),
                    tokens,
                    features,
                }],
                tiles: None,
                whole: false,
                joined: None,
            });
        }
    }

    /// The size that an image of this size has without a limit of tokens.
    pub(super) fn size(&self, width: u32, height: u32) -> Result<(u32, u32)> {
        self.resize((width, height), u64::from(self.max_pixels))
    }

    /// Width and height, multiples of a token's, within a limit of the area.
    fn resize(&self, (width, height): (u32, u32), most: u64) -> Result<(u32, u32)> {
        let factor = f64::from(self.patch * self.merge);
        let (mut w, mut h) = (f64::from(width), f64::from(height));
        match self.enlarging {
            Enlarging::Together if w < factor || h < factor => {
                let scale = (factor / h).max(factor / w);
                (w, h) = ((w * scale).trunc(), (h * scale).trunc());
            }
            Enlarging::InTurn => {
                if h < factor {
                    (w, h) = ((w * factor / h).round_ties_even(), factor);
                }
                if w < factor {
                    (w, h) = (factor, (h * factor / w).round_ties_even());
                }
            }
            _ => {}
        }
        let bounded = matches!(self.enlarging, Enlarging::Between { .. });
        if !bounded && w.max(h) / w.min(h) > MAX_RATIO {
            return Err(Error::TooNarrow { width, height });
        }
        let (most, least, frames) = (
            most as f64,
            (u64::from(self.min_pixels).min(most)) as f64,
            f64::from(self.frames),
        );
        let mut across = (w / factor).round_ties_even() * factor;
        let mut down = (h / factor).round_ties_even() * factor;
        if frames * across * down > most {
            let beta = (frames * h * w / most).sqrt();
            across = ((w / beta / factor).floor() * factor).max(factor);
            down = ((h / beta / factor).floor() * factor).max(factor);
        } else if frames * across * down < least {
            let beta = (least / (frames * h * w)).sqrt();
            across = (w * beta / factor).ceil() * factor;
            down = (h * beta / factor).ceil() * factor;
        }
        Ok((across.max(factor) as u32, down.max(factor) as u32))
    }
}

/// Falcon-OCR's first step. Sides are brought up to the shortest and down to the longest, in this order.
fn between(width: u32, height: u32, shortest: u32, longest: u32) -> (u32, u32) {
    let within = shortest..=longest;
    if within.contains(&width) && within.contains(&height) {
        return (width, height);
    }
    let ratio = f64::from(width) / f64::from(height);
    let side = f64::from(if width < shortest || height < shortest {
        shortest
    } else {
        longest
    });
    let longest = f64::from(longest);
    let (mut w, mut h) = match width < height {
        true => (side, (side / ratio).trunc()),
        false => ((side * ratio).trunc(), side),
    };
    if w > longest {
        (w, h) = (longest, (longest / ratio).trunc());
    }
    if h > longest {
        (w, h) = ((longest * ratio).trunc(), longest);
    }
    (w.max(1.0) as u32, h.max(1.0) as u32)
}
