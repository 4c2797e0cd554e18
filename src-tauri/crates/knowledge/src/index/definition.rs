//! Collections as a person chose them.

use sqlx::SqliteConnection;

use crate::Result;

/// The part of a collection that no document repeats.
pub(super) struct Definition {
    pub id: String,
    pub name: String,
    pub kind: String,
    pub paths: Vec<u8>,
    pub rules: String,
    pub created_at: i64,
}

impl Definition {
    /// Those of a file.
    pub async fn all(file: &mut SqliteConnection) -> Result<Vec<Self>> {
        let sql = "SELECT id, name, kind, paths, rules, created_at FROM collections";
        let rows: Vec<(String, String, String, Vec<u8>, String, i64)> = sqlx::query_as(sql).fetch_all(file).await?;
        let definition = |(id, name, kind, paths, rules, created_at)| Self {
            id,
            name,
            kind,
            paths,
            rules,
            created_at,
        };
        Ok(rows.into_iter().map(definition).collect())
    }
}
