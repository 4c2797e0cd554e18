//! Rows of queries as structs.

/// Reads a struct from a row: each field from the column of its name; one after `;` is a struct of the same row.
///
/// sqlx' own derive would check queries at compile time, if asked to, and for that compiles SQLite and tokio a second
/// time.
macro_rules! from_row {
    ($row:ident: $($field:ident),+ $(; $flat:ident)?) => {
        impl sqlx::FromRow<'_, sqlx::sqlite::SqliteRow> for $row {
            fn from_row(row: &sqlx::sqlite::SqliteRow) -> sqlx::Result<Self> {
                Ok(Self {
                    $($flat: sqlx::FromRow::from_row(row)?,)?
                    $($field: sqlx::Row::try_get(row, stringify!($field))?,)+
                })
            }
        }
    };
}
