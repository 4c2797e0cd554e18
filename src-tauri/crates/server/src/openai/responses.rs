//! `POST /v1/responses`: the request.

use protocol::{Message, ModelSource, Priority, Request, Role, Thinking};
use serde_json::{json, Map, Value};

use crate::answer_format::{refuse_stops, schema};
use crate::conversation::normalise;
use crate::fields::Fields;
use crate::images::Images;
use crate::openai::chat::thinking;
use crate::openai::logprobs::MOST;
use crate::openai::responses_input;
use crate::openai::responses_reply::{Answered, ResponsesReply};
use crate::refusal::Refusal;
use crate::reply::{Ask, Stamp};
use crate::responses_store::ResponsesStore;
use crate::sampling::{effort, max_tokens, sampling, stop_texts};
use crate::tools::{openai as tools, openai_choice, Tools};

type Result<T> = std::result::Result<T, Refusal>;

/// Translates a request for this model, which the client calls `name`.
///
/// # Errors
/// If a field makes no sense, cannot be honoured, or names what is not kept; the refusal names it.
pub(crate) fn ask(fields: &Fields, model: &ModelSource, name: &str, stamp: Stamp, store: &ResponsesStore) -> Result<Ask> {
    refuse_what_is_not_built(fields)?;
    let input = responses_input::items(fields, store)?;
    let instructions = fields.text("instructions")?.filter(|text| !text.is_empty());
    let mut messages: Vec<Message> = instructions.map(|text| Message::text(Role::System, text)).into_iter().collect();
    let mut images = Images::default();
    messages.extend(responses_input::messages(fields, &input, &mut images)?);
    let mut request = Request::new(model.clone(), messages);
    let picture = images.put_into(&mut request);
    request.priority = Priority::Api;
    request.sampling = sampling(fields)?;
    request.stop = stop_texts(fields, "stop")?;
    if let Some(text) = fields.object("text")? {
        request.schema = schema(&text, "format", None)?;
    }
    refuse_stops(fields, "stop", &request)?;
    request.max_tokens = max_tokens(fields, &["max_output_tokens"])?;
    request.top_logprobs = logprobs(fields)?;
    let reasoning = fields.object("reasoning")?;
    let by_effort = match &reasoning {
        Some(reasoning) => effort(reasoning, "effort")?,
        None => None,
    };
    request.thinking = thinking(fields, by_effort)?;
    let summary = match &reasoning {
        Some(reasoning) => reasoning.text("summary")?.or(reasoning.text("generate_summary")?),
        None => None,
    };
    let tools = Tools {
        declarations: tools(fields, false)?,
        choice: openai_choice(fields, false)?,
        parallel: fields.boolean("parallel_tool_calls")?.unwrap_or(true),
    };
    tools.apply("tool_choice", &mut request)?;
    request.messages = normalise(request.messages);
    let answered = Answered {
        store: fields.boolean("store")?.unwrap_or(true),
        summary: summary.is_some_and(|summary| summary != "none") && request.thinking != Some(Thinking::Off),
        echo: echo(fields),
        input,
    };
    Ok(Ask {
        filter: Ask::filter(&request, tools.parallel),
        stream: fields.boolean("stream")?.unwrap_or(false),
        reply: Box::new(ResponsesReply::new(stamp, name, answered)),
        requests: vec![request],
        picture,
    })
}

/// What a response repeats of its request, with the values that were used if nothing was said.
fn echo(fields: &Fields) -> Map<String, Value> {
    let defaults = [
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
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
    let said = |(name, default): (&str, Value)| (name.to_owned(), fields.as_sent(name).cloned().unwrap_or(default));
    let mut echo: Map<String, Value> = defaults.into_iter().map(said).collect();
    echo.insert("background".into(), false.into());
    // Nothing is ever cut off a conversation.
    echo.insert("truncation".into(), "disabled".into());
    echo
}

/// How many of the likeliest tokens are told beside each, if any.
fn logprobs(fields: &Fields) -> Result<Option<u8>> {
    let top = fields.integer("top_logprobs", 0..=MOST)?.unwrap_or(0) as u8;
    let includes = fields.list("include")?.unwrap_or_default();
    let included = includes.iter().any(|what| what == "message.output_text.logprobs");
    Ok((included || top > 0).then_some(top))
}

fn refuse_what_is_not_built(fields: &Fields) -> Result<()> {
    if fields.boolean("background")?.unwrap_or(false) {
        return fields.refuse("background", "answers are made while the client waits; leave this out");
    }
    for (name, hint) in [
        ("conversation", "send the conversation as `input`, or use `previous_response_id`"),
        ("prompt", "there are no stored prompts here; use `instructions`"),
    ] {
        fields.unsupported(name, hint)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::tests::{pebble, stamp};

    fn asked(body: Value) -> Result<Ask> {
        let store = ResponsesStore::default();
        ask(&Fields::of(&body, "")?, &pebble(), "pebble", stamp("resp_1"), &store)
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
        assert_eq!(top(json!({"input": "hi", "include": ["message.output_text.logprobs"]})), Some(0));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (body, place) in [
            (json!({"text": {"format": {"type": "json_schema"}}}), "text.format.schema"),
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
