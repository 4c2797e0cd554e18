//! Passages by their words, and by their ids.

use std::path::PathBuf;

use sqlx::sqlite::SqliteRow;
use sqlx::Row;

use super::columns::{path_of, to_json};
use super::database::Index;
use super::question::expression;
use crate::Result;

/// How much more a word counts in the name of a file or a heading than in a text.
const HEADING_WEIGHT: f64 = 3.0;

/// A passage with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPassage {
    /// Its number, which no other passage ever has.
    pub id: i64,
    /// The id of its collection.
    pub collection: String,
    /// The path of its file, below the folder of the collection or absolute.
    pub path: PathBuf,
    /// The headings that it stands under; empty without any.
    pub headings: String,
    /// Its text.
    pub text: String,
    /// Its page, from 1; none if the file has no pages.
    pub page: Option<u32>,
    /// Its first and last line in the text of the file, from 1.
    pub lines: (u32, u32),
    /// Its place in the text of the file, in bytes.
    pub bytes: std::ops::Range<u64>,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The passage.
    pub passage: StoredPassage,
    /// Its BM25 score; more is better. Scores of two searches say nothing about each other.
    pub score: f64,
}

/// The columns of a passage.
const COLUMNS: &str = "p.id, f.collection, f.path, p.headings, p.text, p.page, p.first_line, p.last_line, \
                       p.start_byte, p.end_byte";

fn passage(row: &SqliteRow) -> sqlx::Result<StoredPassage> {
    let number = |name: &str| row.try_get::<i64, _>(name).map(|number| number.unsigned_abs());
    let small = |name: &str| number(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    Ok(StoredPassage {
        id: row.try_get("id")?,
        collection: row.try_get("collection")?,
        path: path_of(row.try_get("path")?),
        headings: row.try_get("headings")?,
        text: row.try_get("text")?,
        page: row.try_get::<Option<u32>, _>("page")?,
        lines: (small("first_line")?, small("last_line")?),
        bytes: number("start_byte")?..number("end_byte")?,
    })
}

impl Index {
    /// The passages of these collections with any of the words of a question, the best first. Accents and the case of
    /// letters count for nothing; a longer word also finds those that begin like it.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn search(&self, collections: &[&str], question: &str, most: u32) -> Result<Vec<Hit>> {
        let Some(expression) = expression(question) else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SELECT {COLUMNS}, -bm25(words, {HEADING_WEIGHT}, 1.0) AS score
               FROM words w CROSS JOIN passages p ON p.id = w.rowid CROSS JOIN files f ON f.id = p.file
              WHERE words MATCH ? AND f.collection IN (SELECT value FROM json_each(?))
              ORDER BY score DESC, p.id LIMIT ?"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(expression)
            .bind(to_json(&collections))
            .bind(i64::from(most))
            .fetch_all(&self.readers)
            .await?;
        let hit = |row: &SqliteRow| {
            Ok(Hit {
                passage: passage(row)?,
                score: row.try_get("score")?,
            })
        };
        rows.iter().map(hit).collect()
    }

    /// The passages of these ids in their order; those that are gone are left out.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn passages(&self, ids: &[i64]) -> Result<Vec<StoredPassage>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM json_each(?) AS wanted CROSS JOIN passages p ON p.id = wanted.value
                    CROSS JOIN files f ON f.id = p.file
              ORDER BY wanted.key"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(to_json(&ids))
            .fetch_all(&self.readers)
            .await?;
        Ok(rows.iter().map(passage).collect::<sqlx::Result<_>>()?)
    }
}
