//! Where things lie on this computer.

use std::env;
use std::path::PathBuf;

use directories::{BaseDirs, ProjectDirs};

use crate::Error;

/// The folder of all of the app's data, as an absolute path: `PONDER_HOME`, else the system's place for it.
///
/// # Errors
/// [`Error::NoHome`] if the system names no home folder.
pub fn data_dir() -> Result<PathBuf, Error> {
    if let Some(home) = env::var_os("PONDER_HOME").filter(|home| !home.is_empty()) {
        // Parts of the app that resolve paths by themselves would each take a relative one from another folder.
        let home = PathBuf::from(home);
        return Ok(std::path::absolute(&home).unwrap_or(home));
    }
    ProjectDirs::from("app", "", "Ponder")
        .map(|dirs| dirs.data_dir().to_owned())
        .ok_or(Error::NoHome)
}

/// The Hugging Face cache: `HF_HUB_CACHE`, else `HUGGINGFACE_HUB_CACHE`, else `HF_HOME/hub`, else `~/.cache/huggingface/hub`, as every client of the hub.
pub fn hub_cache() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HF_HUB_CACHE")
        .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .or_else(|| BaseDirs::new().map(|dirs| dirs.home_dir().join(".cache/huggingface/hub")))
}

/// Whether `HF_HUB_DISABLE_SYMLINKS` asks every client of the cache to do without links.
pub(crate) fn links_are_off() -> bool {
    env::var("HF_HUB_DISABLE_SYMLINKS").is_ok_and(|value| matches!(value.to_uppercase().as_str(), "1" | "ON" | "YES" | "TRUE"))
}

/// The folder of the model that comes with the app, looked for beside the program: in a macOS bundle, in an installed
/// package, and, by debug builds alone, in the source tree.
pub fn built_in_model() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let folder = program.parent()?;
    [
        folder.join("../Resources/pebble"),
        folder.join("../lib/Ponder/pebble"),
        folder.join("pebble"),
        #[cfg(debug_assertions)]
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model"),
    ]
    .into_iter()
    .find(|candidate| candidate.join("config.json").is_file())
    .and_then(|found| found.canonicalize().ok())
}
