//! Fields that chat and generate share: options, format, thinking, log probabilities.

use protocol::{Priority, Request, Thinking};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

use crate::answer::logprobs::MOST;
use crate::http::error_body::Refusal;
use crate::request::fields::Fields;
use crate::request::response_format::refuse_stops;
use crate::request::sampling::{stop_texts, Effort};
use crate::request::values::{Integer, Number, TextOrList, UNBOUNDED};

type Result<T> = std::result::Result<T, Refusal>;

/// The fields of how an answer is made.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AnswerFields {
    #[serde(default)]
    #[schemars(schema_with = "format_schema")]
    format: Option<Value>,
    think: Option<Think>,
    options: Option<Options>,
    stream: Option<bool>,
    logprobs: Option<bool>,
    top_logprobs: Option<Integer<0, MOST>>,
}

fn format_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"enum": ["", "json"]}, {"type": "object"}, {"type": "null"}]})
}

/// The Thinking switch, or an effort.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "this is neither true, false, nor an effort such as low, medium or high"
)]
enum Think {
    Switch(bool),
    Effort(Effort),
}

impl From<Think> for Thinking {
    fn from(think: Think) -> Self {
        match think {
            Think::Switch(true) => Self::On,
            Think::Switch(false) => Self::Off,
            Think::Effort(effort) => effort.into(),
        }
    }
}

/// Ollama's names of sampling options. Others, such as `num_ctx` and `num_gpu`, say how Ollama loads a model and change
/// no answer here.
#[derive(Debug, Deserialize, JsonSchema)]
struct Options {
    temperature: Option<Number<0, UNBOUNDED>>,
    top_k: Option<Integer<-1, { u32::MAX as i64 }>>,
    top_p: Option<Number<0, 100>>,
    min_p: Option<Number<0, 100>>,
    repeat_penalty: Option<Number<1, UNBOUNDED>>,
    /// -1 is the whole context.
    repeat_last_n: Option<Integer<-1, { u32::MAX as i64 }>>,
    presence_penalty: Option<Number<-200, 200>>,
    frequency_penalty: Option<Number<-200, 200>>,
    /// A negative one is none.
    seed: Option<Integer<{ i64::MIN }, { i64::MAX }>>,
    stop: Option<TextOrList<String>>,
    /// -1 and -2 are as many as the context holds.
    num_predict: Option<Integer<-2, { i64::MAX }>>,
}

impl Options {
    fn apply(self, at: &Fields, request: &mut Request) -> Result<()> {
        let sampling = &mut request.sampling;
        sampling.temperature = self.temperature.map(|number| number.0);
        sampling.top_k = self.top_k.map(|k| u32::try_from(k.0).unwrap_or(0));
        sampling.top_p = self.top_p.map(|number| number.0);
        sampling.min_p = self.min_p.map(|number| number.0);
        sampling.repetition_penalty = self.repeat_penalty.map(|number| number.0);
        sampling.penalty_context = self.repeat_last_n.map(|last| u32::try_from(last.0).unwrap_or(u32::MAX));
        sampling.presence_penalty = self.presence_penalty.map(|number| number.0);
        sampling.frequency_penalty = self.frequency_penalty.map(|number| number.0);
        sampling.seed = self.seed.and_then(|seed| u64::try_from(seed.0).ok());
        request.stop = stop_texts(at, "stop", self.stop)?;
        let most = self.num_predict.filter(|most| most.0 > 0);
        request.max_tokens = most.map(|most| u32::try_from(most.0).unwrap_or(u32::MAX));
        Ok(())
    }
}

impl AnswerFields {
    /// True if the answer streams, as it does unless the client says no.
    pub(crate) fn streams(&self) -> bool {
        self.stream.unwrap_or(true)
    }

    /// Writes the fields into a request.
    ///
    /// # Errors
    /// If one cannot be honored; the refusal names it.
    pub(crate) fn apply(self, fields: &Fields, request: &mut Request) -> Result<()> {
        request.priority = Priority::Api;
        request.thinking = self.think.map(Thinking::from);
        if let (Some(options), Some(value)) = (self.options, fields.value("options")) {
            options.apply(&Fields::of(value, "options")?, request)?;
        }
        request.schema = match self.format {
            None => None,
            Some(Value::String(word)) if word.is_empty() => None,
            Some(Value::String(word)) if word == "json" => Some(constraint::any_object()),
            Some(schema @ Value::Object(_)) => match constraint::check(&schema) {
                Ok(()) => Some(schema),
                Err(error) => return fields.refuse("format", error),
            },
            Some(_) => return fields.refuse("format", "this is neither \"json\" nor a JSON schema"),
        };
        refuse_stops(fields, "options.stop", request)?;
        request.top_logprobs = match (self.logprobs.unwrap_or(false), self.top_logprobs) {
            (true, top) => Some(top.map_or(0, |top| top.0 as u8)),
            (false, None | Some(Integer(0))) => None,
            (false, Some(_)) => return fields.refuse("top_logprobs", "this needs `logprobs` to be true"),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answer::reply::tests::pebble;

    fn asked(body: Value) -> Result<Request> {
        let fields = Fields::of(&body, "")?;
        let mut request = Request::new(pebble(), Vec::new());
        fields.read::<AnswerFields>()?.apply(&fields, &mut request)?;
        Ok(request)
    }

    #[test]
    fn options_have_ollamas_names_and_meanings() {
        let request = asked(
            json!({"options": {"temperature": 0, "top_k": 40, "top_p": 0.9, "min_p": 0.1, "repeat_penalty": 1.1,
            "repeat_last_n": 64, "seed": 7, "num_predict": 5, "stop": ["END"], "num_ctx": 8192, "num_gpu": 99, "mirostat": 1}}),
        )
        .unwrap();
        let sampling = &request.sampling;
        assert_eq!(
            (sampling.temperature, sampling.top_k, sampling.seed),
            (Some(0.0), Some(40), Some(7))
        );
        assert_eq!((sampling.top_p, sampling.min_p), (Some(0.9), Some(0.1)));
        assert_eq!(
            (sampling.repetition_penalty, sampling.penalty_context),
            (Some(1.1), Some(64))
        );
        assert_eq!(
            (request.max_tokens, request.stop, request.context),
            (Some(5), vec!["END".to_owned()], None)
        );
        let request =
            asked(json!({"options": {"seed": -1, "num_predict": -1, "repeat_last_n": -1, "stop": "END"}})).unwrap();
        assert_eq!((request.sampling.seed, request.max_tokens), (None, None));
        assert_eq!(
            (request.sampling.penalty_context, request.stop.len()),
            (Some(u32::MAX), 1)
        );
    }

    #[test]
    fn thinking_is_a_switch_or_an_effort() {
        for (think, expected) in [
            (json!(true), Some(Thinking::On)),
            (json!(false), Some(Thinking::Off)),
            (json!("low"), Some(Thinking::Low)),
            (json!("high"), Some(Thinking::High)),
            (json!(null), None),
        ] {
            assert_eq!(asked(json!({"think": think})).unwrap().thinking, expected);
        }
    }

    #[test]
    fn a_format_is_any_object_or_a_schema() {
        let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
        for (format, expected) in [
            (json!("json"), Some(constraint::any_object())),
            (schema.clone(), Some(schema)),
            (json!(""), None),
            (json!(null), None),
        ] {
            assert_eq!(asked(json!({"format": format})).unwrap().schema, expected);
        }
    }

    #[test]
    fn what_cannot_be_honored_is_named() {
        for (body, place) in [
            (json!({"format": "xml"}), "format"),
            (json!({"format": {"not": {}}}), "format"),
            (json!({"think": "deeply"}), "think"),
            (json!({"options": 5}), "options"),
            (json!({"options": {"temperature": -1}}), "options.temperature"),
            (json!({"options": {"stop": ["a", 5]}}), "options.stop[1]"),
            (json!({"format": "json", "options": {"stop": ["a"]}}), "options.stop"),
            (json!({"top_logprobs": 2}), "top_logprobs"),
        ] {
            assert_eq!(asked(body).unwrap_err().param.as_deref(), Some(place));
        }
        assert_eq!(
            asked(json!({"logprobs": true, "top_logprobs": 2}))
                .unwrap()
                .top_logprobs,
            Some(2)
        );
    }
}
