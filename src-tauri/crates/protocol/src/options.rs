//! The options of an answer that chats, requests and models share: thinking, sampling, KV cache quantization.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::limits::refusal;
use crate::{Error, ErrorCode, Result};

/// The Thinking switch of a chat. Effort levels count as on for models that only have a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// No reasoning before the answer.
    Off,
    /// Reasoning with the model's own effort.
    On,
    /// Little effort.
    Low,
    /// Some effort.
    Medium,
    /// All the effort it has.
    High,
}

/// The sampling options. A field that is `None` follows the model's `generation_config.json`, and without a value there
/// the default named here ([`Sampling::neutral`]). Order and meaning are those of mlx-lm (`sample_utils.py`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// Softmax temperature; 0 takes the likeliest token. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub temperature: Option<f32>,
    /// Keeps the smallest set of tokens with this cumulative probability; 0 and 1 keep all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub top_p: Option<f32>,
    /// Keeps tokens at least this likely relative to the likeliest; 0 keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub min_p: Option<f32>,
    /// Keeps the k likeliest tokens; 0 keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub top_k: Option<u32>,
    /// The probability that XTC removes the likeliest tokens of a step; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub xtc_probability: Option<f32>,
    /// XTC removes all but the least likely of the tokens above this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub xtc_threshold: Option<f32>,
    /// Divides positive and multiplies negative logits of recent tokens; 1 changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub repetition_penalty: Option<f32>,
    /// Subtracted once from the logit of every recent token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub presence_penalty: Option<f32>,
    /// Subtracted from the logit of a recent token for each of its occurrences.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub frequency_penalty: Option<f32>,
    /// The number of recent tokens that the three penalties consider. Default 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub penalty_context: Option<u32>,
    /// Added to the logits of token ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(type = "Record<string, number>", optional)]
    pub logit_bias: BTreeMap<u32, f32>,
    /// Makes sampling reproducible. Without it, every answer differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub seed: Option<u64>,
}

impl Sampling {
    /// Greedy sampling.
    pub fn greedy() -> Self {
        Self {
            temperature: Some(0.0),
            ..Self::default()
        }
    }

    /// The defaults if neither the user nor the model's makers set anything: greedy sampling.
    pub fn neutral() -> Self {
        Self {
            temperature: Some(0.0),
            top_p: Some(0.0),
            min_p: Some(0.0),
            top_k: Some(0),
            xtc_probability: Some(0.0),
            xtc_threshold: Some(0.1),
            repetition_penalty: Some(1.0),
            presence_penalty: Some(0.0),
            frequency_penalty: Some(0.0),
            penalty_context: Some(20),
            ..Self::default()
        }
    }

    /// These values, with those of `other` for the unset ones. Biases and the seed are not taken over.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            min_p: self.min_p.or(other.min_p),
            top_k: self.top_k.or(other.top_k),
            xtc_probability: self.xtc_probability.or(other.xtc_probability),
            xtc_threshold: self.xtc_threshold.or(other.xtc_threshold),
            repetition_penalty: self.repetition_penalty.or(other.repetition_penalty),
            presence_penalty: self.presence_penalty.or(other.presence_penalty),
            frequency_penalty: self.frequency_penalty.or(other.frequency_penalty),
            penalty_context: self.penalty_context.or(other.penalty_context),
            logit_bias: self.logit_bias.clone(),
            seed: self.seed,
        }
    }

    /// Refuses invalid numbers.
    ///
    /// # Errors
    /// `BadRequest`, which names the field.
    pub fn check(&self) -> Result<()> {
        SAMPLING_BOUNDS
            .into_iter()
            .try_for_each(|SamplingBound { field, range, value }| match value(self) {
                Some(value) => within(field, value, range),
                None => Ok(()),
            })
    }
}

fn within(field: &str, value: f32, range: RangeInclusive<f32>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    let message = format!("{field} is {value}; it has to be between {low} and {high}");
    Err(refusal(field, message)
        .with("low", low.to_string())
        .with("high", high.to_string()))
}

/// The bounds of a number of [`Sampling`].
pub struct SamplingBound {
    /// The name of the field.
    pub field: &'static str,
    /// The lowest and the highest value.
    pub range: RangeInclusive<f32>,
    value: fn(&Sampling) -> Option<f32>,
}

const fn bound(field: &'static str, low: f32, high: f32, value: fn(&Sampling) -> Option<f32>) -> SamplingBound {
    SamplingBound {
        field,
        range: low..=high,
        value,
    }
}

/// The bounds of the numbers of [`Sampling`].
pub const SAMPLING_BOUNDS: [SamplingBound; 8] = [
    bound("temperature", 0.0, 100.0, |sampling| sampling.temperature),
    bound("top_p", 0.0, 1.0, |sampling| sampling.top_p),
    bound("min_p", 0.0, 1.0, |sampling| sampling.min_p),
    bound("xtc_probability", 0.0, 1.0, |sampling| sampling.xtc_probability),
    bound("xtc_threshold", 0.0, 0.5, |sampling| sampling.xtc_threshold),
    bound("repetition_penalty", 0.0, 100.0, |sampling| sampling.repetition_penalty),
    bound("presence_penalty", -100.0, 100.0, |sampling| sampling.presence_penalty),
    bound("frequency_penalty", -100.0, 100.0, |sampling| {
        sampling.frequency_penalty
    }),
];

/// Bits of a key or value of full attention in the cache, if fewer than in the model's own type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum KvBits {
    /// A quarter of 16 bits; long contexts lose a little.
    Four,
    /// Half of 16 bits; hardly distinguishable from full precision.
    Eight,
}

impl TryFrom<u8> for KvBits {
    type Error = Error;

    fn try_from(bits: u8) -> Result<Self> {
        match bits {
            4 => Ok(Self::Four),
            8 => Ok(Self::Eight),
            other => Err(Error::new(
                ErrorCode::BadRequest,
                format!("keys and values are kept in 4 or 8 bits, not in {other}"),
            )),
        }
    }
}

impl From<KvBits> for u8 {
    fn from(bits: KvBits) -> Self {
        match bits {
            KvBits::Four => 4,
            KvBits::Eight => 8,
        }
    }
}
