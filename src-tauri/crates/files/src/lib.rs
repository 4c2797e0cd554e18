//! Small files that are there whole or not at all, whoever reads them and whenever the process ends.
//!
//! A file is written under a name that no program reads and then renamed, which a reader sees as one step. For the data
//! folder there is [`write_private`], for folders that other people and programs read [`write_shared`]. A whole folder
//! appears in the same way by [`DraftFolder`].

mod draft_folder;

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

pub use draft_folder::{free_space, DraftFolder};

/// How the name of a draft begins. Only a process that is killed in the middle of writing leaves one behind.
pub const DRAFT_PREFIX: &str = ".ponder-";

/// The failure that a newly written file survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of this process: for what is written often or can be made again.
    ProcessCrash,
    /// A power cut as well: the content is forced to the disk before it gets its name, which takes some milliseconds.
    PowerLoss,
}

/// Writes a file that only its owner may read (0600), in one step. Missing folders on the way are made, for their owner
/// alone.
///
/// # Errors
/// Those of the file system; the old content is still there then, and no draft is left.
pub fn write_private(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let folder = folder_of(path)?;
    make_private_folder(folder)?;
    write(
        Builder::new().prefix(DRAFT_PREFIX).tempfile_in(folder)?,
        path,
        bytes,
        durability,
    )
}

/// Makes a folder that only its owner may look into (0700), and those on the way to it that are missing. One that is
/// there stays as it is.
///
/// # Errors
/// Those of the file system.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens a file that only its owner may read (0600), to add at its end; one that is missing is made.
///
/// # Errors
/// Those of the file system.
pub fn append_private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a file with the permissions that the umask leaves, in one step. The draft lies in `draft_folder`, on the same
/// file system: for folders whose readers take every file for one of theirs.
///
/// # Errors
/// As [`write_private`].
pub fn write_shared(path: &Path, draft_folder: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let mut builder = Builder::new();
    builder.prefix(DRAFT_PREFIX);
    if let Some(permissions) = shared() {
        builder.permissions(permissions);
    }
    write(builder.tempfile_in(draft_folder)?, path, bytes, durability)
}

fn write(mut draft: NamedTempFile, path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    draft.write_all(bytes)?;
    if durability == Durability::PowerLoss {
        draft.as_file().sync_all()?;
    }
    draft.persist(path)?;
    if durability == Durability::PowerLoss {
        sync_folder(folder_of(path)?);
    }
    Ok(())
}

/// Forces the names in a folder to the disk, if the system can do that; otherwise the system does it in its own time.
pub fn sync_folder(folder: &Path) {
    if let Ok(folder) = fs::File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// The outcome of looking for a file; `None` if there is none.
///
/// # Errors
/// Every other reason why the file cannot be used.
pub fn found<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(unix)]
fn shared() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    // The umask is taken off when the file is made.
    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn shared() -> Option<Permissions> {
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/on/the/way.json");
        for (text, durability) in [("first", Durability::PowerLoss), ("2nd", Durability::ProcessCrash)] {
            write_private(&path, text.as_bytes(), durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(path.parent().unwrap()), ["way.json"]);
    }

    #[test]
    fn a_failure_leaves_the_old_content_and_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("name");
        fs::create_dir_all(path.join("in the way")).unwrap();
        assert!(write_private(&path, b"x", Durability::PowerLoss).is_err());
        assert!(write_shared(&path, folder.path(), b"x", Durability::ProcessCrash).is_err());
        assert!(write_private(&path.join("in the way/file"), b"x", Durability::ProcessCrash).is_ok());
        assert_eq!(names(folder.path()), ["name"]);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_private_is_readable_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (private, shared, plain) = (
            folder.path().join("data/a"),
            folder.path().join("b"),
            folder.path().join("c"),
        );
        write_private(&private, b"x", Durability::ProcessCrash).unwrap();
        assert_eq!(mode(private.parent().unwrap()), 0o700);
        let log = private.with_file_name("log");
        for text in ["a", "b"] {
            append_private(&log).unwrap().write_all(text.as_bytes()).unwrap();
        }
        assert_eq!((mode(&log), fs::read_to_string(&log).unwrap().as_str()), (0o600, "ab"));
        write_shared(&shared, folder.path(), b"x", Durability::ProcessCrash).unwrap();
        fs::write(&plain, b"x").unwrap();
        assert_eq!((mode(&private), mode(&shared)), (0o600, mode(&plain)));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_replaced_and_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (link, elsewhere) = (folder.path().join("link"), folder.path().join("elsewhere"));
        fs::write(&elsewhere, "mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        write_private(&link, b"new", Durability::ProcessCrash).unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
        assert_eq!(fs::read_to_string(&link).unwrap(), "new");
    }
}
