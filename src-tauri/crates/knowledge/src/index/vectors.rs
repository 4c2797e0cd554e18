//! Vectors of passages as an embedding model gave them. Their bytes are the caller's.

use super::columns::to_json;
use super::database::Index;
use crate::{Error, Result};

/// The vector of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVector {
    /// The id of the passage.
    pub passage: i64,
    /// Its numbers, in the caller's format.
    pub vector: Vec<u8>,
}

impl Index {
    /// Passages without a vector of this model, in the order of their ids, of which `after` is the last one that is not
    /// wanted: id, headings and text.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn without_vectors(&self, model: &str, after: i64, most: u32) -> Result<Vec<(i64, String, String)>> {
        let sql = "SELECT id, headings, text FROM passages p
                    WHERE id > ?2 AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ?1 AND v.passage = p.id)
                    ORDER BY id LIMIT ?3";
        let rows = sqlx::query_as(sql).bind(model).bind(after).bind(i64::from(most));
        Ok(rows.fetch_all(&self.readers).await?)
    }

    /// Stores vectors of a model, in the place of earlier ones. Those of passages that are gone are dropped; returns how
    /// many were stored.
    ///
    /// # Errors
    /// [`Error::Vector`] if the bytes of one are not a multiple of the dimensions, before anything is stored; those of
    /// writing the index.
    pub async fn store_vectors(&self, model: &str, dimensions: u32, vectors: &[StoredVector]) -> Result<u64> {
        let is_wrong = |vector: &&StoredVector| {
            let bytes = vector.vector.len();
            bytes == 0 || !bytes.is_multiple_of(dimensions as usize)
        };
        if let Some(wrong) = vectors.iter().find(is_wrong) {
            return Err(Error::Vector {
                bytes: wrong.vector.len(),
                dimensions,
            });
        }
        let mut transaction = self.write().await?;
        let mut stored = 0;
        for StoredVector { passage, vector } in vectors {
            let sql = "INSERT OR REPLACE INTO vectors (passage, model, dimensions, vector)
                       SELECT id, ?2, ?3, ?4 FROM passages WHERE id = ?1";
            let insert = sqlx::query(sql)
                .bind(passage)
                .bind(model)
                .bind(i64::from(dimensions))
                .bind(vector);
            stored += insert.execute(&mut *transaction).await?.rows_affected();
        }
        transaction.commit().await?;
        Ok(stored)
    }

    /// Vectors of a model and these dimensions in the order of their passages' ids, of which `after` is the last one that
    /// is not wanted, of these collections.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn vectors(
        &self,
        collections: &[&str],
        (model, dimensions): (&str, u32),
        after: i64,
        most: u32,
    ) -> Result<Vec<StoredVector>> {
        let sql = "SELECT v.passage, v.vector
                     FROM vectors v CROSS JOIN passages p ON p.id = v.passage CROSS JOIN files f ON f.id = p.file
                    WHERE v.model = ? AND v.passage > ? AND v.dimensions = ?
                      AND f.collection IN (SELECT value FROM json_each(?))
                    ORDER BY v.passage LIMIT ?";
        let rows: Vec<(i64, Vec<u8>)> = sqlx::query_as(sql)
            .bind(model)
            .bind(after)
            .bind(i64::from(dimensions))
            .bind(to_json(&collections))
            .bind(i64::from(most))
            .fetch_all(&self.readers)
            .await?;
        let vector = |(passage, vector)| StoredVector { passage, vector };
        Ok(rows.into_iter().map(vector).collect())
    }

    /// Removes the vectors of all models but this one; returns how many.
    ///
    /// # Errors
    /// Those of writing the index.
    pub async fn forget_other_vectors(&self, model: &str) -> Result<u64> {
        let mut transaction = self.write().await?;
        let removed = sqlx::query("DELETE FROM vectors WHERE model <> ?")
            .bind(model)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(removed.rows_affected())
    }
    /// The models that passages have vectors of, each with its dimensions and the number of its vectors.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn vector_models(&self) -> Result<Vec<(String, u32, u64)>> {
        // The index has the model of every vector, and not its numbers.
        let sql = "SELECT model, max(passage), count(*) FROM vectors INDEXED BY vectors_by_passage GROUP BY model";
        let models: Vec<(String, i64, i64)> = sqlx::query_as(sql).fetch_all(&self.readers).await?;
        let mut known = Vec::with_capacity(models.len());
        for (model, passage, count) in models {
            let sql = "SELECT dimensions FROM vectors WHERE model = ? AND passage = ?";
            let found: Option<(i64,)> = sqlx::query_as(sql)
                .bind(&model)
                .bind(passage)
                .fetch_optional(&self.readers)
                .await?;
            let dimensions = found.and_then(|(dimensions,)| u32::try_from(dimensions).ok());
            known.extend(dimensions.map(|dimensions| (model, dimensions, count.unsigned_abs())));
        }
        Ok(known)
    }

    /// The ids of the passages of these collections that have a vector of this model, in their order.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn vector_ids(&self, collections: &[&str], model: &str) -> Result<Vec<i64>> {
        let sql = "SELECT p.id FROM files f CROSS JOIN passages p ON p.file = f.id
                    CROSS JOIN vectors v ON v.model = ? AND v.passage = p.id
                    WHERE f.collection IN (SELECT value FROM json_each(?)) ORDER BY p.id";
        let rows: Vec<(i64,)> = sqlx::query_as(sql)
            .bind(model)
            .bind(to_json(&collections))
            .fetch_all(&self.readers)
            .await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }
}
