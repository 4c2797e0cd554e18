//! `POST /v1/chat/completions`: the request.

use protocol::{ModelSource, Priority, Request, Thinking};

use crate::answer_format::{refuse_stops, schema};
use crate::conversation::normalise;
use crate::fields::Fields;
use crate::images::Images;
use crate::openai::chat_reply::{ChatOptions, ChatReply};
use crate::openai::logprobs::MOST;
use crate::refusal::Refusal;
use crate::reply::{Ask, Stamp};
use crate::sampling::{effort, max_tokens, nth, sampling, stop_texts};
use crate::tools::{openai as tools, openai_choice, Tools};

type Result<T> = std::result::Result<T, Refusal>;

/// The most answers to one prompt.
const MOST_ANSWERS: i64 = 8;

/// Translates a request for this model, which the client calls `name`.
///
/// # Errors
/// If a field makes no sense or cannot be honoured; the refusal names it.
pub(crate) fn ask(fields: &Fields, model: &ModelSource, name: &str, stamp: Stamp) -> Result<Ask> {
    refuse_what_is_not_built(fields)?;
    let messages = fields.required_list("messages")?;
    let mut images = Images::default();
    let conversation = protocol::openai::messages_with_pictures(messages.to_vec(), &mut |url, place| images.data_url(url, place))?;
    for part in messages
        .iter()
        .flat_map(|message| message["content"].as_array().into_iter().flatten())
    {
        if part["type"] == "image_url" {
            images.detail(part["image_url"]["detail"].as_str());
        }
    }
    let mut request = Request::new(model.clone(), conversation);
    let picture = images.put_into(&mut request);
    request.priority = Priority::Api;
    request.sampling = sampling(fields)?;
    request.stop = stop_texts(fields, "stop")?;
    request.schema = schema(fields, "response_format", Some("json_schema"))?;
    refuse_stops(fields, "stop", &request)?;
    request.max_tokens = max_tokens(fields, &["max_completion_tokens", "max_tokens"])?;
    request.thinking = thinking(fields, effort(fields, "reasoning_effort")?)?;
    request.top_logprobs = logprobs(fields)?;
    let tools = Tools {
        declarations: tools(fields, true)?,
        choice: openai_choice(fields, true)?,
        parallel: fields.boolean("parallel_tool_calls")?.unwrap_or(true),
    };
    tools.apply("tool_choice", &mut request)?;
    request.messages = normalise(request.messages);
    let answers = fields.integer("n", 1..=MOST_ANSWERS)?.unwrap_or(1) as u32;
    let stream = fields.boolean("stream")?.unwrap_or(false);
    let usage_chunk = usage_chunk(fields)?;
    let logprobs = request.top_logprobs.is_some();
    Ok(Ask {
        filter: Ask::filter(&request, tools.parallel),
        stream,
        reply: Box::new(ChatReply::new(stamp, name, answers as usize, ChatOptions { usage_chunk, logprobs })),
        requests: answers_of(&request, answers),
        picture,
    })
}

/// Whether a stream's usage comes in a chunk of its own.
pub(crate) fn usage_chunk(fields: &Fields) -> Result<bool> {
    match fields.object("stream_options")? {
        Some(options) => Ok(options.boolean("include_usage")?.unwrap_or(false)),
        None => Ok(false),
    }
}

/// A request for each of several answers to one prompt.
pub(crate) fn answers_of(request: &Request, answers: u32) -> Vec<Request> {
    let answer = |index| Request {
        sampling: nth(&request.sampling, index),
        ..request.clone()
    };
    (0..answers).map(answer).collect()
}

/// The Thinking switch: an effort, or what local servers pass to the chat template.
pub(crate) fn thinking(fields: &Fields, by_effort: Option<Thinking>) -> Result<Option<Thinking>> {
    let Some(template) = fields.object("chat_template_kwargs")? else {
        return Ok(by_effort);
    };
    let by_template = effort(&template, "reasoning_effort")?;
    let mut switch = None;
    for name in ["enable_thinking", "thinking"] {
        switch = template.boolean(name)?.or(switch);
    }
    let known = ["enable_thinking", "thinking", "reasoning_effort"];
    if let Some(other) = template.names().find(|name| !known.contains(name)) {
        let reason = "only enable_thinking, thinking and reasoning_effort can be passed to the template";
        return template.refuse(other, reason);
    }
    let effort = by_effort.or(by_template);
    Ok(match switch {
        Some(false) => Some(Thinking::Off),
        Some(true) => Some(effort.filter(|effort| *effort != Thinking::Off).unwrap_or(Thinking::On)),
        None => effort,
    })
}

fn refuse_what_is_not_built(fields: &Fields) -> Result<()> {
    for (name, hint) in [
        ("functions", "use `tools`"),
        ("function_call", "use `tool_choice`"),
        ("audio", "answers are text"),
        ("web_search_options", "nothing is searched on the web here"),
    ] {
        fields.unsupported(name, hint)?;
    }
    match fields.list("modalities")? {
        Some(modalities) if modalities.iter().any(|kind| kind != "text") => fields.refuse("modalities", "answers are text"),
        _ => Ok(()),
    }
}

/// How many of the likeliest tokens are told beside each, if any.
fn logprobs(fields: &Fields) -> Result<Option<u8>> {
    let top = fields.integer("top_logprobs", 0..=MOST)?;
    match (fields.boolean("logprobs")?.unwrap_or(false), top) {
        (true, top) => Ok(Some(top.unwrap_or(0) as u8)),
        (false, None | Some(0)) => Ok(None),
        (false, Some(_)) => fields.refuse("top_logprobs", "this needs `logprobs` to be true"),
    }
}

#[cfg(test)]
mod tests {
    use protocol::Role;
    use serde_json::{json, Value};

    use super::*;
    use crate::reply::tests::{pebble, stamp};

    fn asked(body: Value) -> Result<Ask> {
        ask(&Fields::of(&body, "")?, &pebble(), "pebble", stamp("chatcmpl-1"))
    }

    fn with(field: &str, value: Value) -> Value {
        let mut body = json!({"model": "pebble", "messages": [{"role": "user", "content": "hi"}]});
        body[field] = value;
        body
    }

    fn param(body: Value) -> String {
        asked(body).err().unwrap().param.unwrap()
    }

    #[test]
    fn fields_become_a_request() {
        let ask = asked(
            json!({"messages": [{"role": "user", "content": "hi"}], "n": 2, "seed": 5, "max_tokens": 7, "max_completion_tokens": 6,
            "stop": "END", "reasoning_effort": "minimal", "stream": true, "temperature": 0, "user": "u", "store": true, "unknown": {}}),
        )
        .unwrap();
        assert!(ask.stream && ask.filter.thoughts && ask.filter.parallel_calls);
        let [one, two] = ask.requests.as_slice() else {
            panic!("{}", ask.requests.len())
        };
        assert_eq!((one.sampling.seed, two.sampling.seed), (Some(5), Some(6)));
        assert_eq!(
            (one.max_tokens, one.thinking, one.priority),
            (Some(6), Some(Thinking::Low), Priority::Api)
        );
        assert_eq!(
            (one.stop.as_slice(), one.sampling.temperature),
            (["END".to_owned()].as_slice(), Some(0.0))
        );
    }

    #[test]
    fn an_answer_may_have_to_follow_a_schema() {
        let mut body = with("response_format", json!({"type": "json_object"}));
        assert_eq!(asked(body.clone()).unwrap().requests[0].schema, Some(json!({"type": "object"})));
        body["stop"] = json!("END");
        assert_eq!(param(body), "stop");
    }

    #[test]
    fn log_probabilities_are_asked_for() {
        let mut body = with("logprobs", json!(true));
        assert_eq!(asked(body.clone()).unwrap().requests[0].top_logprobs, Some(0));
        body["top_logprobs"] = json!(20);
        assert_eq!(asked(body).unwrap().requests[0].top_logprobs, Some(20));
        assert_eq!(asked(with("logprobs", json!(false))).unwrap().requests[0].top_logprobs, None);
    }

    #[test]
    fn thinking_is_switched_in_every_way_that_clients_know() {
        let thinking = |body: Value| asked(body).unwrap().requests[0].thinking;
        assert_eq!(thinking(with("user", json!("u"))), None);
        assert_eq!(thinking(with("reasoning_effort", json!("none"))), Some(Thinking::Off));
        let kwargs = |kwargs: Value| thinking(with("chat_template_kwargs", kwargs));
        assert_eq!(
            kwargs(json!({"enable_thinking": false, "reasoning_effort": "high"})),
            Some(Thinking::Off)
        );
        assert_eq!(kwargs(json!({"enable_thinking": true})), Some(Thinking::On));
        assert_eq!(kwargs(json!({"thinking": true, "reasoning_effort": "high"})), Some(Thinking::High));
        assert!(!asked(with("reasoning_effort", json!("none"))).unwrap().filter.thoughts);
        assert_eq!(
            param(with("chat_template_kwargs", json!({"messages": []}))),
            "chat_template_kwargs.messages"
        );
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (field, value, place) in [
            ("n", json!(9), "n"),
            ("top_logprobs", json!(3), "top_logprobs"),
            ("top_logprobs", json!(21), "top_logprobs"),
            (
                "response_format",
                json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {"not": {}}}}),
                "response_format.json_schema.schema",
            ),
            ("response_format", json!({"type": "grammar"}), "response_format.type"),
            ("functions", json!([]), "functions"),
            ("modalities", json!(["text", "audio"]), "modalities"),
            (
                "messages",
                json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b"}}]}]),
                "messages[0].content[0]",
            ),
            ("messages", json!("hi"), "messages"),
            ("messages", Value::Null, "messages"),
            ("messages", json!([]), "messages"),
        ] {
            assert_eq!(param(with(field, value)), place);
        }
        for (field, value) in [
            ("logprobs", json!(false)),
            ("top_logprobs", json!(0)),
            ("response_format", json!({"type": "text"})),
            ("modalities", json!(["text"])),
        ] {
            assert!(asked(with(field, value)).is_ok(), "{field}");
        }
    }

    #[test]
    fn a_required_call_is_asked_for_in_words_at_the_end() {
        let mut body = with("tools", json!([{"type": "function", "function": {"name": "add"}}]));
        body["tool_choice"] = json!("required");
        body["parallel_tool_calls"] = json!(false);
        let ask = asked(body).unwrap();
        let messages = &ask.requests[0].messages;
        assert_eq!((messages.len(), messages[0].role), (1, Role::User));
        assert!(messages[0].text_with_placeholders().starts_with("hi\n\nAnswer with a call"));
        assert!(!ask.filter.parallel_calls);
    }
}
