//! The vectors of collections in memory, brought up to the index before each search.

use std::collections::{HashMap, HashSet};

use crate::index::Index;
use crate::vectors::Codes;
use crate::Result;

/// Vectors that are read at once.
const AT_ONCE: u32 = 4096;

/// The vectors of one model.
#[derive(Default)]
pub(super) struct VectorCache {
    model: String,
    dimensions: u32,
    /// The state of the index that they are of.
    generation: i64,
    collections: HashMap<String, Codes>,
}

impl VectorCache {
    /// The passages of these collections whose vectors are nearest, with their cosines, the best first.
    ///
    /// # Errors
    /// Those of reading the index.
    pub(super) async fn nearest(
        &mut self,
        index: &Index,
        (model, dimensions): (&str, u32),
        collections: &[&str],
        (question, most): (&[f32], usize),
    ) -> Result<Vec<(i64, f32)>> {
        let generation = index.generation().await?;
        if self.model != model || self.dimensions != dimensions {
            *self = Self {
                model: model.to_owned(),
                dimensions,
                ..Self::default()
            };
        }
        let is_same = self.generation == generation;
        let mut found: Vec<(i64, f32)> = Vec::new();
        for collection in collections {
            if !is_same || !self.collections.contains_key(*collection) {
                self.bring_up_to_date(index, collection).await?;
            }
            if let Some(codes) = self.collections.get(*collection) {
                // A question's vector of another length is of another model, and finds nothing.
                found.extend(codes.nearest(question, most, |_| true).unwrap_or_default());
            }
        }
        if !is_same {
            // Others are of an older state.
            self.collections
                .retain(|known, _| collections.contains(&known.as_str()));
            self.generation = generation;
        }
        found.sort_by(|(a, near), (b, nearer)| nearer.total_cmp(near).then(a.cmp(b)));
        found.truncate(most);
        Ok(found)
    }

    async fn bring_up_to_date(&mut self, index: &Index, collection: &str) -> Result<()> {
        let wanted: HashSet<i64> = index
            .vector_ids(&[collection], &self.model)
            .await?
            .into_iter()
            .collect();
        let dimensions = self.dimensions as usize;
        let codes = self
            .collections
            .entry(collection.to_owned())
            .or_insert_with(|| Codes::new(dimensions));
        let known: HashSet<i64> = codes.ids().iter().copied().collect();
        for gone in known.difference(&wanted) {
            codes.remove(*gone);
        }
        let Some(first) = wanted.difference(&known).min() else {
            return Ok(());
        };
        let mut after = first - 1;
        loop {
            let rows = index
                .vectors(&[collection], (&self.model, self.dimensions), after, AT_ONCE)
                .await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.passage;
            for row in rows.iter().filter(|row| !known.contains(&row.passage)) {
                if let Err(error) = codes.append_blob(row.passage, &row.vector) {
                    tracing::warn!(%error, passage = row.passage, "a vector cannot be used");
                }
            }
        }
    }
}
