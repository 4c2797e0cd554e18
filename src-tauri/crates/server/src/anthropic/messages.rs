//! `POST /v1/messages` and `/v1/messages/count_tokens`: the requests.

use protocol::{AnswerPrefix, ModelSource, Priority, Request, Role, Thinking};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{json, Value};

use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::anthropic::content::{self, Block, Choice, InputMessage, Tool};
use crate::anthropic::messages_reply::MessagesReply;
use crate::http::error_body::Refusal;
use crate::request::conversation::{check_count, normalise};
use crate::request::fields::{Body as _, Fields};
use crate::request::images::Images;
use crate::request::response_format::{refuse_stops, ResponseFormat};
use crate::request::sampling::{max_tokens, stop_texts, Effort, SamplingFields};
use crate::request::tools::{ToolChoice, Tools};
use crate::request::values::{List, Positive, TextOrList, Unchecked};

type Result<T> = std::result::Result<T, Refusal>;

/// The body of a request.
pub(crate) type Body = (AnswerFields, SamplingFields, ConversationFields);

/// The body of a request whose tokens are counted.
pub(crate) type CountBody = (ConversationFields,);

/// The fields of how an answer is made.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AnswerFields {
    max_tokens: Positive,
    stop_sequences: Option<TextOrList<String>>,
    stream: Option<bool>,
}

/// The fields that the model reads.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ConversationFields {
    #[schemars(length(min = 1))]
    messages: List<InputMessage>,
    system: Option<TextOrList<Block>>,
    tools: Option<List<Tool>>,
    tool_choice: Option<Choice>,
    thinking: Option<ThinkingSwitch>,
    output_config: Option<OutputConfig>,
    /// The former place of `output_config.format`.
    output_format: Option<ResponseFormat>,
    #[serde(default)]
    #[schemars(schema_with = "no_servers")]
    mcp_servers: Option<Value>,
}

fn no_servers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["array", "null"], "maxItems": 0})
}

#[derive(Debug, Deserialize, JsonSchema)]
struct OutputConfig {
    effort: Option<Effort>,
    format: Option<ResponseFormat>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ThinkingSwitch {
    r#type: ThinkingMode,
    budget_tokens: Option<Unchecked<Positive>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ThinkingMode {
    Enabled,
    Adaptive,
    Disabled,
}

/// Translates a request for this model, which the client calls `name`.
///
/// # Errors
/// If a field makes no sense or cannot be honored; the refusal names it.
pub(crate) fn ask(fields: &Fields, model: &ModelSource, name: &str, stamp: ResponseIds) -> Result<TranslatedRequest> {
    let (answer, sampling, conversation) = Body::read(fields)?;
    let (mut request, parallel, image) = conversation.request(fields, model)?;
    request.max_tokens = Some(u32::try_from(answer.max_tokens.0).unwrap_or(u32::MAX));
    request.sampling = sampling.sampling(fields)?;
    request.stop = stop_texts(fields, "stop_sequences", answer.stop_sequences)?;
    refuse_stops(fields, "stop_sequences", &request)?;
    let filter = TranslatedRequest::filter(&request, parallel);
    Ok(TranslatedRequest {
        filter,
        stream: answer.stream.unwrap_or(false),
        reply: Box::new(MessagesReply::new(stamp, name, filter.thoughts)),
        requests: vec![request],
        image,
        file_search: None,
    })
}

/// Translates a request whose tokens are to be counted, for this model.
///
/// # Errors
/// As [`ask`].
pub(crate) fn count(fields: &Fields, model: &ModelSource) -> Result<Request> {
    let (conversation,) = CountBody::read(fields)?;
    Ok(conversation.request(fields, model)?.0)
}

impl ConversationFields {
    /// The request, whether several tools may be called at once, and the place of its first image.
    fn request(self, fields: &Fields, model: &ModelSource) -> Result<(Request, bool, Option<String>)> {
        if self.mcp_servers.as_ref().is_some_and(|list| *list != json!([])) {
            return fields.refuse("mcp_servers", "this is not supported");
        }
        let mut images = Images::default();
        let messages = content::messages(fields, self.system.as_ref(), &self.messages, &mut images)?;
        let mut request = Request::new(model.clone(), messages);
        check_count("messages", &request.messages)?;
        let image = images.put_into(&mut request);
        request.priority = Priority::Api;
        let config = self.output_config;
        let (effort, format) = config.map_or((None, None), |config| (config.effort, config.format));
        (request.thinking, request.thinking_budget) = thinking(fields, self.thinking.as_ref(), effort)?;
        if let Some(format) = self.output_format {
            request.schema = format.schema(fields, "output_format", false)?;
        }
        if let Some(format) = format {
            request.schema = format.schema(fields, "output_config.format", false)?.or(request.schema);
        }
        let (choice, parallel) = match self.tool_choice {
            Some(choice) => choice.choice(fields)?,
            None => (ToolChoice::Auto, true),
        };
        let tools = Tools {
            declarations: content::tools(fields, self.tools.as_ref())?,
            choice,
            parallel,
        };
        tools.apply("tool_choice", &mut request)?;
        request.messages = normalise(request.messages);
        continue_last_answer(&mut request);
        Ok((request, parallel, image))
    }
}

/// Turns a final assistant message into the prefix of the answer.
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
fn thinking(
    fields: &Fields,
    switch: Option<&ThinkingSwitch>,
    effort: Option<Effort>,
) -> Result<(Option<Thinking>, Option<u32>)> {
    // Some clients switch it off with a budget of nothing.
    let Some(switch) = switch.filter(|switch| switch.r#type != ThinkingMode::Disabled) else {
        return Ok((Some(Thinking::Off), None));
    };
    let effort = effort.map(Thinking::from).filter(|effort| *effort != Thinking::Off);
    let budget = max_tokens(fields, &[("thinking.budget_tokens", &switch.budget_tokens)])?;
    Ok((Some(effort.unwrap_or(Thinking::On)), budget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::{pebble, stamp};

    fn asked(mut body: Value) -> Result<TranslatedRequest> {
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
            (
                ask.requests[0].thinking,
                ask.requests[0].thinking_budget,
                ask.filter.thoughts,
            )
        };
        assert_eq!(thinking(Value::Null), (Some(Thinking::Off), None, false));
        for off in [
            json!({"type": "disabled"}),
            json!({"type": "disabled", "budget_tokens": 0}),
        ] {
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
            (
                json!({"max_tokens": 9, "mcp_servers": [{"url": "http://a"}]}),
                "mcp_servers",
            ),
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
