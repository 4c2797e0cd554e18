//! The database file: connections, migrations, backups.

pub(crate) mod attachment_files;
pub(crate) mod backup;
pub(crate) mod database;
pub(crate) mod lock;
pub(crate) mod pages;
pub(crate) mod writes;
