//! The tables that rows are told apart by: their columns, in the order in which a row has its values.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection};

use crate::file::database::MIGRATIONS;
use crate::recovery::entries::{Entry, Value};
use crate::Result;

/// Tables and columns that had another name in files of earlier versions.
const FORMER_NAMES: [(&str, &str); 4] = [
    ("projects", "folders"),
    ("project_files", "folder_files"),
    ("project_id", "folder_id"),
    ("compaction_mark", "memory_cut"),
];

/// A table of a version of the file.
pub(super) struct Table {
    /// Its present name.
    pub name: String,
    columns: Vec<Column>,
    /// False if a row lies in an index, which its key begins.
    has_rowid: bool,
}

struct Column {
    /// Its present name; `None` if there is none.
    name: Option<String>,
    kind: String,
    /// True if every row has a value.
    required: bool,
}

impl Table {
    /// The tables of the file's `version`, but for the search index, which is made from the texts.
    pub async fn all(version: i64) -> Result<Vec<Self>> {
        let present = tables_of(i64::MAX).await?;
        let mut old = tables_of(version).await?;
        for table in &mut old {
            table.name = present_name(&table.name);
            let columns = present.iter().find(|known| known.name == table.name);
            for column in &mut table.columns {
                column.name = column.name.as_deref().map(present_name).filter(|name| {
                    let known = columns.into_iter().flat_map(|table| &table.columns);
                    known.into_iter().any(|column| column.name.as_ref() == Some(name))
                });
            }
        }
        Ok(old)
    }

    /// True if the values are of the kinds that a row of this table has. A row may lack the columns that came later.
    pub fn fits(&self, entry: &Entry) -> bool {
        let values = &entry.values;
        !entry.is_of_schema()
            && entry.rowid.is_some() == self.has_rowid
            && values.len() <= self.columns.len()
            && self.columns[values.len()..].iter().all(|column| !column.required)
            && values.iter().zip(&self.columns).all(|(value, column)| match value {
                Value::Null => !column.required,
                Value::Integer(_) => column.kind == "INTEGER",
                Value::Text(_) => column.kind == "TEXT",
                Value::Blob(_) => column.kind == "BLOB",
                Value::Real => false,
            })
    }

    /// The id of the chat that a row of this table names.
    pub fn chat_of(&self, row: &Entry) -> Option<Vec<u8>> {
        let place = match self.name.as_str() {
            "chats" => 0,
            "messages" => 1,
            _ => return None,
        };
        match row.values.get(place) {
            Some(Value::Text(id)) => Some(id.clone()),
            _ => None,
        }
    }

    /// Adds a row with these values, unless there is one of its key, or it breaks a rule of the table.
    ///
    /// # Errors
    /// [`crate::Error::DiskFull`].
    pub async fn add(&self, file: &mut SqliteConnection, values: Vec<Value>) -> Result<()> {
        let known = |(column, value): (&Column, Value)| Some((column.name.clone()?, value));
        let known: Vec<(String, Value)> = self.columns.iter().zip(values).filter_map(known).collect();
        let names: Vec<String> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let places: Vec<&str> = known.iter().map(|(_, value)| value.place()).collect();
        let sql = format!(
            "INSERT OR IGNORE INTO \"{}\" ({}) VALUES ({})",
            self.name,
            names.join(", "),
            places.join(", ")
        );
        let mut insert = sqlx::query(AssertSqlSafe(sql));
        for (_, value) in known {
            insert = match value {
                Value::Null | Value::Real => insert.bind(None::<i64>),
                Value::Integer(number) => insert.bind(number),
                Value::Text(bytes) | Value::Blob(bytes) => insert.bind(bytes),
            };
        }
        match insert.execute(file).await.map_err(crate::Error::from) {
            Err(crate::Error::DiskFull) => return Err(crate::Error::DiskFull),
            Err(error) => tracing::debug!(%error, table = self.name, "a row of a damaged history is left out"),
            Ok(_) => {}
        }
        Ok(())
    }
}

impl Value {
    /// Its place in a statement. A text may be no UTF-8, which only bytes can be.
    fn place(&self) -> &'static str {
        match self {
            Self::Text(_) => "CAST(? AS TEXT)",
            _ => "?",
        }
    }
}

/// The tables with chats and what belongs to them, after the migrations up to `version`.
async fn tables_of(version: i64) -> Result<Vec<Table>> {
    let mut empty = SqliteConnectOptions::new().in_memory(true).connect().await?;
    for (_, step) in MIGRATIONS.iter().filter(|(number, _)| *number <= version) {
        sqlx::raw_sql(*step).execute(&mut empty).await?;
    }
    let sql = "SELECT name, wr FROM pragma_table_list WHERE type = 'table' AND schema = 'main'
                  AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'search\\_%' ESCAPE '\\'";
    let names: Vec<(String, bool)> = rows!(&mut empty, sql).await?;
    let mut tables = Vec::new();
    for (name, without_rowid) in names {
        let sql = "SELECT name, type, \"notnull\" AND dflt_value IS NULL FROM pragma_table_info(?)";
        let columns: Vec<(String, String, bool)> = rows!(&mut empty, sql; &name).await?;
        let column = |(name, kind, required)| Column {
            name: Some(name),
            kind,
            required,
        };
        tables.push(Table {
            name,
            columns: columns.into_iter().map(column).collect(),
            has_rowid: !without_rowid,
        });
    }
    Ok(tables)
}

fn present_name(name: &str) -> String {
    let renamed = FORMER_NAMES.iter().find(|(_, former)| *former == name);
    renamed.map_or(name, |(present, _)| present).to_owned()
}
