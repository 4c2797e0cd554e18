//! `/openapi.json` compared with the behavior of the routes.

use serde_json::{json, Value};
use server::ServerConfig;

use crate::client::{ask, get, post, Response};
use crate::harness::Harness;
use crate::recorded::every_recorded_request;

const METHODS: [&str; 3] = ["get", "post", "delete"];

async fn description(harness: &Harness) -> Value {
    get(harness.address, "/openapi.json").await.json()
}

/// The violations of a schema by a value, for the keywords that the description uses; another keyword fails the test.
fn faults(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (keyword, wanted) in schema.as_object().unwrap() {
        let inner = |schema: &Value, value: &Value, place: String| self::faults(root, schema, value, &place);
        let right = match keyword.as_str() {
            "$ref" => {
                let target = root
                    .pointer(wanted.as_str().unwrap().strip_prefix('#').unwrap())
                    .unwrap();
                faults.extend(inner(target, value, place.to_owned()));
                true
            }
            "type" => match wanted {
                Value::Array(kinds) => kinds.iter().any(|kind| is(kind, value)),
                kind => is(kind, value),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "anyOf" => wanted
                .as_array()
                .unwrap()
                .iter()
                .any(|choice| inner(choice, value, place.to_owned()).is_empty()),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "minItems" => value
                .as_array()
                .is_none_or(|list| list.len() as u64 >= wanted.as_u64().unwrap()),
            "maxItems" => value
                .as_array()
                .is_none_or(|list| list.len() as u64 <= wanted.as_u64().unwrap()),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    faults.extend(inner(wanted, item, format!("{place}[{index}]")));
                }
                true
            }
            "required" => value.as_object().is_none_or(|object| {
                wanted
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(field) = value.get(name) {
                        faults.extend(inner(schema, field, format!("{place}.{name}")));
                    }
                }
                true
            }
            "additionalProperties" if *wanted == false => {
                let known = &schema["properties"];
                value
                    .as_object()
                    .is_none_or(|object| object.keys().all(|name| known.get(name).is_some()))
            }
            "additionalProperties" | "description" => true,
            other => panic!("the keyword {other} is not known to this test"),
        };
        if !right {
            faults.push(format!("{place} is not {keyword} {wanted}: {value}"));
        }
    }
    faults
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other}"),
    }
}

/// Every operation: its path, its method and its description.
fn operations(description: &Value) -> Vec<(String, String, Value)> {
    let mut operations = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(METHODS.contains(&method.as_str()));
            operations.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    operations
}

fn body_of(operation: &Value) -> Option<(Value, Vec<Value>)> {
    let content = operation.pointer("/requestBody/content/application~1json")?;
    let examples = content["examples"]
        .as_object()?
        .values()
        .map(|example| example["value"].clone());
    Some((content["schema"].clone(), examples.collect()))
}

/// Answers jobs until it is dropped, and serves the names of the examples.
async fn harness() -> (Harness, tokio::task::JoinHandle<()>) {
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    (harness, answering)
}

/// An example as this server can answer it.
fn as_sent(path: &str, mut example: Value) -> Value {
    example["model"] = if path.ends_with("embeddings") || path.ends_with("/embed") {
        "org/embedder"
    } else {
        "pebble"
    }
    .into();
    if let Some(fields) = example.as_object_mut() {
        fields.remove("previous_response_id");
    }
    example
}

#[tokio::test]
async fn every_described_path_is_there_and_no_other_method_is() {
    let (harness, answering) = harness().await;
    let description = description(&harness).await;
    let operations = operations(&description);
    assert!(operations.len() >= 15, "{}", operations.len());
    for (path, _, _) in &operations {
        let described: Vec<&str> = METHODS
            .into_iter()
            .filter(|method| description["paths"][path].get(method).is_some())
            .collect();
        let asked = path.replace("{id}", "none");
        for method in METHODS {
            let json = [("content-type", "application/json")];
            let response = ask(&method.to_uppercase(), harness.address, &asked, &json, b"{}").await;
            let other_method = response.head.status == 405;
            assert_eq!(
                other_method,
                !described.contains(&method),
                "{method} {path}: {}",
                response.body
            );
            if other_method {
                let allowed = response.head.header("allow");
                let allowed = allowed.unwrap_or_else(|| panic!("{method} {path} tells no methods"));
                let allowed: Vec<&str> = allowed.split(", ").filter(|method| *method != "HEAD").collect();
                assert_eq!(allowed.len(), described.len(), "{method} {path}: {allowed:?}");
                let named = allowed
                    .iter()
                    .all(|method| described.contains(&method.to_lowercase().as_str()));
                assert!(named, "{method} {path}: {allowed:?}");
            }
            let no_path = response.head.status == 404 && response.body.contains("no such path");
            assert!(!no_path, "{method} {path}");
        }
    }
    answering.abort();
}

/// A request that names no model is refused unless one serves every name, and described so.
#[tokio::test]
async fn a_model_is_required_unless_one_serves_every_name() {
    let any = ServerConfig {
        fallback_model: Some("pebble".into()),
        ..ServerConfig::default()
    };
    for (config, required) in [(ServerConfig::default(), true), (any, false)] {
        let harness = Harness::with(config).await;
        let description = description(&harness).await;
        for (path, _, operation) in operations(&description) {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            // Unloading needs a name in any case.
            if schema["properties"].get("model").is_none() || path.ends_with("unload") {
                continue;
            }
            let names = |list: &Value| list.as_array().is_some_and(|list| list.contains(&json!("model")));
            let either = schema["anyOf"].as_array().is_some_and(|all| names(&all[0]["required"]));
            assert_eq!(names(&schema["required"]) || either, required, "{path}");
        }
    }
}

/// Checks a response with status 200; true if it is JSON, which its schema describes.
fn is_as_described(description: &Value, path: &str, operation: &Value, response: &Response) -> bool {
    let kind = response.head.header("content-type").unwrap();
    let kind = kind.split(';').next().unwrap();
    let described = &operation["responses"]["200"]["content"][kind];
    assert!(described.is_object(), "{path} answers with {kind}");
    let json = kind == "application/json";
    if json {
        let wrong = faults(description, &described["schema"], &response.json(), "answer");
        assert_eq!(wrong, [] as [String; 0], "{path}");
    }
    if kind == "application/x-ndjson" {
        let lines: Vec<Value> = response
            .body
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let done: Vec<bool> = lines.iter().map(|line| line["done"].as_bool().unwrap()).collect();
        assert!(
            done.iter().rev().skip(1).all(|done| !done) && done.last() == Some(&true),
            "{path}: {done:?}"
        );
    }
    if kind == "text/event-stream" {
        let events: Vec<Value> = response.body.split("\n\n").filter_map(event).collect();
        assert!(!events.is_empty());
        for event in events {
            let wrong = faults(description, &described["schema"], &event, "event");
            assert_eq!(wrong, [] as [String; 0], "{path}: {event}");
        }
    }
    json
}

/// An event as tools such as Schemathesis see it: an object of its fields, each with its text; `None` for comments.
fn event(block: &str) -> Option<Value> {
    let fields: Vec<(&str, &str)> = block.lines().filter_map(|line| line.split_once(": ")).collect();
    let fields = fields.into_iter().filter(|(name, _)| !name.is_empty());
    let object: serde_json::Map<String, Value> = fields.map(|(name, text)| (name.to_owned(), text.into())).collect();
    (!object.is_empty()).then(|| object.into())
}

#[tokio::test]
async fn every_example_is_answered_as_described() {
    let (harness, answering) = harness().await;
    let description = description(&harness).await;
    let (mut answered, mut whole) = (0, 0);
    for (path, method, operation) in operations(&description) {
        for example in body_of(&operation).map(|(_, examples)| examples).unwrap_or_default() {
            let (schema, _) = body_of(&operation).unwrap();
            assert_eq!(
                faults(&description, &schema, &example, "body"),
                [] as [String; 0],
                "{path}"
            );
            for stream in [true, false] {
                let mut sent = as_sent(&path, example.clone());
                if sent.get("stream").is_some() {
                    sent["stream"] = stream.into();
                }
                let response = post(harness.address, &path, &sent).await;
                assert_eq!(response.head.status, 200, "{path}: {}", response.body);
                answered += 1;
                whole += usize::from(is_as_described(&description, &path, &operation, &response));
            }
        }
        if method == "get" && !path.contains("{id}") {
            let response = get(harness.address, &path).await;
            is_as_described(&description, &path, &operation, &response);
        }
    }
    assert!(answered >= 50 && whole >= 35, "{answered} {whole}");
    answering.abort();
}

/// A value that a field does not take, by its schema.
fn wrong_values(schema: &Value) -> Vec<Value> {
    let mut wrong = Vec::new();
    for value in [
        json!("no such word"),
        json!(true),
        json!({"no": "such"}),
        json!([{"no": "such"}]),
        json!(0.5),
    ] {
        if !faults(schema, schema, &value, "").is_empty() {
            wrong.push(value);
        }
    }
    for (bound, step) in [("minimum", -1.0), ("maximum", 1.0)] {
        if let Some(bound) = schema.get(bound).and_then(Value::as_f64) {
            wrong.push(json!(bound + step));
        }
    }
    wrong
}

#[tokio::test]
async fn every_described_field_is_refused_by_its_name_if_it_is_wrong() {
    let (harness, answering) = harness().await;
    let description = description(&harness).await;
    let (mut fields, mut refused) = (0, 0);
    for (path, _, operation) in operations(&description) {
        let Some((schema, examples)) = body_of(&operation) else {
            continue;
        };
        let plain = as_sent(&path, examples[0].clone());
        for (name, field) in schema["properties"].as_object().unwrap() {
            fields += 1;
            let mut unset = plain.clone();
            unset[name] = Value::Null;
            let required = schema["required"]
                .as_array()
                .is_some_and(|names| names.contains(&json!(name)));
            // Without a name the only model answers, or none, but no translation asks for it.
            let status = post(harness.address, &path, &unset).await.head.status;
            if !matches!(name.as_str(), "model" | "input") || path.ends_with("/unload") {
                assert_eq!(status == 400, required, "{path} without {name}");
            }
            for value in wrong_values(field) {
                let mut sent = plain.clone();
                sent[name] = value.clone();
                let response = post(harness.address, &path, &sent).await;
                let words = format!("{path} {name} {value}: {}", response.body);
                assert_eq!(response.head.status, 400, "{words}");
                let error = &response.json()["error"];
                let message = error["message"].as_str().or(error.as_str()).unwrap().to_owned();
                assert!(message.starts_with(name.as_str()), "{words}");
                refused += 1;
            }
        }
    }
    assert!(fields > 120 && refused > 400, "{fields} {refused}");
    answering.abort();
}

#[tokio::test]
async fn what_clients_send_is_as_described() {
    let (harness, answering) = harness().await;
    let description = description(&harness).await;
    let mut validated = 0;
    for (path, body) in every_recorded_request() {
        let path = path.split('?').next().unwrap();
        let versioned = if path.starts_with("/v1") || path.starts_with("/api/") {
            path.to_owned()
        } else {
            format!("/v1{path}")
        };
        let Some(operation) = description["paths"]
            .get(&versioned)
            .and_then(|methods| methods.get("post"))
        else {
            continue;
        };
        let (schema, _) = body_of(operation).unwrap();
        assert_eq!(
            faults(&description, &schema, &body, "body"),
            [] as [String; 0],
            "{path}"
        );
        validated += 1;
    }
    assert!(validated >= 65, "{validated}");
    answering.abort();
}

#[tokio::test]
async fn refusals_are_as_described() {
    let harness = Harness::open().await;
    let description = description(&harness).await;
    for path in [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/api/chat",
        "/api/generate",
        "/api/embed",
        "/api/show",
    ] {
        for body in [json!({}), json!({"model": "nobody"}), json!([])] {
            let response = post(harness.address, path, &body).await;
            assert!(response.head.status >= 400);
            let schema =
                &description["paths"][path]["post"]["responses"]["default"]["content"]["application/json"]["schema"];
            let wrong = faults(&description, schema, &response.json(), "refusal");
            assert_eq!(wrong, [] as [String; 0], "{path}");
        }
    }
}
