//! Statements with the values of their placeholders: `run!(db, "DELETE FROM parts WHERE message_id = ?"; message)`.
//! The macros that the rest of this crate uses stand for the functions of the same names, whose statement they build.

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{FromRow, Sqlite, SqliteConnection, SqliteExecutor};

use crate::{Error, Result};

pub(crate) type Statement<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

macro_rules! statement {
    ($sql:expr $(; $($value:expr),+)?) => { sqlx::query::<sqlx::Sqlite>($sql)$($(.bind($value))+)? };
}

macro_rules! run {
    ($db:expr, $($statement:tt)+) => { $crate::sql::run($db, statement!($($statement)+)) };
}

macro_rules! change {
    ($db:expr, $what:expr, $($statement:tt)+) => { $crate::sql::change($db, $what, statement!($($statement)+)) };
}

macro_rules! update {
    ($history:expr, $what:expr, $($statement:tt)+) => { $history.update($what, statement!($($statement)+)) };
}

macro_rules! raw_rows {
    ($db:expr, $($statement:tt)+) => { $crate::sql::raw_rows($db, statement!($($statement)+)) };
}

macro_rules! rows {
    ($db:expr, $($statement:tt)+) => { $crate::sql::rows($db, statement!($($statement)+)) };
}

macro_rules! row {
    ($db:expr, $($statement:tt)+) => { $crate::sql::row($db, statement!($($statement)+)) };
}

macro_rules! values {
    ($db:expr, $($statement:tt)+) => { $crate::sql::values($db, statement!($($statement)+)) };
}

macro_rules! value {
    ($db:expr, $($statement:tt)+) => { $crate::sql::value($db, statement!($($statement)+)) };
}

macro_rules! the_value {
    ($db:expr, $($statement:tt)+) => { $crate::sql::the_value($db, statement!($($statement)+)) };
}

/// Returns how many rows the statement changed.
pub(crate) async fn run(db: &mut SqliteConnection, statement: Statement<'_>) -> Result<u64> {
    Ok(statement.execute(db).await?.rows_affected())
}

/// Changes `what`; fails with [`Error::NotFound`] if there is no such row.
pub(crate) async fn change(db: &mut SqliteConnection, what: &'static str, statement: Statement<'_>) -> Result<()> {
    match run(db, statement).await? {
        0 => Err(Error::NotFound(what)),
        _ => Ok(()),
    }
}

/// All rows, of which [`sqlx::Row::try_get`] takes the values.
pub(crate) async fn raw_rows(db: impl SqliteExecutor<'_>, query: Statement<'_>) -> Result<Vec<SqliteRow>> {
    Ok(query.fetch_all(db).await?)
}

/// All rows.
pub(crate) async fn rows<T>(db: impl SqliteExecutor<'_>, query: Statement<'_>) -> Result<Vec<T>>
where
    T: for<'r> FromRow<'r, SqliteRow>,
{
    let rows = raw_rows(db, query).await?;
    Ok(rows.iter().map(T::from_row).collect::<sqlx::Result<_>>()?)
}

/// The first row.
pub(crate) async fn row<T>(db: impl SqliteExecutor<'_>, query: Statement<'_>) -> Result<Option<T>>
where
    T: for<'r> FromRow<'r, SqliteRow>,
{
    let row = query.fetch_optional(db).await?;
    Ok(row.as_ref().map(T::from_row).transpose()?)
}

/// The first column.
pub(crate) async fn values<T>(db: impl SqliteExecutor<'_>, query: Statement<'_>) -> Result<Vec<T>>
where
    (T,): for<'r> FromRow<'r, SqliteRow>,
{
    Ok(rows(db, query).await?.into_iter().map(|(value,)| value).collect())
}

/// The first value of the first row.
pub(crate) async fn value<T>(db: impl SqliteExecutor<'_>, query: Statement<'_>) -> Result<Option<T>>
where
    (T,): for<'r> FromRow<'r, SqliteRow>,
{
    Ok(row(db, query).await?.map(|(value,)| value))
}

/// The value of a query that always has one, such as a count.
pub(crate) async fn the_value<T>(db: impl SqliteExecutor<'_>, query: Statement<'_>) -> Result<T>
where
    (T,): for<'r> FromRow<'r, SqliteRow>,
{
    Ok(value(db, query).await?.ok_or(sqlx::Error::RowNotFound)?)
}

/// Reads a struct from a row: each field from the column of its name.
///
/// sqlx' own derive would check queries at compile time, if asked to, and for that compiles SQLite and tokio a second
/// time.
macro_rules! from_row {
    ($row:ident: $($field:ident),+) => {
        impl sqlx::FromRow<'_, sqlx::sqlite::SqliteRow> for $row {
            fn from_row(row: &sqlx::sqlite::SqliteRow) -> sqlx::Result<Self> {
                Ok(Self { $($field: sqlx::Row::try_get(row, stringify!($field))?),+ })
            }
        }
    };
}
