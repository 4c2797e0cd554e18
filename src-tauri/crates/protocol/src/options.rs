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
/// the default named here ([`Sampling::neutral`]), or that of chats ([`Sampling::chat_defaults`]). Order and meaning
/// are those of mlx-lm (`sample_utils.py`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
#[ts(optional_fields)]
pub struct Sampling {
    /// Softmax temperature; 0 takes the likeliest token. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Keeps the smallest set of tokens with this cumulative probability; 0 and 1 keep all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Keeps tokens at least this likely relative to the likeliest; 0 keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f32>,
    /// Keeps the k likeliest tokens; 0 keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// The probability that XTC removes the likeliest tokens of a step; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xtc_probability: Option<f32>,
    /// XTC removes all but the least likely of the tokens above this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xtc_threshold: Option<f32>,
    /// Divides positive and multiplies negative logits of recent tokens; 1 changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f32>,
    /// Subtracted once from the logit of every recent token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f32>,
    /// Subtracted from the logit of a recent token for each of its occurrences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f32>,
    /// The number of recent tokens that the three penalties consider. Default 20.
    #[serde(skip_serializing_if = "Option::is_none")]
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

    /// Ponder's defaults in chats: words vary from answer to answer, and small models do not loop.
    pub fn chat_defaults() -> Self {
        Self {
            temperature: Some(0.7),
            top_p: Some(0.95),
            repetition_penalty: Some(1.1),
            penalty_context: Some(64),
            ..Self::default()
        }
    }

    /// The defaults of a model in chats: what its makers set, and if that is no temperature, Ponder's
    /// [`Sampling::chat_defaults`] for the rest.
    #[must_use]
    pub fn or_chat_defaults(&self) -> Self {
        match self.temperature {
            Some(_) => self.clone(),
            None => self.or(&Self::chat_defaults()),
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
        for SamplingOption {
            field, bounds, value, ..
        } in &SAMPLING_OPTIONS
        {
            if let (Some(bounds), Some(value)) = (bounds, value(self)) {
                within(field, value, bounds)?;
            }
        }
        Ok(())
    }
}

fn within(field: &str, value: f32, bounds: &RangeInclusive<f32>) -> Result<()> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let (low, high) = (bounds.start(), bounds.end());
    let message = format!("{field} is {value}; it has to be between {low} and {high}");
    Err(refusal(field, message)
        .with("low", low.to_string())
        .with("high", high.to_string()))
}

/// A field of [`Sampling`], as far as other rooms treat all of them alike.
pub struct SamplingOption {
    /// The name of the field.
    pub field: &'static str,
    /// The lowest and the highest value, of those that have them.
    pub bounds: Option<RangeInclusive<f32>>,
    /// True for whole numbers.
    pub whole: bool,
    /// True if a model's `generation_config.json` may set it.
    pub of_makers: bool,
    /// True if windows show it.
    pub shown: bool,
    value: fn(&Sampling) -> Option<f32>,
}

impl SamplingOption {
    const fn new(field: &'static str) -> Self {
        Self {
            field,
            bounds: None,
            whole: false,
            of_makers: false,
            shown: false,
            value: |_| None,
        }
    }

    const fn number(field: &'static str, low: f32, high: f32, value: fn(&Sampling) -> Option<f32>) -> Self {
        Self {
            bounds: Some(low..=high),
            value,
            ..Self::new(field)
        }
    }

    const fn whole(field: &'static str) -> Self {
        Self {
            whole: true,
            ..Self::new(field)
        }
    }

    const fn of_makers(self) -> Self {
        Self {
            of_makers: true,
            ..self
        }
    }

    const fn shown(self) -> Self {
        Self { shown: true, ..self }
    }
}

/// Every field of [`Sampling`], in the order of windows.
pub const SAMPLING_OPTIONS: [SamplingOption; 12] = [
    SamplingOption::number("temperature", 0.0, 100.0, |sampling| sampling.temperature)
        .of_makers()
        .shown(),
    SamplingOption::number("top_p", 0.0, 1.0, |sampling| sampling.top_p)
        .of_makers()
        .shown(),
    SamplingOption::whole("top_k").of_makers().shown(),
    SamplingOption::number("min_p", 0.0, 1.0, |sampling| sampling.min_p)
        .of_makers()
        .shown(),
    SamplingOption::number("xtc_probability", 0.0, 1.0, |sampling| sampling.xtc_probability),
    SamplingOption::number("xtc_threshold", 0.0, 0.5, |sampling| sampling.xtc_threshold),
    SamplingOption::number("repetition_penalty", 0.0, 100.0, |sampling| sampling.repetition_penalty)
        .of_makers()
        .shown(),
    SamplingOption::number("presence_penalty", -100.0, 100.0, |sampling| sampling.presence_penalty).shown(),
    SamplingOption::number("frequency_penalty", -100.0, 100.0, |sampling| {
        sampling.frequency_penalty
    })
    .shown(),
    SamplingOption::whole("penalty_context"),
    SamplingOption::new("logit_bias"),
    SamplingOption::whole("seed").shown(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_a_temperature_of_its_own_has_ponders_defaults_in_chats() {
        let makers = Sampling {
            top_p: Some(0.8),
            ..Sampling::default()
        };
        let defaults = makers.or_chat_defaults();
        assert_eq!(
            (defaults.temperature, defaults.top_p, defaults.repetition_penalty),
            (Some(0.7), Some(0.8), Some(1.1))
        );
        let greedy = Sampling::greedy();
        assert_eq!(
            greedy.or_chat_defaults(),
            greedy,
            "makers who chose greedy sampling keep it"
        );
        assert_eq!(Sampling::chat_defaults().check(), Ok(()));
    }
}
