//! Pictures: kept, counted, dragged out of a window. Their bytes go to the pages under addresses of their own (`crate::windows::pictures`).

use api::AddedPicture;
use protocol::{Error, ErrorCode, ImageDetail, Result};
use tauri::ipc::{InvokeBody, Request, Response};
use tauri::{State, WebviewWindow};

use crate::app::state::App;

/// Keeps a picture, whose bytes are the body of the call.
#[tauri::command]
pub async fn add_picture(app: State<'_, App>, request: Request<'_>) -> Result<AddedPicture> {
    match request.body() {
        InvokeBody::Raw(bytes) => app.chat.files().add_picture(bytes.clone()).await,
        InvokeBody::Json(_) => Err(Error::new(ErrorCode::BadRequest, "the bytes of a picture are expected")),
    }
}

/// The bytes of the picture in the system's clipboard; empty if there is none, or the web view tells its pages of it.
#[tauri::command]
pub async fn clipboard_picture(window: WebviewWindow) -> Result<Response> {
    Ok(Response::new(crate::system::clipboard::picture(&window).await))
}

/// The tokens that a picture of each of these sizes takes; `None` if the model does not see or that is not known.
#[tauri::command]
pub async fn picture_tokens(
    app: State<'_, App>,
    model: Option<String>,
    detail: ImageDetail,
    sizes: Vec<(u32, u32)>,
) -> Result<Option<Vec<u32>>> {
    app.chat.files().image_tokens(model.as_deref(), sizes, detail).await
}

/// Bytes of all pictures on the disk.
#[tauri::command]
pub async fn picture_storage(app: State<'_, App>) -> Result<u64> {
    app.chat.files().attachments_size().await
}

/// Begins to drag a picture out of the window, as a file that says neither where it was taken nor by which camera.
#[tauri::command]
pub async fn drag_picture(window: WebviewWindow, app: State<'_, App>, attachment: String, name: String) -> Result<()> {
    let picture = app.chat.files().picture_file(&attachment, &name).await?;
    let path = app.write_dragged(&attachment, &picture.name, &picture.bytes)?;
    crate::system::drag_out::begin(&window, path, picture.icon)
}
