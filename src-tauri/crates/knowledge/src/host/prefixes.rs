//! The words that embedding models were trained to read before a text: before a question others than before a passage.
//!
//! Sources: `config_sentence_transformers.json` of a model, field `prompts`; for the E5 models, which have none there,
//! their model cards.

use std::path::Path;

use serde::Deserialize;

/// The longest file of prompts, in bytes.
const LONGEST: u64 = 1 << 20;

/// The words before questions and passages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prefixes {
    /// Before a question.
    pub question: String,
    /// Before a passage.
    pub passage: String,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    prompts: std::collections::BTreeMap<String, String>,
}

impl Prefixes {
    /// Those of the model with this reference in this folder.
    pub(super) fn of(folder: &Path, reference: &str) -> Self {
        let found = read(&folder.join("config_sentence_transformers.json")).unwrap_or_default();
        if found != Self::default() {
            return found;
        }
        let name = reference.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
        let is_e5 = name.starts_with("e5-") || name.contains("-e5-");
        match is_e5 && !name.contains("instruct") {
            true => Self {
                question: "query: ".into(),
                passage: "passage: ".into(),
            },
            false => Self::default(),
        }
    }
}

fn read(path: &Path) -> Option<Prefixes> {
    if std::fs::metadata(path).ok()?.len() > LONGEST {
        return None;
    }
    let config: Config = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let prompt = |names: &[&str]| {
        let found = names.iter().find_map(|name| config.prompts.get(*name));
        found.cloned().unwrap_or_default()
    };
    Some(Prefixes {
        question: prompt(&["query", "Retrieval-query"]),
        passage: prompt(&["document", "passage", "Retrieval-document"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompts_of_a_model_come_before_what_its_name_says() {
        let folder = tempfile::tempdir().unwrap();
        let of = |reference| Prefixes::of(folder.path(), reference);
        assert_eq!(of("a/all-MiniLM-L6-v2"), Prefixes::default());
        assert_eq!(of("intfloat/multilingual-e5-small").question, "query: ");
        assert_eq!(of("intfloat/multilingual-e5-large-instruct"), Prefixes::default());
        let file = folder.path().join("config_sentence_transformers.json");
        let prompts = r#"{"prompts": {"query": "task: search result | query: ", "document": "title: none | text: "}}"#;
        std::fs::write(&file, prompts).unwrap();
        assert_eq!(of("google/embeddinggemma-300m").passage, "title: none | text: ");
        std::fs::write(&file, "no JSON").unwrap();
        assert_eq!(of("x/e5-small").passage, "passage: ");
    }
}
