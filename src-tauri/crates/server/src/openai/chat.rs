//! `POST /v1/chat/completions`: the request.

use protocol::{ModelSource, Priority, Request, Thinking};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

use crate::answer::logprobs::MOST;
use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::http::error_body::Refusal;
use crate::openai::chat_reply::{ChatOptions, ChatReply};
use crate::request::conversation::{check_count, normalise};
use crate::request::fields::{Body as _, Fields};
use crate::request::images::Images;
use crate::request::response_format::{refuse_stops, ResponseFormat};
use crate::request::sampling::{max_tokens, nth, stop_texts, Effort, SamplingFields};
use crate::request::tools::ToolFields;
use crate::request::values::{Integer, Positive, TextOrList, Unchecked};

type Result<T> = std::result::Result<T, Refusal>;

/// The most answers to one prompt.
const MOST_ANSWERS: i64 = 8;

/// The body of a request.
pub(crate) type Body = (ChatFields, SamplingFields, ToolFields, TemplateFields);

/// Fields that are refused, each with a hint.
pub(crate) const UNSUPPORTED: &[(&str, &str)] = &[
    ("functions", "use `tools`"),
    ("function_call", "use `tool_choice`"),
    ("audio", "answers are text"),
    ("web_search_options", "nothing is searched on the web here"),
];

/// The fields of chat completions alone.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatFields {
    #[schemars(with = "Vec<ChatMessage>", length(min = 1))]
    messages: Vec<Value>,
    modalities: Option<Vec<Value>>,
    stop: Option<TextOrList<String>>,
    response_format: Option<ResponseFormat>,
    max_completion_tokens: Option<Unchecked<Positive>>,
    max_tokens: Option<Unchecked<Positive>>,
    reasoning_effort: Option<Effort>,
    logprobs: Option<bool>,
    top_logprobs: Option<Integer<0, MOST>>,
    n: Option<Integer<1, MOST_ANSWERS>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

/// Options of a stream.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StreamOptions {
    include_usage: Option<bool>,
}

impl StreamOptions {
    /// True if the usage comes in a chunk of its own.
    pub(crate) fn usage_chunk(options: Option<&Self>) -> bool {
        options.and_then(|options| options.include_usage).unwrap_or(false)
    }
}

/// Switches of the chat template, as other local servers accept them.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TemplateFields {
    chat_template_kwargs: Option<TemplateSwitches>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct TemplateSwitches {
    enable_thinking: Option<bool>,
    thinking: Option<bool>,
    reasoning_effort: Option<Effort>,
}

/// Translates a request for this model, which the client calls `name`.
///
/// # Errors
/// If a field makes no sense or cannot be honored; the refusal names it.
pub(crate) fn ask(fields: &Fields, model: &ModelSource, name: &str, stamp: ResponseIds) -> Result<TranslatedRequest> {
    fields.refuse_unsupported(UNSUPPORTED)?;
    let (chat, sampling, tools, template) = Body::read(fields)?;
    if chat.modalities.iter().flatten().any(|kind| kind != "text") {
        return fields.refuse("modalities", "answers are text");
    }
    if chat.messages.is_empty() {
        return fields.refuse("messages", "this list is empty, and at least one is needed");
    }
    let mut images = Images::default();
    let contents = chat.messages.iter().filter_map(|message| message["content"].as_array());
    let shown = contents.flatten().filter(|part| part["type"] == "image_url");
    let detail = |part: &Value| part["image_url"]["detail"].as_str().map(str::to_owned);
    let shown: Vec<Option<String>> = shown.map(detail).collect();
    let conversation = openai_wire::messages_with_images(chat.messages, &mut |url, place| images.data_url(url, place))?;
    shown.iter().for_each(|detail| images.detail(detail.as_deref()));
    let mut request = Request::new(model.clone(), conversation);
    check_count("messages", &request.messages)?;
    let image = images.put_into(&mut request);
    request.priority = Priority::Api;
    request.sampling = sampling.sampling(fields)?;
    request.stop = stop_texts(fields, "stop", chat.stop)?;
    if let Some(format) = chat.response_format {
        request.schema = format.schema(fields, "response_format", true)?;
    }
    refuse_stops(fields, "stop", &request)?;
    let limits = [
        ("max_completion_tokens", &chat.max_completion_tokens),
        ("max_tokens", &chat.max_tokens),
    ];
    request.max_tokens = max_tokens(fields, &limits)?;
    request.thinking = template.thinking(fields, chat.reasoning_effort)?;
    request.top_logprobs = match (chat.logprobs.unwrap_or(false), chat.top_logprobs) {
        (true, top) => Some(top.map_or(0, |top| top.0 as u8)),
        (false, None | Some(Integer(0))) => None,
        (false, Some(_)) => return fields.refuse("top_logprobs", "this needs `logprobs` to be true"),
    };
    let tools = tools.tools(fields, true)?;
    tools.apply("tool_choice", &mut request)?;
    request.messages = normalise(request.messages);
    let answers = chat.n.map_or(1, |n| n.0 as u32);
    let options = ChatOptions {
        usage_chunk: StreamOptions::usage_chunk(chat.stream_options.as_ref()),
        logprobs: request.top_logprobs.is_some(),
    };
    Ok(TranslatedRequest {
        filter: TranslatedRequest::filter(&request, tools.parallel),
        stream: chat.stream.unwrap_or(false),
        reply: Box::new(ChatReply::new(stamp, name, answers as usize, options)),
        requests: answers_of(request, answers),
        image,
        file_search: None,
    })
}

/// A request for each of several answers to one prompt.
pub(crate) fn answers_of(request: Request, answers: u32) -> Vec<Request> {
    let mut requests = vec![request; answers as usize];
    for (index, request) in (0..answers).zip(&mut requests) {
        request.sampling = nth(&request.sampling, index);
    }
    requests
}

impl TemplateFields {
    /// The Thinking switch: an effort, or what is passed to the chat template.
    ///
    /// # Errors
    /// If something else is passed.
    pub(crate) fn thinking(&self, fields: &Fields, by_effort: Option<Effort>) -> Result<Option<Thinking>> {
        const KNOWN: [&str; 3] = ["enable_thinking", "thinking", "reasoning_effort"];
        let Some(template) = &self.chat_template_kwargs else {
            return Ok(by_effort.map(Thinking::from));
        };
        let passed = fields.value("chat_template_kwargs").and_then(Value::as_object);
        let other = |(name, value): &(&String, &Value)| !value.is_null() && !KNOWN.contains(&name.as_str());
        if let Some((name, _)) = passed.into_iter().flatten().find(other) {
            let reason = "only enable_thinking, thinking and reasoning_effort can be passed to the template";
            return fields.refuse(&format!("chat_template_kwargs.{name}"), reason);
        }
        let effort = by_effort.or(template.reasoning_effort).map(Thinking::from);
        Ok(match template.thinking.or(template.enable_thinking) {
            Some(false) => Some(Thinking::Off),
            Some(true) => Some(effort.filter(|effort| *effort != Thinking::Off).unwrap_or(Thinking::On)),
            None => effort,
        })
    }
}

/// A message of a chat. Only described here: the `protocol` crate reads it, for `ponder ask` too.
struct ChatMessage;

impl JsonSchema for ChatMessage {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ChatMessage".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({"type": ["string", "null"]});
        let function = json_schema!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "arguments": {}}});
        let calls = json_schema!({"type": ["array", "null"], "items": {"type": "object", "required": ["function"],
            "properties": {"id": {"type": "string"}, "function": function}}});
        let url = json_schema!({"type": "string", "description": "A data URL; no address is opened."});
        let part = json_schema!({"type": "object", "required": ["type"], "properties": {
            "type": {"type": "string", "enum": ["text", "refusal", "image_url"]},
            "text": {"type": "string"}, "refusal": {"type": "string"},
            "image_url": {"type": "object", "required": ["url"], "properties": {"url": url, "detail": {"type": "string"}}}}});
        json_schema!({"type": "object", "required": ["role"], "properties": {
            "role": {"type": "string", "enum": ["system", "developer", "user", "assistant", "tool"]},
            "content": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "array", "items": part}]},
            "reasoning_content": text, "reasoning": text, "tool_calls": calls, "name": text, "tool_call_id": text}})
    }
}

#[cfg(test)]
mod tests {
    use protocol::Role;
    use serde_json::json;

    use super::*;
    use crate::answer::reply::tests::{pebble, stamp};

    fn asked(body: Value) -> Result<TranslatedRequest> {
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
        assert_eq!(
            asked(body.clone()).unwrap().requests[0].schema,
            Some(json!({"type": "object"}))
        );
        body["stop"] = json!("END");
        assert_eq!(param(body), "stop");
    }

    #[test]
    fn log_probabilities_are_asked_for() {
        let mut body = with("logprobs", json!(true));
        assert_eq!(asked(body.clone()).unwrap().requests[0].top_logprobs, Some(0));
        body["top_logprobs"] = json!(20);
        assert_eq!(asked(body).unwrap().requests[0].top_logprobs, Some(20));
        assert_eq!(
            asked(with("logprobs", json!(false))).unwrap().requests[0].top_logprobs,
            None
        );
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
        assert_eq!(
            kwargs(json!({"thinking": true, "reasoning_effort": "high"})),
            Some(Thinking::High)
        );
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
        assert!(messages[0]
            .text_with_placeholders()
            .starts_with("hi\n\nAnswer with a call"));
        assert!(!ask.filter.parallel_calls);
    }
}
