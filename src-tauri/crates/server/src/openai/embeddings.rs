//! `POST /v1/embeddings`: the request, and the response body.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use protocol::{EmbeddingInput, EmbeddingRequest, Embeddings, Error, ModelSource, Priority};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{json, Value};

use crate::http::error_body::{number, Refusal};
use crate::request::fields::{Body as _, Fields};
use crate::request::values::{text_or_ids, token_ids, Integer};

type Result<T> = std::result::Result<T, Refusal>;

/// The most inputs of a request, as in OpenAI's API.
const MOST_INPUTS: usize = 2048;

/// The encoding of vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    #[default]
    Float,
    // Of 32 bit floats, the least byte first, as the official SDKs ask by default.
    Base64,
}

/// The body of a request.
pub(crate) type Body = (EmbeddingFields,);

/// Its fields.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EmbeddingFields {
    #[schemars(schema_with = "text_or_ids", required)]
    input: Option<Value>,
    encoding_format: Option<Encoding>,
    dimensions: Option<Integer<1, { u32::MAX as i64 }>>,
}

/// A translated request.
#[derive(Debug)]
pub(crate) struct EmbeddingsCall {
    pub(crate) request: EmbeddingRequest,
    pub(crate) encoding: Encoding,
    /// True if the inputs are a list, so that each has an index.
    list: bool,
}

/// Translates a request for this model.
///
/// # Errors
/// If a field makes no sense or cannot be honored; the refusal names it.
pub(crate) fn ask(fields: &Fields, model: &ModelSource) -> Result<EmbeddingsCall> {
    let (body,) = Body::read(fields)?;
    let (inputs, list) = inputs(fields, &fields.require("input", body.input)?)?;
    if inputs.len() > MOST_INPUTS {
        let reason = format!("there are {} inputs, and a request takes {MOST_INPUTS}", inputs.len());
        return fields.refuse("input", reason);
    }
    Ok(EmbeddingsCall {
        request: EmbeddingRequest {
            model: model.clone(),
            inputs,
            dimensions: body.dimensions.map(|dimensions| dimensions.0 as u32),
            priority: Priority::Api,
            keep_alive: None,
        },
        encoding: body.encoding_format.unwrap_or_default(),
        list,
    })
}

/// A text, ids, or a list of either; and whether it is a list.
fn inputs(fields: &Fields, input: &Value) -> Result<(Vec<EmbeddingInput>, bool)> {
    if let Some(one) = one(input, "input")? {
        return Ok((vec![one], false));
    }
    let Some(list) = input.as_array() else {
        return fields.refuse("input", "this is neither a text, nor token ids, nor a list of either");
    };
    if list.is_empty() {
        return fields.refuse("input", "this list is empty, and at least one is needed");
    }
    let input = |(index, value): (usize, &Value)| {
        let place = format!("input[{index}]");
        one(value, &place)?.ok_or_else(|| Refusal::field(place, "this is neither a text nor a list of token ids"))
    };
    Ok((list.iter().enumerate().map(input).collect::<Result<_>>()?, true))
}

/// A text, or a list of ids, which may be an empty one only inside of a list.
fn one(value: &Value, place: &str) -> Result<Option<EmbeddingInput>> {
    Ok(match value {
        Value::String(text) if text.is_empty() => {
            return Err(Refusal::field(place, "there is nothing in it to embed"));
        }
        Value::String(text) => Some(EmbeddingInput::Text(text.clone())),
        Value::Array(ids) if !ids.is_empty() => token_ids(ids).map(EmbeddingInput::Tokens),
        _ => None,
    })
}

impl EmbeddingsCall {
    /// The error for an engine error, which names an input by its index: the path in the request.
    pub(crate) fn refusal(&self, error: Error) -> Refusal {
        let number = |name: &str| number(&error, name);
        let place = match (number("input"), number("dimensions"), number("tokens")) {
            (Some(index), ..) if self.list => Some(format!("input[{index}]")),
            (Some(_), ..) | (None, None, Some(_)) => Some("input".to_owned()),
            (None, Some(_), _) => Some("dimensions".to_owned()),
            (None, None, None) => None,
        };
        let mut refusal = Refusal::from(error);
        if let Some(place) = place {
            refusal.message = format!("{place}: {}", refusal.message);
            refusal = refusal.at(place);
        }
        refusal
    }
}

/// The response body; `name` is the client's name of the model.
pub(crate) fn body(name: &str, embeddings: &Embeddings, encoding: Encoding) -> Value {
    let entry = |(index, vector): (usize, &Vec<f32>)| {
        let embedding = match encoding {
            Encoding::Float => json!(vector),
            Encoding::Base64 => json!(base64(vector)),
        };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    };
    let data: Vec<Value> = embeddings.vectors.iter().enumerate().map(entry).collect();
    let tokens = embeddings.prompt_tokens;
    json!({"object": "list", "data": data, "model": name, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
}

/// Base64 of the numbers' bytes (RFC 4648, padded).
fn base64(numbers: &[f32]) -> String {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use protocol::ErrorCode;

    use super::*;
    use crate::answer::reply::tests::pebble;

    fn asked(body: Value) -> Result<EmbeddingsCall> {
        ask(&Fields::of(&body, "")?, &pebble())
    }

    #[test]
    fn an_input_is_a_text_ids_or_several() {
        let inputs = |body: Value| asked(body).unwrap().request.inputs;
        let text = |text: &str| EmbeddingInput::Text(text.into());
        assert_eq!(inputs(json!({"input": "a"})), [text("a")]);
        assert_eq!(inputs(json!({"input": ["a", "b"]})), [text("a"), text("b")]);
        assert_eq!(inputs(json!({"input": [1, 2]})), [EmbeddingInput::Tokens(vec![1, 2])]);
        assert_eq!(
            inputs(json!({"input": [[1], [2, 3]]})),
            [EmbeddingInput::Tokens(vec![1]), EmbeddingInput::Tokens(vec![2, 3])]
        );
        let asked = asked(json!({"input": "a", "encoding_format": "base64", "dimensions": 64, "user": "x"})).unwrap();
        assert_eq!((asked.encoding, asked.request.dimensions), (Encoding::Base64, Some(64)));
        assert_eq!(asked.request.priority, Priority::Api);
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        let many = vec!["a"; MOST_INPUTS + 1];
        for (body, place) in [
            (json!({}), "input"),
            (json!({"input": ""}), "input"),
            (json!({"input": []}), "input"),
            (json!({"input": 7}), "input"),
            (json!({"input": ["a", ""]}), "input[1]"),
            (json!({"input": [[1], []]}), "input[1]"),
            (json!({"input": [1, "a"]}), "input[0]"),
            (json!({"input": [[-1]]}), "input[0]"),
            (json!({"input": many}), "input"),
            (json!({"input": "a", "encoding_format": "int8"}), "encoding_format"),
            (json!({"input": "a", "dimensions": 0}), "dimensions"),
            (json!({"input": "a", "dimensions": "many"}), "dimensions"),
        ] {
            let shown = body.to_string().chars().take(60).collect::<String>();
            assert_eq!(asked(body).err().unwrap().param.as_deref(), Some(place), "{shown}");
        }
    }

    #[test]
    fn the_engine_speaks_of_inputs_by_number_and_clients_hear_their_place() {
        let error = |name: &str| Error::new(ErrorCode::BadRequest, "no").with(name, 1u32);
        let several = asked(json!({"input": ["a", "b"]})).unwrap();
        assert_eq!(several.refusal(error("input")).param.as_deref(), Some("input[1]"));
        assert_eq!(several.refusal(error("dimensions")).message, "dimensions: no");
        assert_eq!(several.refusal(error("tokens")).param.as_deref(), Some("input"));
        let single = asked(json!({"input": "a"})).unwrap();
        assert_eq!(single.refusal(error("input")).param.as_deref(), Some("input"));
    }

    #[test]
    fn vectors_are_written_as_numbers_or_as_base64_of_their_bytes() {
        let embeddings = Embeddings {
            vectors: vec![vec![1.0, -2.5], vec![0.0, 0.5]],
            prompt_tokens: 9,
        };
        let whole = body("m", &embeddings, Encoding::Float);
        assert_eq!(
            whole,
            json!({"object": "list", "model": "m", "usage": {"prompt_tokens": 9, "total_tokens": 9},
                "data": [{"object": "embedding", "index": 0, "embedding": [1.0, -2.5]},
                    {"object": "embedding", "index": 1, "embedding": [0.0, 0.5]}]})
        );
        // python3: base64.b64encode(struct.pack("<2f", 1, -2.5))
        assert_eq!(
            body("m", &embeddings, Encoding::Base64)["data"][0]["embedding"],
            "AACAPwAAIMA="
        );
        assert_eq!(base64(&[1.0]), "AACAPw==");
        assert_eq!(base64(&[1.0, 2.0, 3.0]), "AACAPwAAAEAAAEBA");
    }
}
