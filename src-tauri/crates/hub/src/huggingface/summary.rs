//! The hub's summary of a model, as searches and descriptions have it.

use api::HubModel;
use checkpoint::ModelCard;
use jiff::Timestamp;
use protocol::ModelKind;
use serde_json::Value;

use crate::cache::{Commit, RepositoryId};
use crate::error::Error;
use crate::local::inspect::name_of;

/// Tasks whose models may write text; a model without a task may as well.
const WRITERS: [&str; 4] = [
    "text-generation",
    "image-text-to-text",
    "any-to-any",
    "text2text-generation",
];

/// The useful part of the hub's summary of a model.
#[derive(Debug, Clone)]
pub(crate) struct HubSummary {
    pub(crate) id: RepositoryId,
    pub(crate) commit: Option<Commit>,
    /// The fields that the summary has: no context, no verdict.
    pub(crate) model: HubModel,
    /// True for models that write text.
    pub(crate) writes: bool,
}

impl HubSummary {
    /// Reads a summary.
    ///
    /// # Errors
    /// [`Error::Name`] for an invalid id.
    pub(crate) fn read(summary: &Value) -> Result<Self, Error> {
        let id = summary["id"].as_str().or_else(|| summary["modelId"].as_str());
        let id = RepositoryId::new(id.unwrap_or_default())?;
        let tags = summary["tags"].as_array().into_iter().flatten();
        let tags: Vec<&str> = tags.filter_map(Value::as_str).collect();
        let number = |name: &str| summary[name].as_u64().unwrap_or_default();
        let use_of = summary["pipeline_tag"].as_str();
        Ok(Self {
            commit: summary["sha"].as_str().and_then(|sha| Commit::new(sha).ok()),
            writes: use_of.is_none_or(|tag| WRITERS.contains(&tag)),
            model: HubModel {
                kind: ModelCard::new(tags.iter().copied().chain(use_of), [id.as_str()]).kind(),
                downloads: number("downloads"),
                likes: number("likes"),
                updated_at: summary["lastModified"]
                    .as_str()
                    .and_then(|time| time.parse::<Timestamp>().ok())
                    .map(Timestamp::as_millisecond),
                bytes: weights(&summary["safetensors"]["parameters"]),
                quantization: quantization(&tags, id.as_str()),
                licence: licence(&summary["cardData"], &tags),
                family: summary["config"]["model_type"].as_str().map(str::to_owned),
                // `false`, or the way to get access: "auto", "manual".
                gated: summary["gated"].as_str().is_some() || summary["gated"] == true,
                ..blank(id.as_str())
            },
            id,
        })
    }
}

/// A model of which only the id is known.
pub(crate) fn blank(id: &str) -> HubModel {
    HubModel {
        id: id.to_owned(),
        name: name_of(id),
        author: id.split_once('/').map_or("", |(owner, _)| owner).to_owned(),
        kind: ModelKind::Chat,
        downloads: 0,
        likes: 0,
        updated_at: None,
        bytes: None,
        quantization: None,
        context: None,
        licence: None,
        family: None,
        gated: false,
        thinking: None,
        problem: None,
        described: false,
        commit: None,
        revision: None,
        fit: None,
        here: false,
        note: None,
        cached_at: None,
    }
}

/// Bytes of the weights, from the count of parameters of each type.
fn weights(parameters: &Value) -> Option<u64> {
    let sizes = parameters.as_object()?.iter().map(|(kind, count)| {
        let size = match kind.as_str() {
            "F64" | "I64" | "U64" => 8,
            "F32" | "I32" | "U32" => 4,
            "F16" | "BF16" | "I16" | "U16" => 2,
            _ => 1,
        };
        count.as_u64()?.checked_mul(size)
    });
    let sum = sizes.sum::<Option<u64>>()?;
    (sum > 0).then_some(sum)
}

/// The quantization by the tags (`4-bit`), else by the name (`…-4bit`, `…-mxfp4`, `…-bf16`).
pub(crate) fn quantization(tags: &[&str], id: &str) -> Option<String> {
    let bits = |text: &str| {
        let number = text.strip_suffix("bit")?.trim_end_matches(['-', '_']);
        number.parse::<u8>().ok().filter(|bits| (1..=8).contains(bits))
    };
    let lower = id.to_lowercase();
    let words = || lower.split(['-', '_', '/', '.']);
    let formats = ["mxfp4", "mxfp8", "nvfp4"];
    if let Some(format) = words().find(|word| formats.contains(word)) {
        return Some(format.to_owned());
    }
    let short = |word: &str| {
        word.strip_prefix('q')?
            .parse()
            .ok()
            .filter(|bits| (2..=8).contains(bits))
    };
    let named = words().find_map(|word| bits(word).or_else(|| short(word)));
    if let Some(bits) = named.or_else(|| tags.iter().find_map(|tag| bits(tag))) {
        return Some(format!("{bits} bit"));
    }
    let plain = [("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32")];
    let (_, name) = plain.iter().find(|(short, _)| words().any(|word| word == *short))?;
    Some((*name).to_owned())
}

fn licence(card: &Value, tags: &[&str]) -> Option<String> {
    let of_card = match &card["license"] {
        Value::String(name) if name != "other" => Some(name.as_str()),
        Value::Array(names) => names.first().and_then(Value::as_str),
        _ => card["license_name"].as_str(),
    };
    let found = of_card.or_else(|| tags.iter().find_map(|tag| tag.strip_prefix("license:")));
    let shown = |name: &str| {
        name.chars()
            .filter(|character| !character.is_control())
            .take(60)
            .collect()
    };
    found.map(shown)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_embedding_model_is_told_from_one_to_chat_with() {
        let kind = |id: &str, tags: Value| {
            let summary = json!({"id": id, "pipeline_tag": "text-generation", "tags": tags});
            HubSummary::read(&summary).unwrap().model.kind
        };
        let converted = json!(["mlx", "sentence-transformers", "base_model:Qwen/Qwen3-Embedding-0.6B"]);
        assert_eq!(kind("mlx-community/a", converted), ModelKind::Embedding);
        assert_eq!(
            kind("mlx-community/Qwen3-Embedding-8B-4bit", json!([])),
            ModelKind::Embedding
        );
        assert_eq!(kind("mlx-community/Qwen3-8B-4bit", json!(["mlx"])), ModelKind::Chat);
    }

    #[test]
    fn what_a_search_tells_is_read() {
        let summary = HubSummary::read(&json!({
            "id": "mlx-community/Qwen3-4B-4bit", "sha": "a".repeat(40), "downloads": 12, "likes": 3, "gated": false,
            "lastModified": "2026-11-01T12:00:00.000Z", "pipeline_tag": "text-generation",
            "tags": ["mlx", "license:apache-2.0", "4-bit"],
            "safetensors": {"parameters": {"BF16": 10, "U32": 100}, "total": 110},
        }))
        .unwrap();
        let model = summary.model;
        assert!(summary.writes && summary.commit.is_some() && !model.gated && !model.described);
        assert_eq!(
            (model.name.as_str(), model.author.as_str()),
            ("Qwen3 4B 4bit", "mlx-community")
        );
        assert_eq!((model.bytes, model.quantization.as_deref()), (Some(420), Some("4 bit")));
        assert_eq!(
            (model.updated_at, model.licence.as_deref()),
            (Some(1_793_534_400_000), Some("apache-2.0"))
        );
    }

    #[test]
    fn nonsense_tells_nothing_and_breaks_nothing() {
        let summary = HubSummary::read(
            &json!({"id": "o/n", "tags": 7, "downloads": -1, "gated": "manual", "safetensors": {"parameters": {"F32": "x"}}}),
        );
        let summary = summary.unwrap();
        assert!(summary.model.gated && summary.model.bytes.is_none() && summary.commit.is_none());
        for id in [json!("../x"), json!(null), json!("o/n/x"), json!({"a": 1})] {
            assert!(HubSummary::read(&json!({ "id": id })).is_err());
        }
    }

    #[test]
    fn a_quantisation_is_told_from_tags_and_names() {
        let of = |tags: &[&str], id: &str| quantization(tags, id);
        assert_eq!(of(&[], "o/gpt-oss-20b-MXFP4-Q8").as_deref(), Some("mxfp4"));
        assert_eq!(of(&["8-bit"], "o/n").as_deref(), Some("8 bit"));
        assert_eq!(of(&[], "o/n_6bit").as_deref(), Some("6 bit"));
        assert_eq!(of(&[], "o/Qwen3-4B-q4").as_deref(), Some("4 bit"));
        assert_eq!(of(&[], "o/Qwen3-4B-bf16").as_deref(), Some("bfloat16"));
        assert_eq!(of(&[], "o/Qwen3-4B").as_deref(), None);
        assert_eq!(of(&[], "o/64bit").as_deref(), None);
    }
}
