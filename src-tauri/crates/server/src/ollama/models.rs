//! `GET /api/tags`, `/api/ps` and `POST /api/show`: the models, with what is known of them and nothing else.

use protocol::{Capabilities, ModelInfo, ModelKind, ThinkingControl};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{json, Map, Value};

use crate::models::served::Entry;

/// The body of a request to `/api/show`; `name` is the older name of the field.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ShowFields {
    pub(crate) model: Option<String>,
    pub(crate) name: Option<String>,
}

/// The served models, and the name of one that is on no list.
pub(crate) fn tags(list: &[Entry], unlisted: Option<&str>) -> Value {
    let tag = |entry: &Entry| {
        let mut tag = named(&entry.id);
        tag.insert("size".into(), entry.model.bytes.into());
        put(&mut tag, "digest", entry.model.revision.as_deref());
        tag.insert("details".into(), details(entry, None));
        Value::from(tag)
    };
    let unlisted = unlisted.map(|name| named(name).into());
    json!({"models": list.iter().map(tag).chain(unlisted).collect::<Vec<Value>>()})
}

/// The models in memory.
pub(crate) fn running(list: &[Entry], loaded: &[ModelInfo]) -> Value {
    let running = |info: &ModelInfo| {
        let entry = list.iter().find(|entry| entry.model.reference == info.reference);
        let mut model = named(entry.map_or(&info.reference, |entry| &entry.id));
        let on_gpu = if info.device == "cpu" { 0 } else { info.resident_bytes };
        model.insert("size".into(), info.resident_bytes.into());
        model.insert("size_vram".into(), on_gpu.into());
        model.insert("digest".into(), info.revision.as_str().into());
        model.insert("context_length".into(), info.context.into());
        if let Some(entry) = entry {
            model.insert("details".into(), details(entry, Some(info)));
        }
        Value::from(model)
    };
    json!({"models": loaded.iter().map(running).collect::<Vec<_>>()})
}

/// One model; `loaded` if it is in memory.
pub(crate) fn shown(entry: &Entry, loaded: Option<&ModelInfo>, capabilities: &Capabilities) -> Value {
    let model = &entry.model;
    let mut info = Map::new();
    put(&mut info, "general.architecture", model.family.as_deref());
    if let (Some(family), Some(context)) = (&model.family, model.context) {
        info.insert(format!("{family}.context_length"), context.into());
    }
    if let Some(loaded) = loaded {
        info.insert("general.parameter_count".into(), loaded.parameters.into());
    }
    json!({"details": details(entry, loaded), "model_info": info, "capabilities": able(entry, capabilities)})
}

fn named(name: &str) -> Map<String, Value> {
    ["name", "model"]
        .into_iter()
        .map(|field| (field.to_owned(), name.into()))
        .collect()
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Option<&str>) {
    fields.extend(value.map(|value| (name.to_owned(), value.into())));
}

/// The details of a model; its parameters are counted when it is loaded.
fn details(entry: &Entry, loaded: Option<&ModelInfo>) -> Value {
    let mut details = Map::new();
    details.insert("format".into(), "safetensors".into());
    if let Some(family) = &entry.model.family {
        details.insert("family".into(), family.as_str().into());
        details.insert("families".into(), json!([family]));
    }
    put(&mut details, "quantization_level", entry.model.quantization.as_deref());
    if let Some(loaded) = loaded {
        details.insert("parameter_size".into(), parameter_size(loaded.parameters).into());
    }
    details.into()
}

/// The words of Ollama for what a model can do.
fn able(entry: &Entry, capabilities: &Capabilities) -> Vec<&'static str> {
    match entry.model.kind {
        ModelKind::Chat => {}
        ModelKind::Embedding => return vec!["embedding"],
        ModelKind::Reranker | ModelKind::Draft => return Vec::new(),
    }
    let thinks = !matches!(entry.model.thinking, None | Some(ThinkingControl::Never));
    let able = [
        ("completion", true),
        ("tools", capabilities.tools),
        ("vision", entry.model.supports_vision),
        ("thinking", thinks),
    ];
    able.into_iter()
        .filter(|(_, able)| *able)
        .map(|(word, _)| word)
        .collect()
}

/// A count of parameters as Ollama writes it, such as `8.0B` or `134.5M`.
fn parameter_size(parameters: u64) -> String {
    let count = parameters as f64;
    match parameters {
        0..1_000_000 => format!("{:.1}K", count / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1}M", count / 1e6),
        _ => format!("{:.1}B", count / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::served::tests::model;

    fn entry() -> Entry {
        let mut model = model("org/model", "model");
        model.revision = Some("88e950b".into());
        (model.family, model.quantization) = (Some("llama".into()), Some("8 bit".into()));
        Entry {
            id: "org/model".into(),
            model,
        }
    }

    fn loaded() -> ModelInfo {
        ModelInfo {
            reference: "org/model".into(),
            revision: "88e950b".into(),
            family: "llama".into(),
            quantization: "8 bit".into(),
            wrong_products: Vec::new(),
            parameters: 134_515_008,
            resident_bytes: 142,
            context: 2048,
            thinking: ThinkingControl::Never,
            template_hash: String::new(),
            device: "metal".into(),
            processor: None,
            load_ms: 0.0,
            supports_vision: false,
        }
    }

    #[test]
    fn a_tag_has_what_is_known_and_no_field_that_is_not() {
        let details =
            json!({"format": "safetensors", "family": "llama", "families": ["llama"], "quantization_level": "8 bit"});
        assert_eq!(
            tags(&[entry()], None),
            json!({"models": [{"name": "org/model", "model": "org/model", "size": 1, "digest": "88e950b", "details": details}]})
        );
        let unknown = Entry {
            id: "own".into(),
            model: model("/models/own", "own"),
        };
        assert_eq!(
            tags(&[unknown], Some("other"))["models"],
            json!([{"name": "own", "model": "own", "size": 1, "details": {"format": "safetensors"}},
                {"name": "other", "model": "other"}])
        );
    }

    #[test]
    fn a_loaded_model_has_its_memory_and_its_parameters() {
        let model = &running(&[entry()], &[loaded()])["models"][0];
        assert_eq!(
            (&model["name"], &model["size_vram"]),
            (&json!("org/model"), &json!(142))
        );
        assert_eq!(
            (&model["context_length"], &model["details"]["parameter_size"]),
            (&json!(2048), &json!("134.5M"))
        );
        let on_cpu = ModelInfo {
            device: "cpu".into(),
            ..loaded()
        };
        let unlisted = &running(&[], &[on_cpu])["models"][0];
        assert_eq!(
            (&unlisted["name"], &unlisted["size"], &unlisted["size_vram"]),
            (&json!("org/model"), &json!(142), &json!(0))
        );
        assert_eq!(
            (parameter_size(8_030_000_000), parameter_size(4_000)),
            ("8.0B".into(), "4.0K".into())
        );
    }

    #[test]
    fn a_model_is_shown_with_its_context_and_what_it_can_do() {
        let capabilities = Capabilities {
            tools: true,
            ..Capabilities::default()
        };
        let mut entry = entry();
        entry.model.thinking = Some(ThinkingControl::Switch { default_on: false });
        entry.model.supports_vision = true;
        let told = shown(&entry, Some(&loaded()), &capabilities);
        assert_eq!(
            told["model_info"],
            json!({"general.architecture": "llama", "llama.context_length": 4096, "general.parameter_count": 134_515_008})
        );
        assert_eq!(
            told["capabilities"],
            json!(["completion", "tools", "vision", "thinking"])
        );
        entry.model.kind = ModelKind::Embedding;
        assert_eq!(shown(&entry, None, &capabilities)["capabilities"], json!(["embedding"]));
    }
}
