//! The command `ponder`, which is inside the bundle on macOS: a link to it in a folder that terminals search. Linux
//! packages install the command themselves.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use api::{OpenRequest, UnavailableReason};
use protocol::{Error, Reason, Result};

use crate::system::failed;

/// The name of the command.
const NAME: &str = "ponder";

/// The reason why the app cannot install the command; `None` if it can.
pub fn unavailable_reason() -> Option<UnavailableReason> {
    (!cfg!(target_os = "macos")).then_some(UnavailableReason::NotNeeded)
}

/// Creates the link in a folder that terminals search, and returns its place.
///
/// # Errors
/// When no folder can be written. An existing file of that name that is not our link stays as it is.
pub fn install() -> Result<OpenRequest> {
    let app = std::env::current_exe().and_then(|app| app.canonicalize());
    let app = app.map_err(failed(
        Reason::CommandNotInstalled,
        "Ponder's own program was not found",
    ))?;
    let program = app.with_file_name(NAME);
    let mut folders = vec![PathBuf::from("/usr/local/bin")];
    folders.extend(std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/bin")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let searched: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let link = link_in(&program, &folders)?;
    let folder = link.parent().unwrap_or(Path::new("/"));
    // An app that was opened by a click sees only the system's path, which always contains this folder.
    let found = folder == Path::new("/usr/local/bin") || searched.iter().any(|searched| searched == folder);
    Ok(OpenRequest::CommandInstalled {
        path: link.display().to_string(),
        folder: (!found).then(|| folder.display().to_string()),
    })
}

/// True if a program is in a place that will not last: a disk image gets ejected, and a quarantined download runs from
/// a path that changes.
pub fn goes_away(program: &Path) -> bool {
    program.starts_with("/Volumes") || program.components().any(|part| part.as_os_str() == "AppTranslocation")
}

/// Links to the program from the first of these folders that is writable.
fn link_in(program: &Path, folders: &[PathBuf]) -> Result<PathBuf> {
    if goes_away(program) {
        let message =
            "Move Ponder into the Applications folder first, and open it from there: the command would lead to a place that goes away.";
        return Err(Error::because(Reason::MoveToApplications, message));
    }
    if !program.is_file() {
        let place = program.display();
        let message = format!("This copy of Ponder came without the command: {place} is not there.");
        return Err(Error::because(Reason::CommandMissing, message));
    }
    let mut reasons = Vec::new();
    for folder in folders {
        let link = folder.join(NAME);
        match replace(program, folder, &link) {
            Ok(()) => return Ok(link),
            Err(reason) => reasons.push(format!("{}: {reason}", link.display())),
        }
    }
    let reasons = reasons.join("; ");
    let message = format!("The command “{NAME}” was not installed; nothing was changed. {reasons}");
    Err(Error::because(Reason::CommandNotInstalled, message))
}

fn replace(program: &Path, folder: &Path, link: &Path) -> std::result::Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    match fs::read_link(link) {
        Ok(target) if target == program => return Ok(()),
        // A link to an app that was moved, or to another copy.
        Ok(target) if target.ends_with(format!("Contents/MacOS/{NAME}")) => fs::remove_file(link).map_err(said)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        _ => return Err("something else has that name".into()),
    }
    // The user's own folder may not exist yet; the system's folder is not ours to create.
    if !folder.starts_with("/usr") {
        fs::create_dir_all(folder).map_err(said)?;
    }
    std::os::unix::fs::symlink(program, link).map_err(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bundle with the command in it.
    fn bundle(root: &Path, name: &str) -> PathBuf {
        let program = root.join(name).join("Contents/MacOS/ponder");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "").unwrap();
        program
    }

    #[test]
    fn the_command_is_linked_and_follows_an_app_that_moved() {
        let root = tempfile::tempdir().unwrap();
        let (program, folder) = (bundle(root.path(), "Ponder ü.app"), root.path().join("a/bin"));
        let link = link_in(&program, std::slice::from_ref(&folder)).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), program);
        assert_eq!(link_in(&program, std::slice::from_ref(&folder)).unwrap(), link);
        let moved = bundle(root.path(), "Applications/Ponder.app");
        fs::remove_file(&program).unwrap();
        assert_eq!(link_in(&moved, &[folder]).unwrap(), link);
        assert_eq!(fs::read_link(&link).unwrap(), moved);
    }

    #[test]
    fn what_is_there_already_stays_and_the_next_folder_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let program = bundle(root.path(), "Ponder.app");
        let (first, second) = (root.path().join("first"), root.path().join("second"));
        fs::create_dir(&first).unwrap();
        fs::write(first.join("ponder"), "another program").unwrap();
        assert_eq!(
            link_in(&program, &[first.clone(), second.clone()]).unwrap(),
            second.join("ponder")
        );
        assert_eq!(fs::read_to_string(first.join("ponder")).unwrap(), "another program");

        fs::remove_file(second.join("ponder")).unwrap();
        std::os::unix::fs::symlink("/opt/other/ponder", second.join("ponder")).unwrap();
        let refused = link_in(&program, &[first, second.clone()]).unwrap_err();
        assert!(refused.message.contains("something else has that name"), "{refused}");
        assert_eq!(
            fs::read_link(second.join("ponder")).unwrap(),
            Path::new("/opt/other/ponder")
        );
    }

    #[test]
    fn a_place_that_goes_away_is_linked_to_by_nothing() {
        let folders = [PathBuf::from("/nowhere")];
        for program in [
            "/Volumes/Ponder/Ponder.app/Contents/MacOS/ponder",
            "/private/var/folders/x/AppTranslocation/y/d/Ponder.app/Contents/MacOS/ponder",
        ] {
            let refused = link_in(Path::new(program), &folders).unwrap_err();
            assert!(refused.message.contains("Applications"), "{refused}");
        }
        let refused = link_in(Path::new("/Applications/Gone.app/Contents/MacOS/ponder"), &folders).unwrap_err();
        assert_eq!(refused.reason, Some(Reason::CommandMissing));
    }
}
