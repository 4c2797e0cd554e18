//! `GET /api/v0/models`: the models in LM Studio's form.

use protocol::ModelKind;
use serde_json::{json, Value};

use crate::models::served::Entry;

/// The served models; `loaded` are the references of those in memory.
pub(crate) fn models(list: &[Entry], loaded: &[String]) -> Value {
    let data: Vec<Value> = list.iter().map(|entry| model(entry, loaded)).collect();
    json!({"object": "list", "data": data})
}

/// One model. Fields that are not known are left out.
pub(crate) fn model(entry: &Entry, loaded: &[String]) -> Value {
    let model = &entry.model;
    let kind = match (model.kind, model.supports_vision) {
        // LM Studio has no word of its own for rerankers and drafts; they answer nothing, as embedding models do.
        (ModelKind::Embedding | ModelKind::Reranker | ModelKind::Draft, _) => "embeddings",
        (ModelKind::Chat, true) => "vlm",
        (ModelKind::Chat, false) => "llm",
    };
    let state = if loaded.contains(&model.reference) {
        "loaded"
    } else {
        "not-loaded"
    };
    let mut told =
        json!({"id": entry.id, "object": "model", "type": kind, "compatibility_type": "mlx", "state": state});
    // A hub id is publisher/name; a folder's path begins with a slash.
    let publisher = model.reference.split_once('/').map(|(publisher, _)| publisher);
    if let Some(publisher) = publisher.filter(|publisher| !publisher.is_empty()) {
        told["publisher"] = publisher.into();
    }
    if let Some(family) = &model.family {
        told["arch"] = family.as_str().into();
    }
    if let Some(quantization) = &model.quantization {
        told["quantization"] = quantization.as_str().into();
    }
    if let Some(context) = model.context {
        told["max_context_length"] = context.into();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::served::tests::model as local;

    #[test]
    fn a_model_has_what_is_known_of_it() {
        let entry = |reference: &str| Entry {
            id: reference.into(),
            model: local(reference, "a"),
        };
        let mut known = entry("org/model");
        (known.model.family, known.model.quantization) = (Some("llama".into()), Some("8 bit".into()));
        known.model.supports_vision = true;
        assert_eq!(
            model(&known, &["org/model".into()]),
            json!({"id": "org/model", "object": "model", "type": "vlm", "compatibility_type": "mlx", "state": "loaded",
                "publisher": "org", "arch": "llama", "quantization": "8 bit", "max_context_length": 4096})
        );
        let own = model(&entry("/models/own"), &[]);
        assert_eq!(
            (&own["type"], &own["state"], own.get("publisher")),
            (&json!("llm"), &json!("not-loaded"), None)
        );
    }
}
