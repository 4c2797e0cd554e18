//! The database file: connections, migrations, backups, repair.

pub(crate) mod backup;
pub(crate) mod database;
pub(crate) mod privacy;
pub(crate) mod repair;
pub(crate) mod writes;
