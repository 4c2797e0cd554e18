//! Documents: their text extracted, shown, counted.

use api::FileText;
use command::command;
use protocol::{Content, Error, Reason, Result, TokenCount};
use tauri::ipc::{Request, Response};
use tauri::{State, WebviewWindow};

use super::{body, chat_of};
use crate::app::state::App;
use crate::system::failed;

/// The header with the file's name, a JSON text of ASCII letters.
const NAME: &str = "ponder-name";

/// Extracts the text of a file for this chat (empty for a new one) and stores it, an identical one once. It belongs to
/// no message yet. Rejects a file without text, with the reason.
#[command(
    chat,
    quick,
    body(bytes),
    header(name = "ponder-name", chat = "ponder-chat"),
    types(result = "Extract<Content, { kind: 'file' }>")
)]
pub async fn add_file(app: State<'_, App>, request: Request<'_>) -> Result<Content> {
    let name = request
        .headers()
        .get(NAME)
        .and_then(|name| serde_json::from_slice::<String>(name.as_bytes()).ok());
    let bytes = body(&request, "the bytes of a file are expected")?;
    let chat = app.chat_of(&chat_of(&request)).await;
    chat.files().add_file(bytes, &name.unwrap_or_default()).await
}

/// The longest file that is read, in bytes; the page accepts no longer one.
const LONGEST: u64 = 50_000_000;

/// Pastes the system's clipboard where the focus is, for web views in which no page can.
#[command(all)]
pub async fn paste(window: WebviewWindow) -> Result<()> {
    crate::system::clipboard::paste(&window).map_err(failed(Reason::WindowSystem, "nothing was pasted"))
}

/// The names of the files in the system's clipboard, for web views that keep them from pages.
#[command(chat, quick)]
pub async fn clipboard_files(window: WebviewWindow) -> Result<Vec<String>> {
    let files = crate::system::clipboard::files(&window).await;
    let names = files.iter().filter_map(|path| path.file_name());
    Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
}

/// The bytes of one of the clipboard's files, by its place in their list. Rejects a folder. The page never learns
/// the path.
#[command(chat, quick)]
pub async fn clipboard_file(window: WebviewWindow, app: State<'_, App>, place: usize) -> Result<Response> {
    let path = crate::system::clipboard::files(&window).await.into_iter().nth(place);
    let path = path.ok_or_else(|| Error::because(Reason::FileGone, "the file is no longer in the clipboard"))?;
    let read = move || {
        let refused = |reason: &str| {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            Error::because(Reason::FileNotOpened, format!("{} {reason}", path.display())).with("name", name.as_ref())
        };
        let unread = |error: std::io::Error| refused(&format!("cannot be read: {error}"));
        let meta = std::fs::metadata(&path).map_err(unread)?;
        if !meta.is_file() {
            return Err(refused("is no file; open the folder and choose files in it"));
        }
        if meta.len() > LONGEST {
            return Err(refused("is larger than 50 MB"));
        }
        std::fs::read(&path).map_err(unread)
    };
    app.run_blocking(read).await.map(Response::new)
}

/// The stored text of a file, in its pages or lines.
#[command(chat)]
pub async fn file_text(app: State<'_, App>, attachment: String) -> Result<FileText> {
    app.chat_with(&attachment).await.files().file_text(&attachment).await
}

/// The tokens of this content in a question to a model, or to the default model; images are left out.
#[command(chat)]
pub async fn content_tokens(app: State<'_, App>, model: Option<String>, content: Vec<Content>) -> Result<TokenCount> {
    // A file that is counted may be one of the temporary chat.
    let file = content.iter().find_map(|part| match part {
        Content::File { attachment, .. } => Some(attachment.as_str()),
        _ => None,
    });
    let chat = app.chat_with(file.unwrap_or_default()).await;
    chat.files().content_tokens(model.as_deref(), content).await
}
