//! The limits of a request's numbers and texts, for all of its sources: the window, the command line, the server, the
//! engine.

use std::ops::RangeInclusive;

use crate::{Error, ErrorCode, Result, Sampling};

/// The maximum number of stop texts.
pub const MOST_STOPS: usize = 64;

/// The maximum length of a stop text, in characters.
pub const LONGEST_STOP: usize = 1000;

/// The smallest size to which a context can be limited, in tokens.
pub const LEAST_CONTEXT: u32 = 512;

impl Sampling {
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
        let numbers = [
            ("temperature", self.temperature, 0.0..=100.0),
            ("top_p", self.top_p, 0.0..=1.0),
            ("min_p", self.min_p, 0.0..=1.0),
            ("xtc_probability", self.xtc_probability, 0.0..=1.0),
            ("xtc_threshold", self.xtc_threshold, 0.0..=0.5),
            ("repetition_penalty", self.repetition_penalty, 0.0..=100.0),
            ("presence_penalty", self.presence_penalty, -100.0..=100.0),
            ("frequency_penalty", self.frequency_penalty, -100.0..=100.0),
        ];
        numbers
            .into_iter()
            .try_for_each(|(field, value, range)| value.map_or(Ok(()), |value| within(field, value, range)))
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

/// Refuses an answer of no tokens.
///
/// # Errors
/// `BadRequest`.
pub fn check_max_tokens(most: Option<u32>) -> Result<()> {
    match most {
        Some(0) => Err(refusal(
            "max_tokens",
            "an answer of at most 0 tokens was asked for; ask for 1 or more",
        )
        .with("low", 1u32)),
        _ => Ok(()),
    }
}

/// Refuses a context that is too small for any prompt.
///
/// # Errors
/// `BadRequest`.
pub fn check_context(tokens: Option<u32>) -> Result<()> {
    match tokens {
        Some(tokens) if tokens < LEAST_CONTEXT => {
            let message = format!("a context of {tokens} tokens was asked for; ask for {LEAST_CONTEXT} or more");
            Err(refusal("context", message).with("low", LEAST_CONTEXT))
        }
        _ => Ok(()),
    }
}

/// Refuses empty and overlong stop texts, and too many of them.
///
/// # Errors
/// `BadRequest`.
pub fn check_stop(texts: &[String]) -> Result<()> {
    if texts.len() > MOST_STOPS {
        let message = format!("there are more than {MOST_STOPS} stop texts");
        return Err(refusal("stop", message).with("most", MOST_STOPS));
    }
    if texts.iter().any(String::is_empty) {
        return Err(refusal(
            "stop",
            "a stop text is empty, which would end every answer before it begins",
        ));
    }
    if texts.iter().any(|text| text.chars().count() > LONGEST_STOP) {
        let message = format!("a stop text is longer than {LONGEST_STOP} characters");
        return Err(refusal("stop", message).with("longest", LONGEST_STOP));
    }
    Ok(())
}

/// The error for an invalid setting.
#[must_use]
pub fn refusal(field: &str, message: impl Into<String>) -> Error {
    Error::new(ErrorCode::BadRequest, message).with("field", field)
}
