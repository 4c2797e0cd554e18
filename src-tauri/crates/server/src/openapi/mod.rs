//! `GET /openapi.json`: what the routes take and give, in the form of OpenAPI 3.1. Requests are described by what their translations
//! read of the examples, so what is said of a field is what is done with it.

mod examples;
mod replies;

use serde_json::{json, Map, Value};

use crate::field_log::FieldLog;
use crate::fields::Fields;
use crate::openai::{chat, completions, embeddings, responses};
use crate::refusal::Refusal;
use crate::reply::Stamp;
use crate::responses_store::{ResponsesStore, StoredResponse};
use crate::{anthropic::messages, unloading};

/// A route as it is described. The router takes no other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    /// `get`, `post` or `delete`.
    pub(crate) method: &'static str,
    /// The path, in the router's form.
    pub(crate) path: &'static str,
    /// What it does.
    pub(crate) summary: &'static str,
    /// The body that it takes, if it takes one.
    pub(crate) body: Option<Body>,
    /// What it answers with.
    pub(crate) reply: Reply,
}

/// The bodies that routes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Chat,
    Completion,
    Response,
    Message,
    CountTokens,
    Embeddings,
    Unload,
}

/// What routes answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// JSON of this name among the schemas.
    Json(&'static str),
    /// The same, or a stream of Server-Sent Events if `stream` is true.
    JsonOrEvents(&'static str),
    /// Text of this media type.
    Text(&'static str),
}

/// The description of these routes; those of `versioned` also stand below `/v1`.
pub(crate) fn document(versioned: &[Operation], others: &[Operation]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let versioned = versioned.iter().map(|operation| (format!("/v1{}", operation.path), operation));
    let others = others.iter().map(|operation| (operation.path.to_owned(), operation));
    for (path, operation) in versioned.chain(others) {
        // A wildcard of the router, for ids that contain slashes.
        let path = path.replace("{*", "{");
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[operation.method] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ponder",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Models of this computer behind OpenAI's and Anthropic's interfaces. Each path below /v1 works without /v1 too. \
                A field that is not described is ignored; null means unset.",
        },
        "paths": paths,
        "components": {
            "schemas": replies::schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
        // No key is needed unless one was set.
        "security": [{}, {"bearer": []}, {"x-api-key": []}],
    })
}

fn described(operation: &Operation) -> Value {
    let schema = |name: &str| json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
    let mut content = Map::new();
    match operation.reply {
        Reply::Json(name) | Reply::JsonOrEvents(name) => content.insert("application/json".into(), schema(name)),
        Reply::Text(kind) => content.insert(kind.into(), json!({"schema": {"type": "string"}})),
    };
    if let Reply::JsonOrEvents(_) = operation.reply {
        let events = json!({"schema": {"type": "string", "description": "Server-Sent Events, if `stream` is true."}});
        content.insert("text/event-stream".into(), events);
    }
    let anthropic = operation.path.starts_with("/messages");
    let error = schema(if anthropic { "AnthropicError" } else { "OpenAiError" });
    let mut described = json!({
        "summary": operation.summary,
        "responses": {
            "200": {"description": "The answer.", "content": content},
            "default": {"description": "A refusal.", "content": {"application/json": error}},
        },
    });
    if operation.path.ends_with("id}") {
        described["parameters"] = json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
    }
    if let Some(body) = operation.body {
        let examples: Map<String, Value> = body
            .examples()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!({"value": value})))
            .collect();
        let content = json!({"application/json": {"schema": body.schema(), "examples": examples}});
        described["requestBody"] = json!({"required": true, "content": content});
    }
    described
}

impl Body {
    fn examples(self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Chat => examples::chat(),
            Self::Completion => examples::completion(),
            Self::Response => examples::response(),
            Self::Message => examples::message(),
            Self::CountTokens => examples::count_tokens(),
            Self::Embeddings => examples::embeddings(),
            Self::Unload => examples::unload(),
        }
    }

    /// A schema of the body: what is read of the examples.
    fn schema(self) -> Value {
        let log = FieldLog::default();
        let examples = self.examples();
        for (name, example) in &examples {
            if let Err(refusal) = self.translate(example, &log) {
                tracing::error!(name, %refusal.message, "an example of the description is refused");
            }
        }
        let mut schema = log.schema();
        if self == Self::Chat {
            // Read by protocol's translation, which `ponder ask` shares.
            schema["properties"]["messages"]["items"] = examples::chat_message();
        }
        schema
    }

    /// Translates a body as its route does.
    fn translate(self, body: &Value, log: &FieldLog) -> Result<(), Refusal> {
        let fields = &Fields::logged(body, log)?;
        if self == Self::Unload {
            return fields.required_text("model").map(drop);
        }
        fields.text("model")?;
        let source = &protocol::FolderSource {
            reference: "model".into(),
            path: String::new().into(),
            revision: None,
        }
        .into();
        let stamp = Stamp {
            id: String::new(),
            created: 0,
        };
        match self {
            Self::Chat => chat::ask(fields, source, "model", stamp).map(drop),
            Self::Completion => completions::ask(fields, source, "model", stamp).map(drop),
            Self::Response => {
                let store = ResponsesStore::default();
                store.keep(StoredResponse {
                    id: "resp_1".into(),
                    input: Vec::new(),
                    body: json!({"output": []}),
                });
                responses::ask(fields, source, "model", stamp, &store).map(drop)
            }
            Self::Message => messages::ask(fields, source, "model", stamp).map(drop),
            Self::CountTokens => return messages::count(fields, source).map(drop),
            Self::Embeddings => embeddings::ask(fields, source).map(drop),
            Self::Unload => return Ok(()),
        }?;
        unloading::keep_alive(fields).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODIES: [Body; 7] = [
        Body::Chat,
        Body::Completion,
        Body::Response,
        Body::Message,
        Body::CountTokens,
        Body::Embeddings,
        Body::Unload,
    ];

    #[test]
    fn every_example_is_taken() {
        for body in BODIES {
            for (name, example) in body.examples() {
                let taken = body.translate(&example, &FieldLog::default());
                assert!(taken.is_ok(), "{body:?} {name}: {taken:?}");
            }
        }
    }

    /// A field that is read in a branch that no example reaches would be missing from the description.
    #[test]
    fn every_field_that_the_code_reads_is_described() {
        let described = BODIES.map(|body| body.schema().to_string()).concat();
        let sources = [
            include_str!("../answer_format.rs"),
            include_str!("../anthropic/content.rs"),
            include_str!("../anthropic/messages.rs"),
            include_str!("../openai/chat.rs"),
            include_str!("../openai/completions.rs"),
            include_str!("../openai/embeddings.rs"),
            include_str!("../openai/logprobs.rs"),
            include_str!("../openai/responses.rs"),
            include_str!("../openai/responses_input.rs"),
            include_str!("../sampling.rs"),
            include_str!("../tools.rs"),
            include_str!("../unloading.rs"),
            include_str!("../call.rs"),
            include_str!("../routes.rs"),
        ];
        let readers = [
            "text",
            "word",
            "boolean",
            "list",
            "object",
            "number",
            "integer",
            "get_as",
            "text_or_list",
            "required_text",
            "required_word",
            "required_list",
            "required_as",
            "unsupported",
        ];
        let mut read = 0;
        for source in sources {
            let code = source.split("#[cfg(test)]").next().unwrap();
            for reader in readers {
                for rest in code.split(&format!(".{reader}(\"")).skip(1) {
                    let name = rest.split('"').next().unwrap();
                    assert!(described.contains(&format!("\"{name}\":{{")), "no example shows `{name}`");
                    read += 1;
                }
            }
        }
        assert!(read > 60, "{read}");
    }
}
