//! `POST /v1/responses`: the request.

use protocol::{Message, ModelSource, Priority, Request, Role, Thinking};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{json, Map, Value};

use crate::answer::logprobs::MOST;
use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::answer::responses_store::ResponsesStore;
use crate::http::error_body::Refusal;
use crate::openai::chat::TemplateFields;
use crate::openai::file_search::{self, OfferedDocuments};
use crate::openai::responses_input::{self, Item};
use crate::openai::responses_reply::{EchoedRequest, ResponsesReply};
use crate::request::conversation::{check_count, normalise};
use crate::request::fields::{Body as _, Fields};
use crate::request::images::Images;
use crate::request::response_format::{refuse_stops, ResponseFormat};
use crate::request::sampling::{max_tokens, stop_texts, Effort, SamplingFields};
use crate::request::tools::{ToolFields, FILE_SEARCH};
use crate::request::values::{Integer, Positive, TextOrList, Unchecked};

type Result<T> = std::result::Result<T, Refusal>;

/// The body of a request.
pub(crate) type Body = (ResponseFields, SamplingFields, ToolFields, TemplateFields);

/// Fields that are refused, each with a hint.
pub(crate) const UNSUPPORTED: &[(&str, &str)] = &[
    (
        "conversation",
        "send the conversation as `input`, or use `previous_response_id`",
    ),
    ("prompt", "there are no stored prompts here; use `instructions`"),
];

/// The fields of responses alone.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResponseFields {
    input: Option<TextOrList<Item>>,
    previous_response_id: Option<String>,
    instructions: Option<String>,
    background: Option<bool>,
    stop: Option<TextOrList<String>>,
    text: Option<TextSettings>,
    max_output_tokens: Option<Unchecked<Positive>>,
    top_logprobs: Option<Integer<0, MOST>>,
    /// Searches of documents for one response at most.
    max_tool_calls: Option<Positive>,
    include: Option<Vec<Value>>,
    reasoning: Option<Reasoning>,
    store: Option<bool>,
    stream: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct TextSettings {
    format: Option<ResponseFormat>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Reasoning {
    effort: Option<Effort>,
    summary: Option<String>,
    /// The former name of `summary`.
    generate_summary: Option<String>,
}

/// The responses and collections that a request may refer to.
pub(crate) struct Surroundings<'a> {
    /// The responses that it may name.
    pub(crate) store: &'a ResponsesStore,
    /// The bytes that the items it names may have together.
    pub(crate) most: usize,
    /// The documents that it may search.
    pub(crate) documents: OfferedDocuments,
    /// The context of the model, if it is known.
    pub(crate) context: Option<u32>,
}

/// Translates a request for this model, which the client calls `name`.
///
/// # Errors
/// If a field makes no sense, cannot be honored, or names what is not stored; the refusal names it.
pub(crate) fn ask(
    fields: &Fields,
    model: &ModelSource,
    name: &str,
    stamp: ResponseIds,
    around: Surroundings,
) -> Result<TranslatedRequest> {
    fields.refuse_unsupported(UNSUPPORTED)?;
    let (body, sampling, tools, template) = Body::read(fields)?;
    if body.background == Some(true) {
        return fields.refuse("background", "answers are made while the client waits; leave this out");
    }
    let (store, most) = (around.store, around.most);
    let input = responses_input::items(fields, body.previous_response_id.as_deref(), body.input, store, most)?;
    let given = file_search::given(&input);
    let instructions = body.instructions.filter(|text| !text.is_empty());
    let instructions = instructions.map(|text| Message::text(Role::System, text));
    let mut messages = Vec::from_iter(instructions);
    let mut images = Images::default();
    messages.extend(responses_input::messages(fields, &input, &mut images)?);
    let mut request = Request::new(model.clone(), messages);
    check_count("input", &request.messages)?;
    let image = images.put_into(&mut request);
    request.priority = Priority::Api;
    request.sampling = sampling.sampling(fields)?;
    request.stop = stop_texts(fields, "stop", body.stop)?;
    if let Some(format) = body.text.and_then(|text| text.format) {
        request.schema = format.schema(fields, "text.format", false)?;
    }
    refuse_stops(fields, "stop", &request)?;
    request.max_tokens = max_tokens(fields, &[("max_output_tokens", &body.max_output_tokens)])?;
    let top = body.top_logprobs.map_or(0, |top| top.0 as u8);
    let mut included = body.include.iter().flatten();
    let shows_results = included.clone().any(|what| what == file_search::INCLUDED);
    let included = included.any(|what| what == "message.output_text.logprobs");
    request.top_logprobs = (included || top > 0).then_some(top);
    let reasoning = body.reasoning.as_ref();
    request.thinking = template.thinking(fields, reasoning.and_then(|reasoning| reasoning.effort))?;
    let summary = reasoning.and_then(|reasoning| reasoning.summary.as_ref().or(reasoning.generate_summary.as_ref()));
    let mut tools = tools.tools(fields, false)?;
    let mut search = file_search::plan(fields, around.documents)?;
    if let Some((plan, declared)) = &mut search {
        if tools
            .declarations
            .iter()
            .any(|tool| tool["function"]["name"] == FILE_SEARCH)
        {
            return fields.refuse("tools", "a function has the name of the tool file_search; rename it");
        }
        tools.declarations.push(declared.take());
        if let Some(most) = body.max_tool_calls {
            plan.searches = plan.searches.min(u32::try_from(most.0).unwrap_or(u32::MAX));
        }
        (plan.context, plan.given) = (around.context, given.clone());
    }
    tools.apply("tool_choice", &mut request)?;
    if let Some((plan, _)) = search.as_mut().filter(|_| request.call_required) {
        // The last message is the wish for a call.
        let plain = &request.messages[..request.messages.len().saturating_sub(1)];
        plan.after_call = Some(normalise(plain.to_vec()));
    }
    request.messages = normalise(request.messages);
    let is_shown = request.tools.iter().any(|tool| tool["function"]["name"] == FILE_SEARCH);
    let search = search.filter(|_| is_shown).map(|(plan, _)| plan);
    let answered = EchoedRequest {
        store: body.store.unwrap_or(true),
        summary: summary.is_some_and(|summary| summary != "none") && request.thinking != Some(Thinking::Off),
        echo: echo(fields),
        input,
        given,
        shows_results,
        // A mark in JSON is a list of numbers.
        cites: request.schema.is_none(),
    };
    Ok(TranslatedRequest {
        filter: TranslatedRequest::filter(&request, tools.parallel),
        stream: body.stream.unwrap_or(false),
        reply: Box::new(ResponsesReply::new(stamp, name, answered)),
        requests: vec![request],
        image,
        file_search: search,
    })
}

/// The request fields that a response echoes, with their defaults.
fn echo(fields: &Fields) -> Map<String, Value> {
    let defaults = [
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("max_tool_calls", Value::Null),
        ("metadata", json!({})),
        ("parallel_tool_calls", json!(true)),
        ("previous_response_id", Value::Null),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("store", json!(true)),
        ("temperature", Value::Null),
        ("text", json!({"format": {"type": "text"}})),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("top_p", Value::Null),
        ("user", Value::Null),
    ];
    let said = |(name, default): (&str, Value)| (name.to_owned(), fields.value(name).cloned().unwrap_or(default));
    let mut echo: Map<String, Value> = defaults.into_iter().map(said).collect();
    echo.insert("background".into(), false.into());
    // Nothing is ever cut off a conversation.
    echo.insert("truncation".into(), "disabled".into());
    echo
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::{pebble, stamp};

    fn asked(body: Value) -> Result<TranslatedRequest> {
        let store = ResponsesStore::default();
        ask(
            &Fields::of(&body, "")?,
            &pebble(),
            "pebble",
            stamp("resp_1"),
            Surroundings {
                store: &store,
                most: 1 << 20,
                documents: OfferedDocuments::default(),
                context: Some(4096),
            },
        )
    }

    #[test]
    fn fields_become_a_request() {
        let ask = asked(
            json!({"input": "hi", "instructions": "be short", "max_output_tokens": 9, "reasoning": {"effort": "high", "summary": "auto"},
            "tools": [{"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": false}, {"type": "web_search"}],
            "tool_choice": {"type": "function", "name": "add"}, "include": ["reasoning.encrypted_content"], "stream": true,
            "truncation": "auto", "prompt_cache_key": "k", "client_metadata": {}}),
        )
        .unwrap();
        let request = &ask.requests[0];
        assert_eq!(
            (request.max_tokens, request.thinking, ask.stream),
            (Some(9), Some(Thinking::High), true)
        );
        assert_eq!((request.messages.len(), request.messages[0].role), (2, Role::System));
        assert_eq!(request.tools[0]["function"]["name"], "add");
        assert_eq!(request.priority, Priority::Api);
    }

    #[test]
    fn the_template_is_told_of_thinking_too() {
        let thinking = |body: Value| asked(body).unwrap().requests[0].thinking;
        let kwargs = |on: bool| json!({"input": "hi", "reasoning": {"effort": "high"}, "chat_template_kwargs": {"enable_thinking": on}});
        assert_eq!(
            (thinking(kwargs(true)), thinking(kwargs(false))),
            (Some(Thinking::High), Some(Thinking::Off))
        );
    }

    #[test]
    fn log_probabilities_are_asked_for() {
        let top = |body: Value| asked(body).unwrap().requests[0].top_logprobs;
        assert_eq!(top(json!({"input": "hi"})), None);
        assert_eq!(top(json!({"input": "hi", "top_logprobs": 2})), Some(2));
        assert_eq!(
            top(json!({"input": "hi", "include": ["message.output_text.logprobs"]})),
            Some(0)
        );
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (body, place) in [
            (
                json!({"text": {"format": {"type": "json_schema"}}}),
                "text.format.schema",
            ),
            (json!({"background": true}), "background"),
            (json!({"conversation": "c"}), "conversation"),
            (json!({"prompt": {"id": "p"}}), "prompt"),
            (json!({"top_logprobs": 21}), "top_logprobs"),
            (json!({"input": 5}), "input"),
            (json!({"reasoning": {"effort": "much"}}), "reasoning.effort"),
        ] {
            assert_eq!(asked(body).err().unwrap().param.as_deref(), Some(place));
        }
        assert!(asked(json!({"input": "hi", "background": false, "text": {"verbosity": "low"}})).is_ok());
    }
}
