//! Ranks passages for questions as the app does, for `./dev bench retrieval`.
//!
//! Reads lines of JSON from its standard input: passages as `{"file", "headings", "text", "vector"}`, then questions as
//! `{"question", "vector"}`. Prints for each question `{"words", "vectors", "hybrid"}`, the best passages of each
//! ranking by their place among the passages. They lie in an index on the disk and are asked for through the room's own
//! functions. Whoever has no vectors leaves them out; the hybrid is that of words alone then.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::PathBuf;

use knowledge::vectors::{encode, Codes, Id};
use knowledge::{fuse, walk, Index, Outcome, Passage, Rules, Source, StoredVector};
use serde::Deserialize;
use serde_json::json;

/// Passages that each half finds.
const FOUND: usize = 50;
/// Passages that an answer has.
const COUNT: usize = 10;
const MODEL: &str = "given";

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Question {
        question: String,
        vector: Option<Vec<f32>>,
    },
    Passage {
        file: String,
        headings: Vec<String>,
        text: String,
        vector: Option<Vec<f32>>,
    },
}

/// A document: its text, and its passages with their places among all passages.
#[derive(Default)]
struct Document {
    text: String,
    passages: Vec<(usize, Passage)>,
}

impl Document {
    fn add(&mut self, place: usize, headings: Vec<String>, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        let passage = Passage {
            bytes: start..self.text.len(),
            headings,
            page: None,
            lines: (1, 1),
        };
        self.passages.push((place, passage));
        self.text.push_str("\n\n");
    }
}

/// Stores all documents; returns the place of each passage by its id.
async fn store(
    index: &Index,
    collection: &str,
    source: &Source,
    documents: BTreeMap<PathBuf, Document>,
) -> Result<HashMap<Id, usize>, Box<dyn Error>> {
    let found = walk(source, &Rules::default())?;
    index.sync(collection, &found, MODEL).await?;
    let mut places = Vec::new();
    for file in &found.files {
        let document = documents.get(&file.path).ok_or("a file that nobody wrote")?;
        let (of_file, passages): (Vec<usize>, Vec<Passage>) = document.passages.iter().cloned().unzip();
        places.extend(of_file);
        let outcome = Outcome::Read {
            hash: [0; 32],
            stamp: file.stamp,
            text: document.text.clone(),
            passages,
            described_by: None,
        };
        index.store(collection, &file.path, &outcome, MODEL).await?;
    }
    // Ids rise in the order in which passages were stored.
    let stored = index.without_vectors(MODEL, 0, u32::MAX).await?;
    assert_eq!(stored.len(), places.len());
    Ok(stored.into_iter().map(|(id, ..)| id).zip(places).collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let source = Source::Folder(folder.path().join("documents"));
    std::fs::create_dir(folder.path().join("documents"))?;
    let (mut documents, mut questions) = (BTreeMap::<PathBuf, Document>::new(), Vec::new());
    let mut vectors = Vec::new();
    for line in std::io::stdin().lines() {
        match serde_json::from_str(&line?)? {
            Line::Question { question, vector } => questions.push((question, vector)),
            Line::Passage {
                file,
                headings,
                text,
                vector,
            } => {
                std::fs::write(folder.path().join("documents").join(&file), "as given")?;
                let document = documents.entry(file.into()).or_default();
                document.add(vectors.len(), headings, &text);
                vectors.push(vector);
            }
        }
    }
    let index = Index::open(&folder.path().join("knowledge.sqlite")).await?;
    let collection = index.add_collection("given", &source, &Rules::default()).await?;
    let places = store(&index, &collection, &source, documents).await?;

    let mut stored = Vec::new();
    for (id, place) in &places {
        if let Some(vector) = &vectors[*place] {
            let vector = encode(vector)?;
            stored.push(StoredVector { passage: *id, vector });
        }
    }
    let dimensions = vectors.iter().flatten().map(Vec::len).next().unwrap_or(1);
    let model = (MODEL, u32::try_from(dimensions)?);
    index.store_vectors(model.0, model.1, &stored).await?;
    let stored = index.vectors(&[&collection], model, 0, u32::MAX).await?;
    let blobs = stored.into_iter().map(|stored| (stored.passage, stored.vector));
    let codes = Codes::from_blobs(dimensions, blobs)?;

    for (question, vector) in questions {
        let hits = index.search(&[&collection], &question, FOUND as u32).await?;
        let by_words: Vec<(Id, f64)> = hits.into_iter().map(|hit| (hit.passage.id, hit.score)).collect();
        let by_vectors = match vector {
            Some(vector) => codes.nearest(&vector, FOUND, |_| true)?,
            None => Vec::new(),
        };
        let hybrid = fuse(&by_words, &by_vectors, FOUND);
        let rankings = json!({
            "words": best(&by_words, &places), "vectors": best(&by_vectors, &places), "hybrid": best(&hybrid, &places),
        });
        println!("{rankings}");
    }
    Ok(())
}

/// The places of the first passages of a ranking.
fn best<S>(ranking: &[(Id, S)], places: &HashMap<Id, usize>) -> Vec<usize> {
    ranking.iter().take(COUNT).map(|(id, _)| places[id]).collect()
}
