//! `GET /openapi.json`: the routes in the form of OpenAPI 3.1. A body is described by the structs that read it, so the
//! description cannot differ from the code.

mod replies;

use schemars::generate::SchemaSettings;
use serde_json::{json, Map, Value};

use crate::anthropic::messages;
use crate::models::keep_alive::KeepAliveField;
use crate::models::served::{ModelField, UnloadFields};
use crate::ollama;
use crate::openai::{chat, completions, embeddings, responses};
use crate::request::fields::{self, Body as _};

/// A route as it is described. The router takes no other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    /// `get`, `post` or `delete`.
    pub(crate) method: &'static str,
    /// The path, in the router's form.
    pub(crate) path: &'static str,
    /// A one-line summary.
    pub(crate) summary: &'static str,
    /// The body that it takes, if it takes one.
    pub(crate) body: Option<Body>,
    /// The format of the response.
    pub(crate) reply: Reply,
}

/// The bodies of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Chat,
    Completion,
    Response,
    Message,
    CountTokens,
    Embeddings,
    Unload,
    OllamaChat,
    OllamaGenerate,
    OllamaEmbed,
    OllamaEmbeddings,
    OllamaShow,
}

/// The formats of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// JSON of this name among the schemas.
    Json(&'static str),
    /// The same, or a stream of Server-Sent Events if `stream` is true.
    JsonOrEvents(&'static str),
    /// The same, or a stream of lines of JSON unless `stream` is false.
    JsonOrLines(&'static str),
    /// Text of this media type.
    Text(&'static str),
}

/// The description of these routes; the `versioned` ones also exist below `/v1`. Without a model that serves every name,
/// a request must name its own.
pub(crate) fn document(versioned: &[Operation], others: &[Operation], model_required: bool) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let versioned = versioned
        .iter()
        .map(|operation| (format!("/v1{}", operation.path), operation));
    let others = others.iter().map(|operation| (operation.path.to_owned(), operation));
    for (path, operation) in versioned.chain(others) {
        // A wildcard of the router, for ids that contain slashes.
        let path = path.replace("{*", "{");
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[operation.method] = described(operation, model_required);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ponder",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Models of this computer behind OpenAI's, Anthropic's and Ollama's interfaces. Each path below /v1 works without /v1 too. \
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

fn described(operation: &Operation, model_required: bool) -> Value {
    let schema = |name: &str| json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
    let mut content = Map::new();
    match operation.reply {
        Reply::Json(name) | Reply::JsonOrEvents(name) | Reply::JsonOrLines(name) => {
            content.insert("application/json".into(), schema(name))
        }
        Reply::Text(kind) => content.insert(kind.into(), json!({"schema": {"type": "string"}})),
    };
    if let Reply::JsonOrEvents(_) = operation.reply {
        // Tools check each event by this, not the text of all.
        let event = json!({"type": "object", "required": ["data"], "description": "A Server-Sent Event; a stream of them if `stream` is true.",
            "properties": {"event": {"type": "string"}, "data": {"type": "string"}}});
        let events = json!({"schema": event});
        content.insert("text/event-stream".into(), events);
    }
    if let Reply::JsonOrLines(_) = operation.reply {
        let lines = json!({"type": "string", "description": "An object on each line; a stream of them unless `stream` is false."});
        content.insert("application/x-ndjson".into(), json!({ "schema": lines }));
    }
    let error = schema(match operation.path {
        path if path.starts_with("/messages") => "AnthropicError",
        path if path.starts_with("/api/") => "OllamaError",
        _ => "OpenAiError",
    });
    let mut described = json!({
        "summary": operation.summary,
        "responses": {
            "200": {"description": "The answer.", "content": content},
            "default": {"description": "A refusal.", "content": {"application/json": error}},
        },
    });
    let parameters = parameters(operation);
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(body) = operation.body {
        let mut schema = body.schema();
        if model_required {
            require_model(&mut schema);
        }
        let content = json!({"application/json": {"schema": schema, "examples": examples(operation.path, &schema)}});
        described["requestBody"] = json!({"required": true, "content": content});
    }
    described
}

/// Makes the field required that names the model; where it has an older name, one of both.
fn require_model(schema: &mut Value) {
    if schema["properties"].get("name").is_some() {
        schema["anyOf"] = json!([{"required": ["model"]}, {"required": ["name"]}]);
        return;
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let others = required.filter(|name| *name != "model").cloned();
    schema["required"] = others.chain([json!("model")]).collect();
    schema["properties"]["model"]["type"] = "string".into();
}

/// The id in a path, and the fields of a query.
fn parameters(operation: &Operation) -> Vec<Value> {
    let query = |name: &str, schema: Value| json!({"name": name, "in": "query", "required": false, "schema": schema});
    let mut parameters = Vec::new();
    if operation.path.contains("id}") {
        parameters.push(json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}));
    }
    match (operation.method, operation.path) {
        ("get", "/responses/{id}") => {
            parameters.push(query("stream", json!({"type": "boolean"})));
            parameters.push(query("starting_after", json!({"type": "integer", "minimum": 0})));
        }
        ("get", "/responses/{id}/input_items") => {
            parameters.push(query("limit", json!({"type": "integer", "minimum": 1, "maximum": 100})));
            parameters.push(query("order", json!({"type": "string", "enum": ["asc", "desc"]})));
            parameters.push(query("after", json!({"type": "string"})));
        }
        _ => {}
    }
    parameters
}

/// Example requests for a path. Tokens are counted for the same requests without the fields of how an answer is made.
fn examples(path: &str, schema: &Value) -> Map<String, Value> {
    let all: Value = serde_json::from_str(include_str!("examples.json")).unwrap_or_default();
    let path = path.trim_end_matches("/count_tokens").trim_end_matches("/input_tokens");
    let examples = all[path].as_object();
    let described = |(name, example): (&String, &Value)| {
        let mut fields = example.as_object().cloned().unwrap_or_default();
        fields.retain(|field, _| schema["properties"].get(field).is_some());
        (name.clone(), json!({"value": fields}))
    };
    examples.into_iter().flatten().map(described).collect()
}

impl Body {
    fn schema(self) -> Value {
        match self {
            Self::Chat => schema::<chat::Body>(true, chat::UNSUPPORTED),
            Self::Completion => schema::<completions::Body>(true, &[]),
            Self::Response => schema::<responses::Body>(true, responses::UNSUPPORTED),
            Self::Message => schema::<messages::Body>(true, &[]),
            Self::CountTokens => schema::<(ModelField, messages::ConversationFields)>(false, &[]),
            Self::Embeddings => schema::<embeddings::Body>(true, &[]),
            Self::Unload => schema::<(UnloadFields,)>(false, &[]),
            Self::OllamaChat => schema::<ollama::chat::Body>(true, &[]),
            Self::OllamaGenerate => schema::<ollama::generate::Body>(true, &[]),
            Self::OllamaEmbed => schema::<ollama::embed::Body>(true, &[]),
            Self::OllamaEmbeddings => schema::<ollama::embed::OneBody>(true, &[]),
            Self::OllamaShow => schema::<(ollama::models::ShowFields,)>(false, &[]),
        }
    }
}

/// The schema of a body that consists of these structs, the fields of every answer if it asks for one, and refused fields. Fields that no
/// struct has are allowed, because they are ignored.
fn schema<B: fields::Body>(answer: bool, unsupported: &[(&str, &str)]) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let mut parts = B::schemas(&mut generator);
    if answer {
        parts.extend(<(ModelField, KeepAliveField)>::schemas(&mut generator));
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts {
        let mut part = part.to_value();
        tidy(&mut part);
        if let Some(Value::Object(fields)) = part.get_mut("properties").map(Value::take) {
            properties.extend(fields);
        }
        required.extend(part["required"].as_array().cloned().into_iter().flatten());
    }
    for (name, hint) in unsupported {
        let refused = json!({"type": "null", "description": format!("Refused: {hint}.")});
        properties.insert((*name).to_owned(), refused);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Leaves out what Rust's types add to a schema, and writes the one that allows everything as an object.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Object(keywords) => {
            for keyword in ["title", "description", "format", "default", "$schema"] {
                keywords.remove(keyword);
            }
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    ("properties", Value::Object(properties)) => properties.values_mut().for_each(tidy),
                    ("items", items) => tidy(items),
                    ("anyOf", Value::Array(choices)) => choices.iter_mut().for_each(tidy),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}
