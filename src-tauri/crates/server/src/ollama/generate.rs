//! `POST /api/generate`: the request, one prompt with the chat template or without it.

use protocol::{Message, ModelSource, RawPrompt, Request, Role, Thinking};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{json, Value};

use crate::answer::reply::{ResponseIds, TranslatedRequest};
use crate::http::error_body::Refusal;
use crate::ollama::content;
use crate::ollama::fields::AnswerFields;
use crate::ollama::reply::{AnswerReply, Form};
use crate::request::conversation::message;
use crate::request::fields::{Body as _, Fields};
use crate::request::images::Images;

type Result<T> = std::result::Result<T, Refusal>;

/// The body of a request.
pub(crate) type Body = (GenerateFields, AnswerFields);

/// The fields of generate alone.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GenerateFields {
    prompt: Option<String>,
    suffix: Option<String>,
    system: Option<String>,
    images: Option<Vec<String>>,
    raw: Option<bool>,
    /// The older fields that replace the model's template and carry a conversation.
    #[serde(default)]
    #[schemars(schema_with = "no_template")]
    template: Option<Value>,
    #[serde(default)]
    #[schemars(schema_with = "no_context")]
    context: Option<Value>,
}

fn no_template(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["", null]})
}

fn no_context(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["array", "null"], "maxItems": 0})
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
) -> Result<Option<TranslatedRequest>> {
    let (body, answer) = Body::read(fields)?;
    if body.template.is_some_and(|template| template != "") {
        return fields.refuse("template", "the template of the model is used; leave this out");
    }
    if body.context.is_some_and(|context| context != json!([])) {
        return fields.refuse("context", "this is not supported; send the conversation to /api/chat");
    }
    let (prompt, shown) = (body.prompt.unwrap_or_default(), body.images.unwrap_or_default());
    let suffix = body.suffix.filter(|suffix| !suffix.is_empty());
    if prompt.is_empty() && suffix.is_none() && shown.is_empty() {
        return Ok(None);
    }
    let system = body.system.filter(|system| !system.is_empty());
    let raw = match (suffix, body.raw.unwrap_or(false)) {
        (Some(after), _) => Some(RawPrompt::FillIn {
            before: prompt.clone(),
            after,
        }),
        (None, true) => Some(RawPrompt::Text(prompt.clone())),
        (None, false) => None,
    };
    let mut images = Images::default();
    let mut request = Request::new(model.clone(), Vec::new());
    let stream = answer.streams();
    answer.apply(fields, &mut request)?;
    if raw.is_some() {
        let set = [
            ("system", system.is_some()),
            ("images", !shown.is_empty()),
            ("format", request.schema.is_some()),
        ];
        if let Some((name, _)) = set.into_iter().find(|(_, set)| *set) {
            return fields.refuse(name, "a prompt that is continued as it is, or filled in, has none");
        }
        // Output after a raw prompt has no thinking to split off.
        request.thinking = Some(Thinking::Off);
    } else {
        let mut content = content::contents(fields, &shown, &mut images)?;
        content.push(protocol::Content::text(prompt));
        request
            .messages
            .extend(system.map(|system| Message::text(Role::System, system)));
        request.messages.push(message(Role::User, content));
    }
    request.raw_prompt = raw;
    let image = images.put_into(&mut request);
    Ok(Some(TranslatedRequest {
        filter: TranslatedRequest::filter(&request, true),
        stream,
        reply: Box::new(AnswerReply::new(
            stamp,
            name,
            Form::Generate,
            request.top_logprobs.is_some(),
        )),
        requests: vec![request],
        image,
        file_search: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::reply::tests::{pebble, stamp};

    fn asked(body: Value) -> Result<Option<TranslatedRequest>> {
        ask(&Fields::of(&body, "")?, &pebble(), "pebble", stamp(""))
    }

    #[test]
    fn a_prompt_is_a_question_a_text_to_go_on_with_or_a_gap() {
        let request = |body: Value| asked(body).unwrap().unwrap().requests.remove(0);
        let question = request(json!({"prompt": "2 + 3?", "system": "Be short.", "template": "", "context": []}));
        let roles: Vec<Role> = question.messages.iter().map(|message| message.role).collect();
        assert_eq!((roles, question.raw_prompt), (vec![Role::System, Role::User], None));
        let raw = request(json!({"prompt": "Two and", "raw": true}));
        assert_eq!(raw.raw_prompt, Some(RawPrompt::Text("Two and".into())));
        assert_eq!((raw.messages.len(), raw.thinking), (0, Some(Thinking::Off)));
        let gap = request(json!({"prompt": "a", "suffix": "b"}));
        let (before, after) = ("a".to_owned(), "b".to_owned());
        assert_eq!(gap.raw_prompt, Some(RawPrompt::FillIn { before, after }));
    }

    #[test]
    fn an_empty_prompt_is_about_the_model_itself() {
        for body in [
            json!({"prompt": "", "keep_alive": 0}),
            json!({}),
            json!({"prompt": null, "suffix": ""}),
        ] {
            assert!(asked(body).unwrap().is_none());
        }
    }

    #[test]
    fn what_cannot_be_honored_is_named() {
        for (body, place) in [
            (json!({"prompt": "a", "template": "{{ .Prompt }}"}), "template"),
            (json!({"prompt": "a", "context": [1, 2]}), "context"),
            (json!({"prompt": "a", "raw": true, "system": "b"}), "system"),
            (json!({"prompt": "a", "suffix": "b", "format": "json"}), "format"),
            (json!({"prompt": "a", "images": ["?"]}), "images[0]"),
        ] {
            assert_eq!(asked(body).err().unwrap().param.as_deref(), Some(place));
        }
    }
}
