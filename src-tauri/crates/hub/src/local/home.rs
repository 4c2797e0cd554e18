//! Folders of this computer: the app's data, the Hugging Face cache, and files that ship with the app.

use std::env;
use std::path::{Path, PathBuf};

use directories::{BaseDirs, ProjectDirs};

use crate::error::Error;

/// The reference of the model that comes with the app.
pub const BUILT_IN: &str = "pebble";

/// The folder of the app's data, as an absolute path: `PONDER_HOME`, else the system's place for it.
///
/// # Errors
/// [`Error::NoHome`] if the system names no home folder.
pub fn data_dir() -> Result<PathBuf, Error> {
    if let Some(home) = env::var_os("PONDER_HOME").filter(|home| !home.is_empty()) {
        // A relative path would mean different folders to the parts of the app that resolve paths themselves.
        let home = PathBuf::from(home);
        return Ok(std::path::absolute(&home).unwrap_or(home));
    }
    // On macOS the folder's name would consist of all three.
    ProjectDirs::from("", "", "Ponder")
        .map(|dirs| dirs.data_dir().to_owned())
        .ok_or(Error::NoHome)
}

/// The Hugging Face cache: `HF_HUB_CACHE`, else `HUGGINGFACE_HUB_CACHE`, else `HF_HOME/hub`, else
/// `~/.cache/huggingface/hub`, as in every client of the hub.
pub fn hub_cache() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HF_HUB_CACHE")
        .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .or_else(|| BaseDirs::new().map(|dirs| dirs.home_dir().join(".cache/huggingface/hub")))
}

/// True if `HF_HUB_DISABLE_SYMLINKS` asks every client of the cache to do without links.
pub(crate) fn links_are_off() -> bool {
    env::var("HF_HUB_DISABLE_SYMLINKS")
        .is_ok_and(|value| matches!(value.to_uppercase().as_str(), "1" | "ON" | "YES" | "TRUE"))
}

/// The folder of the built-in model. Debug builds also find it in the source tree.
pub fn built_in_model() -> Option<PathBuf> {
    let beside = beside_program("pebble", "config.json");
    #[cfg(debug_assertions)]
    let beside = beside.or_else(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        source.join("../../pebble/model").canonicalize().ok()
    });
    beside
}

/// MLX's compiled Metal kernels, which ship with the app on a Mac. `None` outside a bundle: MLX knows where it built
/// them.
pub fn metal_library() -> Option<PathBuf> {
    beside_program("mlx.metallib", "")
}

fn beside_program(name: &str, holds: &str) -> Option<PathBuf> {
    shipped(&env::current_exe().ok()?, name, holds)
}

/// A file or folder that ships with the app, found relative to the program: in a macOS bundle, in an installed package,
/// or right next to it. A folder counts only if it has the file `holds`.
fn shipped(program: &Path, name: &str, holds: &str) -> Option<PathBuf> {
    // The command of a bundle is a link, which macOS reports as the program. A program that was replaced while it runs
    // has no path any more, but its folder has.
    let program = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let folder = program.parent()?;
    ["../Resources", "../lib/Ponder", "."]
        .into_iter()
        .map(|place| folder.join(place).join(name))
        .find(|candidate| candidate.join(holds).is_file() || (holds.is_empty() && candidate.is_file()))
        .and_then(|found| found.canonicalize().ok())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A program in its place in a bundle or a package, with the files that ship with it.
    fn installed(root: &Path, program: &str, resources: &str) -> (PathBuf, PathBuf) {
        let (program, resources) = (root.join(program), root.join(resources));
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::create_dir_all(resources.join("pebble")).unwrap();
        for file in [
            &program,
            &resources.join("pebble/config.json"),
            &resources.join("mlx.metallib"),
        ] {
            fs::write(file, "{}").unwrap();
        }
        (program, resources.canonicalize().unwrap())
    }

    fn finds(program: &Path, resources: &Path) {
        assert_eq!(
            shipped(program, "pebble", "config.json").as_deref(),
            Some(&*resources.join("pebble"))
        );
        assert_eq!(
            shipped(program, "mlx.metallib", "").as_deref(),
            Some(&*resources.join("mlx.metallib"))
        );
    }

    #[test]
    fn what_comes_with_the_app_is_found_wherever_the_app_lies() {
        for place in [
            "Applications",
            "Programme für Übung",
            "Volumes/Ponder 0.1.0",
            "思考/a 'quoted' \"place\"",
        ] {
            let root = tempfile::tempdir().unwrap();
            let (program, resources) = installed(
                root.path(),
                &format!("{place}/Ponder.app/Contents/MacOS/ponder-app"),
                &format!("{place}/Ponder.app/Contents/Resources"),
            );
            finds(&program, &resources);
        }
    }

    #[test]
    fn what_comes_with_the_app_is_found_after_the_app_was_moved() {
        let root = tempfile::tempdir().unwrap();
        let (_, resources) = installed(
            root.path(),
            "Downloads/Ponder.app/Contents/MacOS/ponder",
            "Downloads/Ponder.app/Contents/Resources",
        );
        assert!(resources.is_dir());
        let moved = root.path().join("Other Folder");
        fs::rename(root.path().join("Downloads"), &moved).unwrap();
        let app = moved.join("Ponder.app/Contents");
        finds(
            &app.join("MacOS/ponder"),
            &app.join("Resources").canonicalize().unwrap(),
        );
    }

    #[test]
    fn a_package_keeps_it_in_lib() {
        let root = tempfile::tempdir().unwrap();
        let (program, resources) = installed(root.path(), "usr/bin/ponder", "usr/lib/Ponder");
        finds(&program, &resources);
    }

    #[cfg(unix)]
    #[test]
    fn the_command_may_be_a_link_into_the_bundle() {
        let root = tempfile::tempdir().unwrap();
        let (program, resources) = installed(
            root.path(),
            "Ponder.app/Contents/MacOS/ponder",
            "Ponder.app/Contents/Resources",
        );
        let link = root.path().join("usr/local/bin/ponder");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&program, &link).unwrap();
        finds(&link, &resources);
    }

    #[test]
    fn a_program_that_was_replaced_still_finds_it() {
        let root = tempfile::tempdir().unwrap();
        let (program, resources) = installed(root.path(), "usr/bin/ponder-app", "usr/lib/Ponder");
        // The path that Linux reports after a package replaced the program's file.
        finds(&program.with_file_name("ponder-app (deleted)"), &resources);
    }

    #[test]
    fn a_folder_without_its_model_is_not_taken_for_it() {
        let root = tempfile::tempdir().unwrap();
        let (program, resources) = installed(root.path(), "usr/bin/ponder", "usr/lib/Ponder");
        fs::remove_file(resources.join("pebble/config.json")).unwrap();
        fs::remove_file(resources.join("mlx.metallib")).unwrap();
        assert_eq!(shipped(&program, "pebble", "config.json"), None);
        assert_eq!(shipped(&program, "mlx.metallib", ""), None);
    }
}
