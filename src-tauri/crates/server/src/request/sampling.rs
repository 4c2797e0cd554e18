//! Settings of an answer that surfaces call by the same names: sampling, stop texts, token limits, effort.

use std::collections::BTreeMap;

use protocol::limits::MOST_STOPS;
use protocol::{Sampling, Thinking};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::error_body::Refusal;
use crate::request::fields::Fields;
use crate::request::values::{Integer, Number, Positive, TextOrList, Unchecked, UNBOUNDED};

type Result<T> = std::result::Result<T, Refusal>;

/// More biases than any client sends; OpenAI takes as many.
const MOST_BIASES: usize = 1024;

/// Sampling by the names of OpenAI's API and those that local servers added.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SamplingFields {
    temperature: Option<Number<0, UNBOUNDED>>,
    top_p: Option<Number<0, 100>>,
    min_p: Option<Number<0, 100>>,
    /// Some clients send -1 for all tokens, as for vLLM.
    top_k: Option<Integer<-1, { u32::MAX as i64 }>>,
    xtc_probability: Option<Number<0, 100>>,
    xtc_threshold: Option<Number<0, 50>>,
    repetition_penalty: Option<Number<1, UNBOUNDED>>,
    presence_penalty: Option<Number<-200, 200>>,
    frequency_penalty: Option<Number<-200, 200>>,
    logit_bias: Option<BTreeMap<String, Option<Number<-10_000, 10_000>>>>,
    seed: Option<Integer<{ i64::MIN }, { i64::MAX }>>,
}

impl SamplingFields {
    /// The sampling that they ask for.
    ///
    /// # Errors
    /// If a bias is not of a token.
    pub(crate) fn sampling(self, fields: &Fields) -> Result<Sampling> {
        Ok(Sampling {
            temperature: self.temperature.map(|number| number.0),
            top_p: self.top_p.map(|number| number.0),
            min_p: self.min_p.map(|number| number.0),
            top_k: self.top_k.map(|k| u32::try_from(k.0).unwrap_or(0)),
            xtc_probability: self.xtc_probability.map(|number| number.0),
            xtc_threshold: self.xtc_threshold.map(|number| number.0),
            repetition_penalty: self.repetition_penalty.map(|number| number.0),
            presence_penalty: self.presence_penalty.map(|number| number.0),
            frequency_penalty: self.frequency_penalty.map(|number| number.0),
            penalty_context: None,
            logit_bias: logit_bias(fields, self.logit_bias.unwrap_or_default())?,
            seed: self.seed.map(|seed| seed.0.cast_unsigned()),
        })
    }
}

/// The sampling of one of several answers to one prompt: a seed gives each its own.
pub(crate) fn nth(sampling: &Sampling, index: u32) -> Sampling {
    Sampling {
        seed: sampling.seed.map(|seed| seed.wrapping_add(u64::from(index))),
        ..sampling.clone()
    }
}

fn logit_bias<const MIN: i64, const MAX: i64>(
    fields: &Fields,
    biases: BTreeMap<String, Option<Number<MIN, MAX>>>,
) -> Result<BTreeMap<u32, f32>> {
    let set = biases.into_iter().filter_map(|(token, bias)| Some((token, bias?.0)));
    let read = |(token, bias): (String, f32)| match token.parse() {
        Ok(token) => Ok((token, bias)),
        Err(_) => fields.refuse(&format!("logit_bias.{token}"), "this is not the id of a token"),
    };
    let biases: BTreeMap<u32, f32> = set.map(read).collect::<Result<_>>()?;
    if biases.len() > MOST_BIASES {
        return fields.refuse("logit_bias", format!("there are more than {MOST_BIASES} tokens"));
    }
    Ok(biases)
}

/// Stop texts of the field `name`: one, a list, or none. Empty ones would end every answer at once and are ignored.
pub(crate) fn stop_texts(fields: &Fields, name: &str, stop: Option<TextOrList<String>>) -> Result<Vec<String>> {
    let texts: Vec<String> = match stop {
        None => Vec::new(),
        Some(TextOrList::Text(text)) => vec![text],
        Some(TextOrList::List(_)) => {
            let list = fields
                .value(name)
                .and_then(|list| list.as_array())
                .into_iter()
                .flatten();
            let text = |(index, value): (usize, &serde_json::Value)| match value.as_str() {
                Some(text) => Ok(text.to_owned()),
                None => fields.refuse(&format!("{name}[{index}]"), "this is not a text"),
            };
            list.enumerate().map(text).collect::<Result<_>>()?
        }
    };
    if texts.len() > MOST_STOPS {
        return fields.refuse(name, format!("there are more than {MOST_STOPS} texts"));
    }
    Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
}

/// The most tokens of an answer, by the first of these fields that is set. More than the context holds is as many as it holds.
pub(crate) fn max_tokens(fields: &Fields, limits: &[(&str, &Option<Unchecked<Positive>>)]) -> Result<Option<u32>> {
    match limits.iter().find_map(|(name, limit)| Some((name, limit.as_ref()?))) {
        Some((name, limit)) => Ok(Some(u32::try_from(limit.check(fields, name)?.0).unwrap_or(u32::MAX))),
        None => Ok(None),
    }
}

/// An effort of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl From<Effort> for Thinking {
    fn from(effort: Effort) -> Self {
        match effort {
            Effort::None => Self::Off,
            Effort::Minimal | Effort::Low => Self::Low,
            Effort::Medium => Self::Medium,
            Effort::High | Effort::Xhigh | Effort::Max => Self::High,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    fn sampling(body: &Value) -> Result<Sampling> {
        let fields = Fields::of(body, "")?;
        fields.read::<SamplingFields>()?.sampling(&fields)
    }

    #[derive(Deserialize)]
    struct Limits {
        stop: Option<TextOrList<String>>,
        max_completion_tokens: Option<Unchecked<Positive>>,
        max_tokens: Option<Unchecked<Positive>>,
        effort: Option<Effort>,
    }

    fn limits(body: &Value) -> Result<(Fields<'_>, Limits)> {
        let fields = Fields::of(body, "")?;
        let limits = fields.read()?;
        Ok((fields, limits))
    }

    fn stops(body: Value) -> Result<Vec<String>> {
        let (fields, limits) = limits(&body)?;
        stop_texts(&fields, "stop", limits.stop)
    }

    fn most(body: Value) -> Result<Option<u32>> {
        let (fields, limits) = limits(&body)?;
        let names = [
            ("max_completion_tokens", &limits.max_completion_tokens),
            ("max_tokens", &limits.max_tokens),
        ];
        max_tokens(&fields, &names)
    }

    fn effort(body: Value) -> Result<Option<Thinking>> {
        Ok(limits(&body)?.1.effort.map(Thinking::from))
    }

    #[test]
    fn settings_are_read_and_null_leaves_the_models_own() {
        let body = json!({"temperature": 0.5, "top_p": null, "top_k": -1, "seed": -1, "logit_bias": {"7": -100}, "min_p": 0.1,
            "presence_penalty": 1, "frequency_penalty": -1, "repetition_penalty": 1.1, "xtc_probability": 0.5, "xtc_threshold": 0.1});
        let expected = Sampling {
            temperature: Some(0.5),
            top_k: Some(0),
            min_p: Some(0.1),
            seed: Some(u64::MAX),
            logit_bias: [(7, -100.0)].into(),
            presence_penalty: Some(1.0),
            frequency_penalty: Some(-1.0),
            repetition_penalty: Some(1.1),
            xtc_probability: Some(0.5),
            xtc_threshold: Some(0.1),
            ..Sampling::default()
        };
        assert_eq!(sampling(&body), Ok(expected.clone()));
        assert_eq!(nth(&expected, 2).seed, Some(1));
        for (wrong, param) in [
            (json!({"temperature": -1}), "temperature"),
            (json!({"top_p": 1.5}), "top_p"),
            (json!({"seed": "a"}), "seed"),
            (json!({"logit_bias": {"a": 1}}), "logit_bias.a"),
            (json!({"logit_bias": {"1": 101}}), "logit_bias.1"),
        ] {
            assert_eq!(sampling(&wrong).unwrap_err().param.as_deref(), Some(param));
        }
    }

    #[test]
    fn stops_limits_and_efforts() {
        assert_eq!(
            stops(json!({"stop": ["a", "", "b"]})),
            Ok(vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(stops(json!({"stop": "a"})), Ok(vec!["a".to_owned()]));
        assert_eq!(
            stops(json!({"stop": [1]})).unwrap_err().param.as_deref(),
            Some("stop[0]")
        );
        let body = json!({"max_completion_tokens": null, "max_tokens": 10_000_000_000_i64});
        assert_eq!(most(body), Ok(Some(u32::MAX)));
        let body = json!({"max_completion_tokens": 100, "max_tokens": -1});
        assert_eq!(most(body), Ok(Some(100)));
        assert!(most(json!({"max_tokens": 0})).is_err());
        for (word, thinking) in [
            ("none", Thinking::Off),
            ("minimal", Thinking::Low),
            ("medium", Thinking::Medium),
            ("xhigh", Thinking::High),
        ] {
            assert_eq!(effort(json!({ "effort": word })), Ok(Some(thinking)));
        }
        assert!(effort(json!({"effort": "much"})).is_err());
    }
}
