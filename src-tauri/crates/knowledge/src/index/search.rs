//! Passages by their words, and by their ids.

use std::path::PathBuf;

use sqlx::sqlite::SqliteRow;
use sqlx::Row;

use super::columns::{hex, path_of, signed, to_json};
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
    /// The SHA-256 of the file as it was read, in hexadecimal digits.
    pub file_hash: String,
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
                       p.start_byte, p.end_byte, f.hash";

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
        file_hash: hex(row.try_get::<Option<&[u8]>, _>("hash")?.unwrap_or_default()),
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
    /// All passages of these collections: files in the order of their paths, passages in that of their text. `after`
    /// are as many as are not wanted.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn all_passages(&self, collections: &[&str], after: u64, most: u32) -> Result<Vec<StoredPassage>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM files f CROSS JOIN passages p ON p.file = f.id
              WHERE f.collection IN (SELECT value FROM json_each(?))
              ORDER BY f.collection, f.path, p.start_byte LIMIT ? OFFSET ?"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(to_json(&collections))
            .bind(i64::from(most))
            .bind(signed(after))
            .fetch_all(&self.readers)
            .await?;
        Ok(rows.iter().map(passage).collect::<sqlx::Result<_>>()?)
    }

    /// The passages of the files of a collection whose bytes have this SHA-256, in hexadecimal digits, in their order.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn passages_of_state(&self, collection: &str, hash: &str) -> Result<Vec<StoredPassage>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM files f CROSS JOIN passages p ON p.file = f.id
              WHERE f.collection = ? AND f.hash = unhex(?) ORDER BY f.path, p.start_byte"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(collection)
            .bind(hash)
            .fetch_all(&self.readers)
            .await?;
        Ok(rows.iter().map(passage).collect::<sqlx::Result<_>>()?)
    }

    /// Which of these states of files, named by their SHA-256 in hexadecimal digits, a collection has now.
    ///
    /// # Errors
    /// Those of reading the index.
    pub async fn present_hashes(&self, collection: &str, hashes: &[&str]) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT hash FROM files
                    WHERE collection = ? AND state = 'read' AND hash IN (SELECT unhex(value) FROM json_each(?))";
        let rows: Vec<(Vec<u8>,)> = sqlx::query_as(sql)
            .bind(collection)
            .bind(to_json(&hashes))
            .fetch_all(&self.readers)
            .await?;
        Ok(rows.iter().map(|(hash,)| hex(hash)).collect())
    }
}
