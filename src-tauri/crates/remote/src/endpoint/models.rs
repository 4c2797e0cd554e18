//! The lists of models that endpoints send.

use std::collections::HashSet;

use api::{Endpoint, RemoteModel};
use protocol::{ModelSource, ThinkingControl};
use serde_json::Value;

use super::address::leaves_computer;

/// The fields in which servers report the context length: vLLM, OpenRouter and LM Studio, llama-server.
const CONTEXTS: [&str; 7] = [
    "/max_model_len",
    "/loaded_context_length",
    "/context_length",
    "/max_context_length",
    "/context_window",
    "/meta/n_ctx",
    "/meta/n_ctx_train",
];

/// The models of `GET /models`; entries without an id are left out. `thinking` tells what is known of a model's switch.
pub(crate) fn models(
    endpoint: &Endpoint,
    list: &Value,
    thinking: impl Fn(&ModelSource) -> ThinkingControl,
) -> Vec<RemoteModel> {
    let entries = list
        .get("data")
        .or_else(|| list.get("models"))
        .unwrap_or(list)
        .as_array();
    let mut models: Vec<RemoteModel> = Vec::new();
    let mut known = HashSet::new();
    for entry in entries.into_iter().flatten() {
        let id = entry.get("id").or_else(|| entry.get("name")).unwrap_or(entry);
        // Names are printed, and a terminal obeys control characters.
        let Some(name) = id
            .as_str()
            .filter(|name| !name.is_empty() && !name.contains(char::is_control))
        else {
            continue;
        };
        if !known.insert(name) {
            continue;
        }
        let source = ModelSource::Remote {
            endpoint: endpoint.name.clone(),
            name: name.into(),
        };
        let context = CONTEXTS.iter().find_map(|place| entry.pointer(place)?.as_u64());
        models.push(RemoteModel {
            reference: source.reference(),
            endpoint: endpoint.name.clone(),
            name: name.into(),
            context: context
                .and_then(|context| u32::try_from(context).ok())
                .filter(|context| *context > 0),
            thinking: thinking(&source),
            leaves_computer: leaves_computer(endpoint),
        });
    }
    models
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn contexts_are_read_where_servers_tell_them() {
        let endpoint = crate::endpoint::endpoint("lab", "http://lab:1").expect("it is one");
        let list = json!({"object": "list", "data": [
            {"id": "a/b", "max_model_len": 4096}, {"id": "c", "meta": {"n_ctx_train": 512}}, {"id": "d"}, {"id": "d"}, {"object": "model"},
            {"id": "e", "context_length": 0}, {"id": "f\u{1b}[2J"}]});
        let found = models(&endpoint, &list, |_| ThinkingControl::Always);
        let read: Vec<_> = found
            .iter()
            .map(|model| (model.reference.as_str(), model.context))
            .collect();
        assert_eq!(
            read,
            [
                ("endpoint:lab/a/b", Some(4096)),
                ("endpoint:lab/c", Some(512)),
                ("endpoint:lab/d", None),
                ("endpoint:lab/e", None)
            ]
        );
        assert!(found.iter().all(|model| model.leaves_computer));
        assert!(models(&endpoint, &json!({"error": "no"}), |_| ThinkingControl::Always).is_empty());
    }
}
