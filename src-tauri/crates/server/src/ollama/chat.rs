//! `POST /api/chat`: the request.

use protocol::{ModelSource, Request};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::http::error_body::Refusal;
use crate::ollama::content::{self, InputMessage};
use crate::ollama::fields::AnswerFields;
use crate::ollama::reply::{AnswerReply, Form};
use crate::request::conversation::{check_count, normalise};
use crate::request::fields::{Body as _, Fields};
use crate::request::images::Images;
use crate::request::tools::ToolFields;
use crate::request::values::List;

/// The body of a request.
pub(crate) type Body = (ChatFields, AnswerFields, ToolFields);

/// The fields of chat alone.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatFields {
    messages: Option<List<InputMessage>>,
}

/// Translates a request for this model, which the client calls `name`; `None` if it says nothing and only wants the
/// model to be loaded or freed.
///
/// # Errors
/// If a field makes no sense or cannot be honored; the refusal names it.
pub(crate) fn ask(
    fields: &Fields,
    model: &ModelSource,
    name: &str,
    stamp: ResponseIds,
) -> Result<Option<TranslatedRequest>, Refusal> {
    let (chat, answer, tools) = Body::read(fields)?;
    let Some(list) = chat.messages.filter(|list| list.len > 0) else {
        return Ok(None);
    };
    let mut images = Images::default();
    let mut request = Request::new(model.clone(), content::messages(fields, &list, &mut images)?);
    check_count("messages", &request.messages)?;
    let image = images.put_into(&mut request);
    let stream = answer.streams();
    answer.apply(fields, &mut request)?;
    let tools = tools.tools(fields, true)?;
    tools.apply("tool_choice", &mut request)?;
    request.messages = normalise(request.messages);
    Ok(Some(TranslatedRequest {
        filter: TranslatedRequest::filter(&request, tools.parallel),
        stream,
        reply: Box::new(AnswerReply::new(
            stamp,
            name,
            Form::Chat,
            request.top_logprobs.is_some(),
        )),
        requests: vec![request],
        image,
        file_search: None,
    }))
}

#[cfg(test)]
mod tests {
    use protocol::{Priority, Role, Thinking};
    use serde_json::{json, Value};

    use super::*;
    use crate::answer::reply::tests::{pebble, stamp};

    fn asked(body: Value) -> Result<Option<TranslatedRequest>, Refusal> {
        ask(&Fields::of(&body, "")?, &pebble(), "pebble", stamp(""))
    }

    #[test]
    fn fields_become_a_request_that_streams_unless_the_client_says_no() {
        let mut body = json!({"model": "pebble", "think": false, "tools": [{"type": "function", "function": {"name": "add"}}],
            "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "2 + 3?"}]});
        let ask = asked(body.clone()).unwrap().unwrap();
        assert!(ask.stream && !ask.filter.thoughts);
        let request = &ask.requests[0];
        assert_eq!(
            (request.thinking, request.priority, request.tools.len()),
            (Some(Thinking::Off), Priority::Api, 1)
        );
        assert_eq!(request.messages[1].role, Role::User);
        body["stream"] = false.into();
        assert!(!asked(body).unwrap().unwrap().stream);
    }

    #[test]
    fn a_request_that_says_nothing_is_about_the_model_itself() {
        for messages in [json!(null), json!([])] {
            assert!(asked(json!({ "messages": messages })).unwrap().is_none());
        }
        let wrong = asked(json!({"messages": [], "think": "deeply"}));
        assert_eq!(wrong.err().unwrap().param.as_deref(), Some("think"));
    }
}
