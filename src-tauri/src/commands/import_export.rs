//! Chats and code as files.

use std::path::{Path, PathBuf};

use api::{ExportFormat, ImportReport};
use command::command;
use protocol::{Error, ErrorCode, Reason, Result};
use tauri::ipc::Request;
use tauri::{AppHandle, Manager, State, WebviewWindow};
use tauri_plugin_dialog::DialogExt;

use super::body;
use crate::app::state::App;
use crate::system::{code_file, failed};
use crate::words;

/// The longest name of a file without its ending, in characters.
const LONGEST_NAME: usize = 80;

const UNWRITTEN: &str = "the file could not be written";

/// Writes these chats, or all of them, to a new file in the user's download folder. Returns its path.
#[command(chat, settings)]
pub async fn export_chats(
    handle: AppHandle,
    app: State<'_, App>,
    ids: Option<Vec<String>>,
    format: ExportFormat,
    name: String,
) -> Result<String> {
    let text = app.chat.library().export(ids.as_deref(), format).await?;
    let folder = folder(&handle, &app);
    let written = app.run_blocking(move || {
        std::fs::create_dir_all(&folder)
            .and_then(|()| write_new(&folder, &file_stem(&name), format.ending(), text.as_bytes()))
            .map_err(failed(Reason::FileNotSaved, UNWRITTEN))
    });
    Ok(written.await?.display().to_string())
}

/// Shows an exported file in the system's file browser.
#[command(chat, settings)]
pub async fn show_export(handle: AppHandle, app: State<'_, App>, path: String) -> Result<()> {
    // A page may show nothing but exports.
    let folder = folder(&handle, &app);
    if Path::new(&path).parent() != Some(folder.as_path()) {
        return Err(Error::new(ErrorCode::BadRequest, "only exported files are shown"));
    }
    tauri_plugin_opener::reveal_item_in_dir(path).map_err(failed(Reason::NoFileBrowser, "no program showed the file"))
}

/// The folder of exports.
fn folder(handle: &AppHandle, app: &App) -> PathBuf {
    handle.path().download_dir().unwrap_or_else(|_| app.data_dir.clone())
}

/// Imports chats from a file of Ponder, ChatGPT, Claude or LM Studio.
#[command(chat, settings, body(bytes))]
pub async fn import_chats(app: State<'_, App>, request: Request<'_>) -> Result<ImportReport> {
    let bytes = body(&request, "a file is sent as its bytes")?;
    app.chat.library().import(bytes).await
}

/// Saves code of an answer to a file that the user chooses. Returns the file's name, or `null` if they chose none.
/// The page gives words alone and never learns the path.
#[command(chat, models, settings, quick)]
pub async fn save_code(
    window: WebviewWindow,
    app: State<'_, App>,
    code: String,
    language: String,
) -> Result<Option<String>> {
    let (chosen, answer) = tokio::sync::oneshot::channel();
    let words = words::current(window.app_handle());
    let dialog = window.dialog().file().set_parent(&window).set_title(words.save);
    let dialog = dialog.set_file_name(code_file::name(&language));
    // The user may have closed the window; then nobody waits for the answer.
    dialog.save_file(move |path| drop(chosen.send(path)));
    let Some(path) = answer.await.ok().flatten() else {
        return Ok(None);
    };
    let path = path.into_path().map_err(failed(Reason::FileNotSaved, UNWRITTEN))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let write = move || std::fs::write(&path, code).map_err(failed(Reason::FileNotSaved, UNWRITTEN));
    app.run_blocking(write).await?;
    Ok(name)
}

/// A name of letters, digits, dots and dashes, which leads nowhere.
fn file_stem(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    match words.is_empty() {
        true => "Chat".into(),
        false => words.join(" ").chars().take(LONGEST_NAME).collect(),
    }
}

/// Creates a file, with a number after its name if there is one of that name.
fn write_new(folder: &Path, stem: &str, ending: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
    for number in 1..10_000 {
        let name = match number {
            1 => format!("{stem}.{ending}"),
            number => format!("{stem} {number}.{ending}"),
        };
        let path = folder.join(name);
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                return match std::io::Write::write_all(&mut file, bytes) {
                    Ok(()) => Ok(path),
                    // Half an export is useless.
                    Err(error) => std::fs::remove_file(&path).and(Err(error)),
                };
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("there are too many files of this name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_as_its_chat_and_takes_the_place_of_no_other() {
        assert_eq!(file_stem("../../etc/passwd\0<script>"), "etc passwd script");
        assert_eq!(file_stem("…"), "Chat");
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<_> = (0..3)
            .map(|_| write_new(folder.path(), "a", "md", b"x").unwrap())
            .collect();
        assert_eq!(names, ["a.md", "a 2.md", "a 3.md"].map(|name| folder.path().join(name)));
    }
}
