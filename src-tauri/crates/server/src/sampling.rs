//! Settings of an answer that surfaces call by the same names: sampling, stop texts, token limits, effort.

use std::collections::BTreeMap;

use protocol::limits::MOST_STOPS;
use protocol::{Sampling, Thinking};
use serde_json::{json, Value};

use crate::fields::Fields;
use crate::refusal::Refusal;

type Result<T> = std::result::Result<T, Refusal>;

/// More biases than any client sends; OpenAI takes as many.
const MOST_BIASES: usize = 1024;

/// How tokens are chosen, by the names of OpenAI's API and those that local servers added.
pub(crate) fn sampling(fields: &Fields) -> Result<Sampling> {
    // Some clients say -1 for "all tokens", as vLLM does.
    let top_k = fields.integer("top_k", -1..=i64::from(u32::MAX))?;
    Ok(Sampling {
        temperature: fields.number("temperature", 0.0..=f64::MAX)?,
        top_p: fields.number("top_p", 0.0..=1.0)?,
        min_p: fields.number("min_p", 0.0..=1.0)?,
        top_k: top_k.map(|k| u32::try_from(k).unwrap_or(0)),
        xtc_probability: fields.number("xtc_probability", 0.0..=1.0)?,
        xtc_threshold: fields.number("xtc_threshold", 0.0..=0.5)?,
        repetition_penalty: fields.number("repetition_penalty", 0.01..=f64::MAX)?,
        presence_penalty: fields.number("presence_penalty", -2.0..=2.0)?,
        frequency_penalty: fields.number("frequency_penalty", -2.0..=2.0)?,
        penalty_context: None,
        logit_bias: logit_bias(fields)?,
        seed: fields.integer("seed", i64::MIN..=i64::MAX)?.map(i64::cast_unsigned),
    })
}

/// The sampling of one of several answers to one prompt: a seed gives each its own.
pub(crate) fn nth(sampling: &Sampling, index: u32) -> Sampling {
    Sampling {
        seed: sampling.seed.map(|seed| seed.wrapping_add(u64::from(index))),
        ..sampling.clone()
    }
}

fn logit_bias(fields: &Fields) -> Result<BTreeMap<u32, f32>> {
    let Some(bias) = fields.object("logit_bias")? else {
        return Ok(BTreeMap::new());
    };
    if bias.names().count() > MOST_BIASES {
        return fields.refuse("logit_bias", format!("there are more than {MOST_BIASES} tokens"));
    }
    let read = |name: &str| match (name.parse(), bias.number(name, -100.0..=100.0)?) {
        (Ok(token), Some(bias)) => Ok((token, bias)),
        _ => bias.refuse(name, "this is not the id of a token"),
    };
    bias.names().map(read).collect()
}

/// Texts that end an answer: one, a list, or nothing. Empty ones would end it before it begins and mean nothing.
pub(crate) fn stop_texts(fields: &Fields, name: &str) -> Result<Vec<String>> {
    let texts: Vec<String> = match fields.text_or_list(name, || json!({"type": "string"})) {
        None => Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => {
            let text = |(index, value): (usize, &Value)| match value.as_str() {
                Some(text) => Ok(text.to_owned()),
                None => fields.refuse(&format!("{name}[{index}]"), "this is not a text"),
            };
            list.iter().enumerate().map(text).collect::<Result<_>>()?
        }
        Some(_) => return fields.refuse(name, "this is neither a text nor a list of texts"),
    };
    if texts.len() > MOST_STOPS {
        return fields.refuse(name, format!("there are more than {MOST_STOPS} texts"));
    }
    Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
}

/// At most this many tokens, by the first of these names that is set. More than the context holds is as many as it holds.
pub(crate) fn max_tokens(fields: &Fields, names: &[&str]) -> Result<Option<u32>> {
    for name in names {
        if let Some(most) = fields.integer(name, 1..=i64::MAX)? {
            return Ok(Some(u32::try_from(most).unwrap_or(u32::MAX)));
        }
    }
    Ok(None)
}

/// An effort of reasoning, by its word.
pub(crate) fn effort(fields: &Fields, name: &str) -> Result<Option<Thinking>> {
    const EFFORTS: [(&str, Thinking); 7] = [
        ("none", Thinking::Off),
        ("minimal", Thinking::Low),
        ("low", Thinking::Low),
        ("medium", Thinking::Medium),
        ("high", Thinking::High),
        ("xhigh", Thinking::High),
        ("max", Thinking::High),
    ];
    fields.word(name, &EFFORTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &Value) -> Fields<'_> {
        Fields::of(body, "").unwrap()
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
        assert_eq!(sampling(&of(&body)), Ok(expected.clone()));
        assert_eq!(nth(&expected, 2).seed, Some(1));
        for (wrong, param) in [
            (json!({"temperature": -1}), "temperature"),
            (json!({"top_p": 1.5}), "top_p"),
            (json!({"seed": "a"}), "seed"),
            (json!({"logit_bias": {"a": 1}}), "logit_bias.a"),
            (json!({"logit_bias": {"1": 101}}), "logit_bias.1"),
        ] {
            assert_eq!(sampling(&of(&wrong)).unwrap_err().param.as_deref(), Some(param));
        }
    }

    #[test]
    fn stops_limits_and_efforts() {
        assert_eq!(
            stop_texts(&of(&json!({"stop": ["a", "", "b"]})), "stop"),
            Ok(vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(stop_texts(&of(&json!({"stop": "a"})), "stop"), Ok(vec!["a".to_owned()]));
        assert_eq!(
            stop_texts(&of(&json!({"stop": [1]})), "stop").unwrap_err().param.as_deref(),
            Some("stop[0]")
        );
        let body = json!({"max_completion_tokens": null, "max_tokens": 10_000_000_000_i64});
        assert_eq!(max_tokens(&of(&body), &["max_completion_tokens", "max_tokens"]), Ok(Some(u32::MAX)));
        let body = json!({"max_completion_tokens": 100, "max_tokens": -1});
        assert_eq!(max_tokens(&of(&body), &["max_completion_tokens", "max_tokens"]), Ok(Some(100)));
        assert!(max_tokens(&of(&json!({"max_tokens": 0})), &["max_tokens"]).is_err());
        for (word, thinking) in [
            ("none", Thinking::Off),
            ("minimal", Thinking::Low),
            ("medium", Thinking::Medium),
            ("xhigh", Thinking::High),
        ] {
            assert_eq!(effort(&of(&json!({ "effort": word })), "effort"), Ok(Some(thinking)));
        }
        assert!(effort(&of(&json!({"effort": "much"})), "effort").is_err());
    }
}
