//! Permissions: only the user who owns a database may read it. Its folder is 0700 and the database with its two
//! companions is 0600, whatever the umask says and whatever an earlier version left. Other systems than Unix keep a
//! user's folder private by themselves.

use std::io;
use std::path::{Path, PathBuf};

/// Makes the folder if it is missing and takes from others the right to look into it.
///
/// # Errors
/// Those of the file system.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    files::make_private_folder(folder)?;
    restrict(folder, 0o700);
    Ok(())
}

/// Makes the database file if it is missing and takes from others the right to read it, its log and its index. SQLite
/// gives the companions that it makes later the rights of the database.
pub fn make_file(database: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A file that is there already, or a place that cannot be written, is SQLite's to open or to report.
    let _ = options.open(database);
    for path in with_companions(database) {
        restrict(&path, 0o600);
    }
}

/// A database file, its log and its index.
pub fn with_companions(database: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|companion| {
        let mut path = database.as_os_str().to_owned();
        path.push(companion);
        path.into()
    })
}

/// Takes away every right beyond these. Files of another owner stay as they are: that owner decided who may read them.
#[cfg(unix)]
fn restrict(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = std::fs::metadata(path) else { return };
    let kept = metadata.permissions().mode() & 0o777 & mode;
    if metadata.permissions().mode() & 0o777 != kept && (metadata.is_file() || metadata.is_dir()) {
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(kept));
    }
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) {}
