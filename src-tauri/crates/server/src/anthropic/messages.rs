//! `POST /v1/messages` and `/v1/messages/count_tokens`: the requests.

use protocol::{AnswerPrefix, ModelSource, Priority, Request, Role, Thinking};
use serde_json::json;

use crate::answer_format::{refuse_stops, schema};
use crate::anthropic::content;
use crate::anthropic::messages_reply::MessagesReply;
use crate::conversation::normalise;
use crate::fields::Fields;
use crate::images::Images;
use crate::refusal::Refusal;
use crate::reply::{Ask, Stamp};
use crate::sampling::{effort, max_tokens, sampling, stop_texts};
use crate::tools::Tools;

type Result<T> = std::result::Result<T, Refusal>;

/// Translates a request for this model, which the client calls `name`.
///
/// # Errors
/// If a field makes no sense or cannot be honoured; the refusal names it.
pub(crate) fn ask(fields: &Fields, model: &ModelSource, name: &str, stamp: Stamp) -> Result<Ask> {
    let (mut request, parallel, picture) = conversation(fields, model)?;
    fields.required_as("max_tokens", || json!({}))?;
    request.max_tokens = max_tokens(fields, &["max_tokens"])?;
    request.sampling = sampling(fields)?;
    request.stop = stop_texts(fields, "stop_sequences")?;
    refuse_stops(fields, "stop_sequences", &request)?;
    let filter = Ask::filter(&request, parallel);
    Ok(Ask {
        filter,
        stream: fields.boolean("stream")?.unwrap_or(false),
        reply: Box::new(MessagesReply::new(stamp, name, filter.thoughts)),
        requests: vec![request],
        picture,
    })
}

/// Translates a request whose tokens are to be counted, for this model.
///
/// # Errors
/// As [`ask`].
pub(crate) fn count(fields: &Fields, model: &ModelSource) -> Result<Request> {
    Ok(conversation(fields, model)?.0)
}

/// What of a request is read by the model, whether several tools may be called at once, and the place of its first picture.
fn conversation(fields: &Fields, model: &ModelSource) -> Result<(Request, bool, Option<String>)> {
    let servers = fields.get_as("mcp_servers", || json!({"type": ["array", "null"], "maxItems": 0}));
    if servers.is_some_and(|list| *list != json!([])) {
        return fields.refuse("mcp_servers", "this is not supported");
    }
    let mut images = Images::default();
    let mut request = Request::new(model.clone(), content::messages(fields, &mut images)?);
    let picture = images.put_into(&mut request);
    request.priority = Priority::Api;
    (request.thinking, request.thinking_budget) = thinking(fields)?;
    // The name that the field had before.
    request.schema = schema(fields, "output_format", None)?;
    if let Some(config) = fields.object("output_config")? {
        request.schema = schema(&config, "format", None)?.or(request.schema);
    }
    let (choice, parallel) = content::tool_choice(fields)?;
    let tools = Tools {
        declarations: content::tools(fields)?,
        choice,
        parallel,
    };
    tools.apply("tool_choice", &mut request)?;
    request.messages = normalise(request.messages);
    continue_last_answer(&mut request);
    Ok((request, parallel, picture))
}

/// A conversation that ends in an answer's words asks for the rest of it.
fn continue_last_answer(request: &mut Request) {
    let begun = |message: &protocol::Message| message.role == Role::Assistant && message.tool_calls.is_empty();
    if !request.messages.last().is_some_and(begun) {
        return;
    }
    if let Some(message) = request.messages.pop() {
        let text = message.text_with_placeholders();
        request.answer_prefix = Some(AnswerPrefix::Text {
            thinking: message.reasoning,
            text: (!text.is_empty()).then_some(text),
        });
    }
}

/// The Thinking switch and the budget. Without the field there are no thoughts, as in Anthropic's API.
fn thinking(fields: &Fields) -> Result<(Option<Thinking>, Option<u32>)> {
    let effort = match fields.object("output_config")? {
        Some(config) => effort(&config, "effort")?,
        None => None,
    };
    let on = effort.filter(|effort| *effort != Thinking::Off).unwrap_or(Thinking::On);
    let Some(thinking) = fields.object("thinking")? else {
        return Ok((Some(Thinking::Off), None));
    };
    let switch = thinking.required_word("type", &[("enabled", on), ("adaptive", on), ("disabled", Thinking::Off)])?;
    // Some clients switch it off with a budget of nothing.
    let budget = match switch {
        Thinking::Off => None,
        _ => max_tokens(&thinking, &["budget_tokens"])?,
    };
    Ok((Some(switch), budget))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::reply::tests::{pebble, stamp};

    fn asked(mut body: Value) -> Result<Ask> {
        if body.get("messages").is_none() {
            body["messages"] = json!([{"role": "user", "content": "hi"}]);
        }
        ask(&Fields::of(&body, "")?, &pebble(), "pebble", stamp("msg_1"))
    }

    #[test]
    fn fields_become_a_request() {
        let ask = asked(
            json!({"max_tokens": 32000, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}, "stop_sequences": ["END"],
            "temperature": 1, "top_k": 5, "stream": true, "metadata": {}, "context_management": {"edits": []}, "mcp_servers": [],
            "service_tier": "auto", "system": "be short"}),
        )
        .unwrap();
        let request = &ask.requests[0];
        assert_eq!(
            (request.max_tokens, request.thinking, ask.stream),
            (Some(32000), Some(Thinking::High), true)
        );
        assert_eq!(
            (request.stop.as_slice(), request.sampling.top_k),
            (["END".to_owned()].as_slice(), Some(5))
        );
        assert_eq!((request.messages.len(), request.priority), (2, Priority::Api));
    }

    #[test]
    fn thinking_is_as_asked_and_off_without_a_word() {
        let thinking = |thinking: Value| {
            let ask = asked(json!({"max_tokens": 9, "thinking": thinking})).unwrap();
            (ask.requests[0].thinking, ask.requests[0].thinking_budget, ask.filter.thoughts)
        };
        assert_eq!(thinking(Value::Null), (Some(Thinking::Off), None, false));
        for off in [json!({"type": "disabled"}), json!({"type": "disabled", "budget_tokens": 0})] {
            assert_eq!(thinking(off), (Some(Thinking::Off), None, false));
        }
        assert_eq!(
            thinking(json!({"type": "enabled", "budget_tokens": 1024})),
            (Some(Thinking::On), Some(1024), true)
        );
        assert_eq!(thinking(json!({"type": "adaptive"})), (Some(Thinking::On), None, true));
    }

    #[test]
    fn an_answer_that_was_begun_is_continued() {
        let ask = asked(json!({"max_tokens": 9, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "The"}]}))
            .unwrap();
        let request = &ask.requests[0];
        assert_eq!(request.messages.len(), 1);
        let prefix = AnswerPrefix::Text {
            thinking: None,
            text: Some("The".into()),
        };
        assert_eq!(request.answer_prefix, Some(prefix));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (body, place) in [
            (json!({}), "max_tokens"),
            (
                json!({"max_tokens": 9, "output_config": {"format": {"type": "json_schema"}}}),
                "output_config.format.schema",
            ),
            (json!({"max_tokens": 9, "mcp_servers": [{"url": "http://a"}]}), "mcp_servers"),
            (json!({"max_tokens": 9, "thinking": {"type": "much"}}), "thinking.type"),
            (json!({"max_tokens": 9, "stop_sequences": 5}), "stop_sequences"),
            (json!({"max_tokens": 9, "messages": []}), "messages"),
            (
                json!({"max_tokens": 9, "stop_sequences": ["a"], "output_format": {"type": "json_schema", "schema": {}}}),
                "stop_sequences",
            ),
        ] {
            assert_eq!(asked(body).err().unwrap().param.as_deref(), Some(place));
        }
    }

    #[test]
    fn a_count_needs_no_limit() {
        let body = json!({"messages": [{"role": "user", "content": "foo"}], "tools": []});
        let request = count(&Fields::of(&body, "").unwrap(), &pebble()).unwrap();
        assert_eq!(request.messages.len(), 1);
    }
}
