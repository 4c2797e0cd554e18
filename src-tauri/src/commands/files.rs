//! Files: read for their text, shown, counted.

use api::FileText;
use protocol::{Content, Error, ErrorCode, Result, TokenCount};
use tauri::ipc::{InvokeBody, Request, Response};
use tauri::{State, WebviewWindow};

use crate::app::state::App;

/// The header with the file's name, a JSON text of ASCII letters.
const NAME: &str = "ponder-name";

/// Keeps the text of a file, whose bytes are the body of the call.
#[tauri::command]
pub async fn add_file(app: State<'_, App>, request: Request<'_>) -> Result<Content> {
    let name = request
        .headers()
        .get(NAME)
        .and_then(|name| serde_json::from_slice::<String>(name.as_bytes()).ok());
    match request.body() {
        InvokeBody::Raw(bytes) => {
            app.chat
                .files()
                .add_file(bytes.clone(), &name.unwrap_or_default())
                .await
        }
        InvokeBody::Json(_) => Err(Error::new(ErrorCode::BadRequest, "the bytes of a file are expected")),
    }
}

/// The longest file that is read, in bytes; what the page does not take is not read either.
const LONGEST: u64 = 50_000_000;

/// Pastes what the clipboard holds where the focus of the page is.
#[tauri::command]
pub async fn paste(window: WebviewWindow) -> Result<()> {
    crate::system::clipboard::paste(&window)
        .map_err(|error| Error::new(ErrorCode::Engine, format!("nothing was pasted: {error}")))
}

/// The names of the files that a file manager has put into the clipboard.
#[tauri::command]
pub async fn clipboard_files(window: WebviewWindow) -> Result<Vec<String>> {
    let files = crate::system::clipboard::files(&window).await;
    let names = files.iter().filter_map(|path| path.file_name());
    Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
}

/// The bytes of one of them, by its place among them. The page never says where it lies.
#[tauri::command]
pub async fn clipboard_file(window: WebviewWindow, app: State<'_, App>, place: usize) -> Result<Response> {
    let path = crate::system::clipboard::files(&window).await.into_iter().nth(place);
    let path = path.ok_or_else(|| Error::new(ErrorCode::NotFound, "the file is no longer in the clipboard"))?;
    let read = move || {
        let refused = |reason: &str| Error::new(ErrorCode::BadRequest, format!("{} {reason}", path.display()));
        let meta = std::fs::metadata(&path).map_err(|error| refused(&format!("cannot be read: {error}")))?;
        if !meta.is_file() {
            return Err(refused("is no file; open the folder and choose files in it"));
        }
        if meta.len() > LONGEST {
            return Err(refused("is larger than 50 MB"));
        }
        std::fs::read(&path).map_err(|error| refused(&format!("cannot be read: {error}")))
    };
    app.run_blocking(read).await.map(Response::new)
}

/// The text of a file that was added.
#[tauri::command]
pub async fn file_text(app: State<'_, App>, attachment: String) -> Result<FileText> {
    app.chat.files().file_text(&attachment).await
}

/// The tokens that this would take in a question, pictures left out.
#[tauri::command]
pub async fn content_tokens(app: State<'_, App>, model: Option<String>, content: Vec<Content>) -> Result<TokenCount> {
    app.chat.files().content_tokens(model.as_deref(), content).await
}
