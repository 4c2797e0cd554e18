//! Models that can draft the answers of another one: heads that were made for it, and smaller ones with the same
//! vocabulary.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use api::LocalModel;
use checkpoint::ModelConfig;
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
    /// The references of the models that can draft the answers of this one: its heads, then the smallest first. Reads the
    /// tokenizers of all smaller models.
    pub fn draft_models(&self, reference: &str) -> Vec<String> {
        let listed = self.list();
        let Some(model) = listed.iter().find(|model| model.reference == reference) else {
            return Vec::new();
        };
        let folder = |model: &LocalModel| Some(self.find(&model.reference).ok()?.path);
        let whole = listed
            .iter()
            .filter(|other| other.adapter_of.is_none() && other.problem.is_none());
        let mut smaller: Vec<&LocalModel> = whole.collect();
        smaller.sort_by_key(|other| other.bytes);
        let (heads, smaller): (Vec<_>, Vec<_>) = smaller
            .into_iter()
            .filter(|other| matches!(other.kind, ModelKind::Draft | ModelKind::Chat))
            .partition(|other| other.kind == ModelKind::Draft);
        let config = |model: &LocalModel| ModelConfig::read(&folder(model)?).ok();
        let own = config(model).filter(|_| !heads.is_empty());
        let belongs = |other: &&LocalModel| {
            let head = config(other);
            let head = head.as_ref().and_then(ModelConfig::head);
            own.as_ref()
                .zip(head)
                .is_some_and(|(own, head)| own.check_head(head).is_ok())
        };
        let vocabulary = |folder: PathBuf| Vocabulary::read(&folder);
        let wanted = folder(model).and_then(vocabulary);
        let same = |other: &&LocalModel| wanted.is_some() && folder(other).and_then(vocabulary) == wanted;
        let small = |other: &&LocalModel| other.bytes < model.bytes / SMALLER;
        let heads = heads.into_iter().filter(belongs);
        let smaller = smaller.into_iter().filter(small).filter(same);
        heads.chain(smaller).map(|other| other.reference.clone()).collect()
    }
}
