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
    pub is_paused: bool,
}

/// The columns in their order.
type Row = (String, String, String, Vec<u8>, String, i64, bool);

impl Definition {
    /// Those of a file.
    pub async fn all(file: &mut SqliteConnection) -> Result<Vec<Self>> {
        let sql = "SELECT id, name, kind, paths, rules, created_at, is_paused FROM collections";
        let rows: Vec<Row> = sqlx::query_as(sql).fetch_all(file).await?;
        let definition = |(id, name, kind, paths, rules, created_at, is_paused)| Self {
            id,
            name,
            kind,
            paths,
            rules,
            created_at,
            is_paused,
        };
        Ok(rows.into_iter().map(definition).collect())
    }
}
