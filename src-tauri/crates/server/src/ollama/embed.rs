//! `POST /api/embed` and the older `/api/embeddings`: the requests, and the bodies of their responses.

use std::time::Duration;

use protocol::{EmbeddingInput, EmbeddingRequest, Embeddings, Error, ModelSource, Priority};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{json, Value};

use crate::http::error_body::{number, Refusal};
use crate::request::fields::{Body as _, Fields};
use crate::request::values::Integer;

type Result<T> = std::result::Result<T, Refusal>;

/// The most inputs of a request, as on `/v1/embeddings`.
const MOST_INPUTS: usize = 2048;

/// The body of a request to `/api/embed`.
pub(crate) type Body = (EmbedFields,);

/// The body of a request to `/api/embeddings`.
pub(crate) type OneBody = (PromptField,);

/// The fields of `/api/embed`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EmbedFields {
    #[schemars(schema_with = "text_or_texts", required)]
    input: Option<Value>,
    dimensions: Option<Integer<1, { u32::MAX as i64 }>>,
}

/// The field of `/api/embeddings`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PromptField {
    prompt: Option<String>,
}

fn text_or_texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
}

/// Translates a request to `/api/embed` for this model. Its inputs may be none.
///
/// # Errors
/// If a field makes no sense; the refusal names it.
pub(crate) fn ask(fields: &Fields, model: &ModelSource) -> Result<EmbeddingRequest> {
    let (body,) = Body::read(fields)?;
    let inputs = match fields.require("input", body.input)? {
        Value::String(text) => vec![input("input", Value::String(text))?],
        Value::Array(list) => {
            let inputs = list.into_iter().enumerate();
            inputs
                .map(|(index, text)| input(&format!("input[{index}]"), text))
                .collect::<Result<_>>()?
        }
        _ => return fields.refuse("input", "this is neither a text nor a list of texts"),
    };
    if inputs.len() > MOST_INPUTS {
        let reason = format!("there are {} inputs, and a request takes {MOST_INPUTS}", inputs.len());
        return fields.refuse("input", reason);
    }
    let dimensions = body.dimensions.map(|dimensions| dimensions.0 as u32);
    Ok(request(model, inputs, dimensions))
}

/// Translates a request to `/api/embeddings` for this model. Without a prompt there is no input.
///
/// # Errors
/// If the prompt is no text.
pub(crate) fn ask_one(fields: &Fields, model: &ModelSource) -> Result<EmbeddingRequest> {
    let (body,) = OneBody::read(fields)?;
    let prompt = body.prompt.filter(|prompt| !prompt.is_empty());
    Ok(request(
        model,
        prompt.into_iter().map(EmbeddingInput::Text).collect(),
        None,
    ))
}

fn input(place: &str, value: Value) -> Result<EmbeddingInput> {
    match value {
        Value::String(text) if text.is_empty() => Err(Refusal::field(place, "there is nothing in it to embed")),
        Value::String(text) => Ok(EmbeddingInput::Text(text)),
        _ => Err(Refusal::field(place, "this is not a text")),
    }
}

fn request(model: &ModelSource, inputs: Vec<EmbeddingInput>, dimensions: Option<u32>) -> EmbeddingRequest {
    EmbeddingRequest {
        model: model.clone(),
        inputs,
        dimensions,
        priority: Priority::Api,
        keep_alive: None,
    }
}

/// The refusal for an error of the engine, which may name an input by its index.
pub(crate) fn refusal(error: Error) -> Refusal {
    let place = number(&error, "input").map(|index| format!("input[{index}]"));
    let mut refusal = Refusal::from(error);
    if let Some(place) = place {
        refusal.message = format!("{place}: {}", refusal.message);
        refusal = refusal.at(place);
    }
    refusal
}

/// The body of a response of `/api/embed`; `took` is the time since the request was read.
pub(crate) fn body(name: &str, made: &Embeddings, took: Duration) -> Value {
    json!({"model": name, "embeddings": made.vectors, "total_duration": took.as_nanos() as u64,
        "prompt_eval_count": made.prompt_tokens})
}

/// The body of a response of `/api/embeddings`.
pub(crate) fn one_body(made: &Embeddings) -> Value {
    json!({"embedding": made.vectors.first().map_or(&[] as &[f32], Vec::as_slice)})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::pebble;

    #[test]
    fn an_input_is_a_text_or_several_or_none() {
        let inputs = |body: Value| ask(&Fields::of(&body, "").unwrap(), &pebble()).map(|request| request.inputs.len());
        for (input, count) in [(json!("a"), 1), (json!(["a", "b"]), 2), (json!([]), 0)] {
            assert_eq!(inputs(json!({ "input": input })), Ok(count));
        }
        for (body, place) in [
            (json!({}), "input"),
            (json!({"input": 5}), "input"),
            (json!({"input": ["a", ""]}), "input[1]"),
            (json!({"input": [[1, 2]]}), "input[0]"),
            (json!({"input": "a", "dimensions": 0}), "dimensions"),
        ] {
            assert_eq!(inputs(body).unwrap_err().param.as_deref(), Some(place));
        }
    }
}
