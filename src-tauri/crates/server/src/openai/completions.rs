//! `POST /v1/completions`: the request. Its raw prompt is continued without a chat template.

use protocol::{ModelSource, Priority, RawPrompt, Request, Thinking};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::http::error_body::Refusal;
use crate::openai::chat::{answers_of, StreamOptions};
use crate::openai::chat_reply::ChatOptions;
use crate::openai::completions_reply::CompletionsReply;
use crate::request::fields::{Body as _, Fields};
use crate::request::sampling::{max_tokens, stop_texts, SamplingFields};
use crate::request::values::{text_or_ids, token_ids, Integer, Positive, TextOrList, Unchecked};

type Result<T> = std::result::Result<T, Refusal>;

/// The most answers to all prompts of a request.
const MOST_ANSWERS: i64 = 8;

/// The most log probabilities beside each token, as in OpenAI's API.
const MOST_LOGPROBS: i64 = 5;

/// OpenAI's default for `max_tokens`.
const DEFAULT_TOKENS: u32 = 16;

/// The body of a request.
pub(crate) type Body = (CompletionFields, SamplingFields);

/// The fields of completions alone.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CompletionFields {
    #[schemars(schema_with = "text_or_ids", required)]
    prompt: Option<Value>,
    suffix: Option<String>,
    best_of: Option<Positive>,
    echo: Option<bool>,
    n: Option<Integer<1, MOST_ANSWERS>>,
    logprobs: Option<Integer<0, MOST_LOGPROBS>>,
    stop: Option<TextOrList<String>>,
    max_tokens: Option<Unchecked<Positive>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

/// Translates a request for this model, which the client calls `name`.
///
/// # Errors
/// If a field makes no sense or cannot be honored; the refusal names it.
pub(crate) fn ask(fields: &Fields, model: &ModelSource, name: &str, stamp: ResponseIds) -> Result<TranslatedRequest> {
    let (body, sampling) = Body::read(fields)?;
    if body.best_of.is_some_and(|best| best.0 > 1) {
        return fields.refuse("best_of", "only 1 is supported; ask for several answers with `n`");
    }
    let suffix = body.suffix.as_deref().filter(|suffix| !suffix.is_empty());
    let prompts = prompts(fields, &fields.require("prompt", body.prompt)?, suffix)?;
    let echo = body.echo.unwrap_or(false);
    let answers = body.n.map_or(1, |n| n.0 as u32);
    if prompts.len() * answers as usize > MOST_ANSWERS as usize {
        return fields.refuse("prompt", format!("there are more than {MOST_ANSWERS} answers to make"));
    }
    let logprobs = body.logprobs.map(|top| top.0 as u8);
    if echo && logprobs.is_some() {
        let reason = "log probabilities of the prompt are not told; leave out `echo`";
        return fields.refuse("logprobs", reason);
    }
    let sampling = sampling.sampling(fields)?;
    let stop = stop_texts(fields, "stop", body.stop)?;
    let max_tokens = max_tokens(fields, &[("max_tokens", &body.max_tokens)])?.unwrap_or(DEFAULT_TOKENS);
    let mut echoes = Vec::new();
    let mut requests = Vec::new();
    for prompt in prompts {
        let repeated = match &prompt {
            RawPrompt::Text(text) if echo => text.clone(),
            _ if echo => return fields.refuse("echo", "only a text can be repeated"),
            _ => String::new(),
        };
        echoes.extend(std::iter::repeat_n(repeated, answers as usize));
        let mut request = Request::new(model.clone(), Vec::new());
        request.raw_prompt = Some(prompt);
        request.priority = Priority::Api;
        request.sampling = sampling.clone();
        request.stop.clone_from(&stop);
        request.max_tokens = Some(max_tokens);
        request.top_logprobs = logprobs;
        // Output after a raw prompt has no thinking to split off.
        request.thinking = Some(Thinking::Off);
        requests.extend(answers_of(request, answers));
    }
    let options = ChatOptions {
        usage_chunk: StreamOptions::usage_chunk(body.stream_options.as_ref()),
        logprobs: logprobs.is_some(),
    };
    let mut filter = TranslatedRequest::filter(&requests[0], true);
    filter.thoughts = false;
    Ok(TranslatedRequest {
        requests,
        stream: body.stream.unwrap_or(false),
        filter,
        reply: Box::new(CompletionsReply::new(stamp, name, echoes, answers as usize, options)),
        image: None,
        file_search: None,
    })
}

/// A text, ids, or a list of either.
fn prompts(fields: &Fields, prompt: &Value, suffix: Option<&str>) -> Result<Vec<RawPrompt>> {
    let text = |text: &str| match suffix {
        Some(after) => RawPrompt::FillIn {
            before: text.to_owned(),
            after: after.to_owned(),
        },
        None => RawPrompt::Text(text.to_owned()),
    };
    let one = |value: &Value| match value {
        Value::String(words) => Some(text(words)),
        Value::Array(list) if suffix.is_none() && !list.is_empty() => token_ids(list).map(RawPrompt::Tokens),
        _ => None,
    };
    if let Some(prompt) = one(prompt) {
        return Ok(vec![prompt]);
    }
    let all = |list: &Vec<Value>| list.iter().map(one).collect::<Option<Vec<_>>>();
    let prompts = prompt.as_array().and_then(all);
    match prompts {
        Some(prompts) if !prompts.is_empty() => Ok(prompts),
        _ if suffix.is_some() => fields.refuse("prompt", "with a suffix, this is a text or a list of texts"),
        _ => fields.refuse("prompt", "this is neither a text, nor token ids, nor a list of either"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answer::reply::tests::{pebble, stamp};

    fn asked(body: Value) -> Result<TranslatedRequest> {
        ask(&Fields::of(&body, "")?, &pebble(), "pebble", stamp("cmpl-1"))
    }

    fn raw(body: Value) -> Vec<RawPrompt> {
        let requests = asked(body).unwrap().requests;
        requests.into_iter().filter_map(|request| request.raw_prompt).collect()
    }

    #[test]
    fn a_prompt_is_a_text_ids_or_several() {
        let text = |text: &str| RawPrompt::Text(text.into());
        assert_eq!(raw(json!({"prompt": "a"})), [text("a")]);
        assert_eq!(
            raw(json!({"prompt": ["a", "b"], "n": 2})),
            [text("a"), text("a"), text("b"), text("b")]
        );
        assert_eq!(raw(json!({"prompt": [1, 2]})), [RawPrompt::Tokens(vec![1, 2])]);
        assert_eq!(
            raw(json!({"prompt": [[1], [2, 3]]})),
            [RawPrompt::Tokens(vec![1]), RawPrompt::Tokens(vec![2, 3])]
        );
        let gap = RawPrompt::FillIn {
            before: "a".into(),
            after: "b".into(),
        };
        assert_eq!(raw(json!({"prompt": "a", "suffix": "b"})), [gap]);
        let request = &asked(json!({"prompt": "a", "seed": 3, "stop": ["x"], "logprobs": 2}))
            .unwrap()
            .requests[0];
        assert_eq!(
            (request.max_tokens, request.top_logprobs, request.sampling.seed),
            (Some(16), Some(2), Some(3))
        );
        assert!(request.messages.is_empty());
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (body, place) in [
            (json!({}), "prompt"),
            (json!({"prompt": []}), "prompt"),
            (json!({"prompt": [1, "a"]}), "prompt"),
            (json!({"prompt": [1], "suffix": "b"}), "prompt"),
            (json!({"prompt": ["a", "b", "c"], "n": 3}), "prompt"),
            (json!({"prompt": "a", "best_of": 2}), "best_of"),
            (json!({"prompt": "a", "logprobs": 6}), "logprobs"),
            (json!({"prompt": "a", "logprobs": 1, "echo": true}), "logprobs"),
            (json!({"prompt": [1], "echo": true}), "echo"),
        ] {
            assert_eq!(
                asked(body.clone()).err().unwrap().param.as_deref(),
                Some(place),
                "{body}"
            );
        }
    }
}
