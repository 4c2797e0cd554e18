//! Models that can draft the answers of another one: smaller ones with the same vocabulary.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use api::LocalModel;
use protocol::ModelKind;
use serde::Deserialize;

use crate::local::model_folder::ModelFolder;

/// A draft model is worth its time if it has fewer bytes than the model divided by this.
const SMALLER: u64 = 2;

/// The largest tokenizer.json that is read.
const LARGEST: u64 = 256 << 20;

/// The part of tokenizer.json that says which tokens there are.
#[derive(Deserialize)]
struct TokenizerFile {
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct TokenizerModel {
    vocab: Vocabulary,
}

/// Tokens by id; those that a tokenizer adds to its model are not among them.
#[derive(PartialEq, Deserialize)]
#[serde(untagged)]
enum Vocabulary {
    /// Of BPE and WordPiece.
    Ids(BTreeMap<String, u32>),
    /// Of Unigram, each with its score.
    Scores(Vec<(String, f64)>),
}

impl Vocabulary {
    fn read(folder: &Path) -> Option<Self> {
        let path = folder.join("tokenizer.json");
        if fs::metadata(&path).ok()?.len() > LARGEST {
            return None;
        }
        let file: TokenizerFile = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        Some(file.model.vocab)
    }
}

impl ModelFolder {
    /// The references of the models that can draft the answers of this one, the smallest first. Reads the tokenizers of
    /// all smaller models.
    pub fn draft_models(&self, reference: &str) -> Vec<String> {
        let listed = self.list();
        let Some(model) = listed.iter().find(|model| model.reference == reference) else {
            return Vec::new();
        };
        let folder = |model: &LocalModel| Some(self.find(&model.reference).ok()?.path);
        let vocabulary = |folder: PathBuf| Vocabulary::read(&folder);
        let Some(wanted) = folder(model).and_then(vocabulary) else {
            return Vec::new();
        };
        let small = |other: &&LocalModel| {
            other.kind == ModelKind::Chat && other.problem.is_none() && other.bytes < model.bytes / SMALLER
        };
        let whole = listed.iter().filter(|other| other.adapter_of.is_none());
        let mut smaller: Vec<&LocalModel> = whole.filter(small).collect();
        smaller.sort_by_key(|other| other.bytes);
        let same = |other: &&LocalModel| folder(other).and_then(vocabulary).is_some_and(|has| has == wanted);
        smaller
            .into_iter()
            .filter(same)
            .map(|other| other.reference.clone())
            .collect()
    }
}
