//! The right passages for questions, by words, by vectors and by both. `./dev bench retrieval` measures it on large
//! sets; this one is small enough to be read. `tests/retrieval/small_set.py` writes its vectors, which are MiniLM's.

use std::collections::{BTreeMap, HashMap};

use knowledge::fuse;
use knowledge::vectors::{Codes, Id};
use serde::Deserialize;

use crate::House;

/// A passage with the question that it answers.
#[derive(Deserialize)]
struct Row {
    file: String,
    headings: String,
    text: String,
    question: String,
    vector: Vec<i8>,
    question_vector: Vec<i8>,
}

fn floats(numbers: &[i8]) -> Vec<f32> {
    numbers.iter().map(|number| f32::from(*number)).collect()
}

/// Shares of the questions whose passage is among the first ones of a ranking: of three, of ten.
#[derive(Debug, Default)]
struct Recall {
    three: f64,
    ten: f64,
}

impl Recall {
    fn count<S>(&mut self, ranking: &[(Id, S)], right: Id, questions: usize) {
        let place = ranking.iter().position(|(id, _)| *id == right);
        let share = |within| place.is_some_and(|place| place < within) as u8 as f64 / questions as f64;
        self.three += share(3);
        self.ten += share(10);
    }

    fn is_as_good_as(&self, other: &Recall) -> bool {
        // Sums of the same shares in another order.
        self.three > other.three - 1e-9 && self.ten > other.ten - 1e-9
    }
}

#[tokio::test]
async fn words_and_vectors_together_find_what_each_of_them_finds() {
    let rows: Vec<Row> = serde_json::from_str(include_str!("data/small_set.json")).unwrap();
    let house = House::new().await;
    let mut documents = BTreeMap::<&str, String>::new();
    for row in &rows {
        // Each passage under headings of its own, so that two of them are never put together.
        let headings = row.headings.replace(" › ", "\n## ");
        let document = documents.entry(&row.file).or_default();
        document.push_str(&format!("# {headings}\n\n{}\n\n", row.text));
    }
    for (name, text) in documents {
        house.write(name, text);
    }
    house.update().await;
    let stored = house.index.without_vectors("none", 0, 1000).await.unwrap();
    assert_eq!(stored.len(), rows.len());
    let ids: HashMap<usize, Id> = rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let (id, headings, _) = stored.iter().find(|(.., text)| text.ends_with(&row.text)).unwrap();
            assert_eq!(headings, &row.headings);
            (place, *id)
        })
        .collect();
    let mut codes = Codes::new(rows[0].vector.len());
    for (place, row) in rows.iter().enumerate() {
        codes.append(ids[&place], &floats(&row.vector)).unwrap();
    }

    let (mut words, mut vectors, mut hybrid) = (Recall::default(), Recall::default(), Recall::default());
    for (place, row) in rows.iter().enumerate() {
        let hits = house
            .index
            .search(&[&house.collection], &row.question, 50)
            .await
            .unwrap();
        let by_words: Vec<(Id, f64)> = hits.into_iter().map(|hit| (hit.passage.id, hit.score)).collect();
        let by_vectors = codes.nearest(&floats(&row.question_vector), 50, |_| true).unwrap();
        words.count(&by_words, ids[&place], rows.len());
        vectors.count(&by_vectors, ids[&place], rows.len());
        hybrid.count(&fuse(&by_words, &by_vectors, 50), ids[&place], rows.len());
    }
    assert!(words.three >= 0.6 && words.ten >= 0.65, "{words:?}");
    assert!(hybrid.three >= 0.92 && hybrid.ten >= 0.99, "{hybrid:?}");
    assert!(hybrid.is_as_good_as(&words), "{hybrid:?} {words:?}");
    assert!(hybrid.is_as_good_as(&vectors), "{hybrid:?} {vectors:?}");
}
