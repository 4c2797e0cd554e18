//! A request as the JSON body of `/v1/chat/completions`.

use std::collections::BTreeSet;

use protocol::{Content, ImageDetail, Message, Request, Sampling, Thinking, SAMPLING_OPTIONS};
use serde_json::{json, Map, Value};

use super::images::DataUrls;
use crate::error::{Error, Result};

/// Optional fields of a body, beside those of sampling, that servers are known to refuse, by the names that their refusals
/// use. Everything else is needed, or is refused for its value.
const OPTIONAL: [&str; 4] = [
    "chat_template_kwargs",
    "reasoning_effort",
    "stream_options",
    "reasoning_content",
];

/// OpenAI's newer models know only this name of `max_tokens`.
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";

/// The fields that an endpoint has refused, which are not sent again.
pub(crate) type UnsupportedFields = BTreeSet<&'static str>;

/// The body of a request without the fields that were refused; `images` are those that it shows.
///
/// # Errors
/// [`Error::NotSupported`] for what no endpoint can be asked.
pub(crate) fn body(model: &str, request: &Request, images: &DataUrls, refused: &UnsupportedFields) -> Result<Value> {
    if request.answer_prefix.is_some() {
        return Err(Error::NotSupported(
            "continue an answer that ended; have the question answered again instead",
        ));
    }
    if request.kv_bits.is_some() {
        return Err(Error::NotSupported("be told how to keep its keys and values"));
    }
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|said| message(said, request.image_detail, images, refused))
        .collect();
    let most = if refused.contains(MAX_COMPLETION_TOKENS) {
        MAX_COMPLETION_TOKENS
    } else {
        "max_tokens"
    };
    let has_tools = !request.tools.is_empty();
    let format = request.schema.as_ref().map(
        |schema| json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}}),
    );
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() && (name == MAX_COMPLETION_TOKENS || !refused.contains(name)) {
            body.insert(name.to_owned(), value);
        }
    };
    put("model", model.into());
    put("messages", messages.into());
    put("stream", true.into());
    put("stream_options", json!({"include_usage": true}));
    put("tools", json!(has_tools.then_some(&request.tools)));
    put(most, request.max_tokens.into());
    put(
        "tool_choice",
        json!((request.call_required && has_tools).then_some("required")),
    );
    put("response_format", format.into());
    put("stop", json!((!request.stop.is_empty()).then_some(&request.stop)));
    sampling(&request.sampling, &mut put);
    put("chat_template_kwargs", json!(request.thinking.map(switch)));
    put("reasoning_effort", json!(request.thinking.and_then(effort)));
    Ok(body.into())
}

/// The words by which servers say that they do not know a field, rather than that its value is wrong.
const UNKNOWN: [&str; 9] = [
    "unrecognized",
    "unrecognised",
    "unknown",
    "unsupported",
    "not support",
    "unexpected",
    "extra",
    "not permitted",
    "not allowed",
];

/// The optional field that a refusal names, if the body has it and leaving it out helps. Of several the longest counts,
/// because names stand in each other.
pub(crate) fn refused_field(body: &Value, refusal: &str) -> Option<&'static str> {
    let words = refusal.to_lowercase();
    let unknown = UNKNOWN.iter().any(|word| words.contains(word));
    if refusal.contains(MAX_COMPLETION_TOKENS) && body.get("max_tokens").is_some() {
        return Some(MAX_COMPLETION_TOKENS);
    }
    let sent = |name: &str| match name {
        "reasoning_content" => body["messages"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one.get(name).is_some())),
        _ => body.get(name).is_some(),
    };
    // The user can lower a temperature that is too high, but not choose an effort that this model lacks.
    let sampling = SAMPLING_OPTIONS.iter().map(|option| sampling_field(option.field));
    let named = OPTIONAL
        .into_iter()
        .chain(sampling)
        .filter(|name| refusal.contains(name) && sent(name) && (unknown || !matters(name)));
    named.max_by_key(|name| name.len())
}

/// True if a refusal says that the model takes no images, rather than that one of them is invalid.
pub(crate) fn refuses_images(refusal: &str) -> bool {
    let words = refusal.to_lowercase();
    let images = ["image", "picture", "vision", "multimodal", "multi-modal", "mmproj"];
    let none = [
        "only text",
        "text-only",
        "must be a string",
        "should be a valid string",
        "no vision",
        "not a multimodal",
        "is not multimodal",
    ];
    let unknown = UNKNOWN.iter().chain(&none).any(|word| words.contains(word));
    unknown && images.iter().any(|word| words.contains(word))
}

/// True if a field carries a choice of the user, so that leaving it out deserves a notice. The Thinking switch has its
/// own.
pub(crate) fn matters(field: &str) -> bool {
    !matches!(
        field,
        "chat_template_kwargs" | "reasoning_effort" | "stream_options" | "reasoning_content" | MAX_COMPLETION_TOKENS
    )
}

/// The Thinking switch as a variable of the chat template, one of the two forms that servers know.
fn switch(thinking: Thinking) -> Value {
    let on = thinking != Thinking::Off;
    json!({"enable_thinking": on, "thinking": on})
}

/// The Thinking switch as OpenAI's effort, the other form.
fn effort(thinking: Thinking) -> Option<&'static str> {
    match thinking {
        Thinking::Off => Some("none"),
        Thinking::On => None,
        Thinking::Low => Some("low"),
        Thinking::Medium => Some("medium"),
        Thinking::High => Some("high"),
    }
}

/// Only what was asked for: everything else is the server's business. In a text, 0.7 is 0.7, and not the 64 bits that
/// are nearest to its 32.
fn sampling(sampling: &Sampling, put: &mut impl FnMut(&str, Value)) {
    let text = serde_json::to_string(sampling);
    let set: Map<String, Value> = text.and_then(|text| serde_json::from_str(&text)).unwrap_or_default();
    for (option, value) in set {
        put(sampling_field(&option), value);
    }
}

/// The field of a body for a sampling option: servers call one otherwise.
fn sampling_field(option: &str) -> &str {
    match option {
        "penalty_context" => "repetition_context_size",
        same => same,
    }
}

/// The content of a message: a text, or a list of parts if it has images.
fn content(message: &Message, detail: ImageDetail, images: &DataUrls) -> Value {
    let url = |part: &Content| match part {
        Content::Image { attachment, .. } => images.get(attachment),
        Content::Text { .. }
        | Content::Thinking { .. }
        | Content::ToolCall { .. }
        | Content::Data { .. }
        | Content::File { .. }
        | Content::Passages { .. } => None,
    };
    if !message.content.iter().any(|part| url(part).is_some()) {
        return message.text_with_placeholders().into();
    }
    let part = |part: &Content| match url(part) {
        Some(url) => {
            let mut image = json!({"url": url});
            match detail {
                ImageDetail::Quick => image["detail"] = "low".into(),
                ImageDetail::Full => image["detail"] = "high".into(),
                ImageDetail::Normal => {}
            }
            Some(json!({"type": "image_url", "image_url": image}))
        }
        None => part.as_text().map(|text| json!({"type": "text", "text": text})),
    };
    message.content.iter().filter_map(part).collect()
}

fn message(message: &Message, detail: ImageDetail, images: &DataUrls, refused: &UnsupportedFields) -> Value {
    let calls = message.tool_calls.iter().map(|call| {
        let arguments = call.arguments.to_string();
        json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
    });
    let calls: Vec<Value> = calls.collect();
    let reasoning = message
        .reasoning
        .as_deref()
        .filter(|_| !refused.contains("reasoning_content"));
    let mut fields = Map::new();
    fields.insert("role".into(), message.role.name().into());
    // A turn that only calls tools has no content.
    let content = match content(message, detail, images) {
        Value::String(text) if text.is_empty() && !calls.is_empty() => Value::Null,
        content => content,
    };
    fields.insert("content".into(), content);
    for (name, value) in [
        ("reasoning_content", json!(reasoning)),
        ("tool_calls", json!((!calls.is_empty()).then_some(calls))),
        ("name", json!(message.name)),
        ("tool_call_id", json!(message.tool_call_id)),
    ] {
        if !value.is_null() {
            fields.insert(name.into(), value);
        }
    }
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Content, ModelSource, Role, ToolCall};

    fn request() -> Request {
        let model = ModelSource::Remote {
            endpoint: "lab".into(),
            name: "a/b".into(),
        };
        Request::new(model, vec![Message::text(Role::User, "question")])
    }

    #[test]
    fn nothing_is_sent_that_nobody_asked_for() {
        let body = body("a/b", &request(), &DataUrls::new(), &UnsupportedFields::new()).expect("it can be asked");
        let expected = json!({"model": "a/b", "messages": [{"role": "user", "content": "question"}], "stream": true,
            "stream_options": {"include_usage": true}});
        assert_eq!(body, expected);
    }

    #[test]
    fn a_conversation_with_tools_has_openais_form() {
        let call = ToolCall {
            id: "abcdefghi".into(),
            name: "add".into(),
            arguments: json!({"a": 1}),
        };
        let mut asked = request();
        asked.messages.push(Message {
            content: Vec::new(),
            reasoning: Some("hm".into()),
            tool_calls: vec![call],
            ..Message::text(Role::Assistant, "")
        });
        asked.messages.push(Message {
            content: vec![Content::Data {
                data: json!({"sum": 1}),
            }],
            name: Some("add".into()),
            tool_call_id: Some("abcdefghi".into()),
            ..Message::text(Role::Tool, "")
        });
        let body = body("m", &asked, &DataUrls::new(), &UnsupportedFields::new()).expect("it can be asked");
        let expected = json!([
            {"role": "user", "content": "question"},
            {"role": "assistant", "content": null, "reasoning_content": "hm",
             "tool_calls": [{"id": "abcdefghi", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "content": "{\"sum\":1}", "name": "add", "tool_call_id": "abcdefghi"},
        ]);
        assert_eq!(body["messages"], expected);
    }

    #[test]
    fn what_was_asked_for_is_sent_until_it_is_refused() {
        let asked = Request {
            thinking: Some(Thinking::Low),
            max_tokens: Some(8),
            stop: vec!["END".into()],
            sampling: Sampling {
                temperature: Some(0.7),
                top_k: Some(20),
                seed: Some(1),
                logit_bias: [(5, -1.5)].into(),
                ..Sampling::default()
            },
            ..request()
        };
        let mut refused = UnsupportedFields::new();
        let sent = body("m", &asked, &DataUrls::new(), &refused).expect("it can be asked");
        assert_eq!(sent["temperature"].to_string(), "0.7");
        assert_eq!((&sent["top_k"], &sent["logit_bias"]), (&json!(20), &json!({"5": -1.5})));
        assert_eq!(
            (
                &sent["reasoning_effort"],
                &sent["chat_template_kwargs"]["enable_thinking"]
            ),
            (&json!("low"), &json!(true))
        );
        assert_eq!((&sent["max_tokens"], &sent["stop"]), (&json!(8), &json!(["END"])));

        let refusals = [
            (
                "Unrecognized request argument supplied: chat_template_kwargs",
                Some("chat_template_kwargs"),
            ),
            (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                Some("max_completion_tokens"),
            ),
            ("top_k: extra fields not permitted", Some("top_k")),
            ("unknown field min_p", None),
            ("temperature must be at most 2", None),
            ("messages must alternate", None),
        ];
        for (refusal, field) in refusals {
            assert_eq!(refused_field(&sent, refusal), field, "{refusal}");
            refused.extend(field);
        }
        let sent = body("m", &asked, &DataUrls::new(), &refused).expect("it can be asked");
        assert_eq!(
            (&sent["max_completion_tokens"], &sent["reasoning_effort"]),
            (&json!(8), &json!("low"))
        );
        for gone in ["chat_template_kwargs", "top_k", "max_tokens"] {
            assert_eq!(sent.get(gone), None, "{gone}");
        }
        assert_eq!(refused_field(&sent, "max_completion_tokens is too large"), None);
    }

    #[test]
    fn images_are_parts_in_their_place() {
        let image = |attachment: &str| Content::Image {
            attachment: attachment.into(),
            media_type: "image/png".into(),
            width: 1,
            height: 1,
            alt: "cat.png".into(),
        };
        let mut asked = request();
        asked.messages[0].content = vec![image("a"), Content::text("Which is it?"), image("gone")];
        let urls = DataUrls::from([("a".to_owned(), "data:image/png;base64,AQ==".to_owned())]);
        let sent = |asked: &Request| {
            body("m", asked, &urls, &UnsupportedFields::new()).expect("it can be asked")["messages"][0]["content"]
                .clone()
        };
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AQ=="}});
        let (words, name) = (
            json!({"type": "text", "text": "Which is it?"}),
            json!({"type": "text", "text": "[image: cat.png]"}),
        );
        assert_eq!(sent(&asked), json!([image, words, name]));
        asked.image_detail = ImageDetail::Quick;
        assert_eq!(sent(&asked)[0]["image_url"]["detail"], "low");
        asked.messages[0].content.remove(0);
        assert_eq!(sent(&asked), "Which is it?[image: cat.png]");
    }

    #[test]
    fn off_is_off_in_both_forms() {
        let asked = Request {
            thinking: Some(Thinking::Off),
            ..request()
        };
        let sent = body("m", &asked, &DataUrls::new(), &UnsupportedFields::new()).expect("it can be asked");
        assert_eq!(
            (
                &sent["reasoning_effort"],
                &sent["chat_template_kwargs"]["enable_thinking"]
            ),
            (&json!("none"), &json!(false))
        );
    }

    #[test]
    fn a_server_that_takes_no_images_is_told_from_a_wrong_image() {
        for refusal in [
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "Invalid content type. image_url is only supported by certain models: unsupported",
            "Only text content is supported; got image_url",
            "this model does not support images",
        ] {
            assert!(refuses_images(refusal), "{refusal}");
        }
        for refusal in [
            "the image could not be decoded",
            "temperature is not supported",
            "image too large",
        ] {
            assert!(!refuses_images(refusal), "{refusal}");
        }
    }

    #[test]
    fn an_answer_cannot_be_continued() {
        let asked = Request {
            kv_bits: Some(protocol::KvBits::Four),
            ..request()
        };
        assert!(matches!(
            body("m", &asked, &DataUrls::new(), &UnsupportedFields::new()),
            Err(Error::NotSupported(_))
        ));
    }
}
