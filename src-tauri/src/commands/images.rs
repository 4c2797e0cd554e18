//! Images: stored, counted, dragged out of a window. Pages load their bytes by address (`crate::windows::images`).

use api::AddedImage;
use command::command;
use protocol::{ImageDetail, Result};
use tauri::ipc::{Request, Response};
use tauri::{State, WebviewWindow};

use super::{body, chat_of};
use crate::app::state::App;

/// Stores an image for this chat (empty for a new one), an identical one once. It belongs to no message yet. Rejects a
/// file that is no image, with the reason.
#[command(chat, quick, body(bytes), header(chat = "ponder-chat"))]
pub async fn add_image(app: State<'_, App>, request: Request<'_>) -> Result<AddedImage> {
    let bytes = body(&request, "the bytes of an image are expected")?;
    let chat = app.chat_of(&chat_of(&request)).await;
    chat.files().add_image(bytes).await
}

/// The image in the system's clipboard, for web views that show pages its texts alone; empty if there is none.
#[command(chat, quick)]
pub async fn clipboard_image(window: WebviewWindow) -> Result<Response> {
    Ok(Response::new(crate::system::clipboard::image(&window).await))
}

/// The tokens of an image of each of these sizes (width, height); `null` if the model has no vision or the number
/// is not known.
#[command(chat)]
pub async fn image_tokens(
    app: State<'_, App>,
    model: Option<String>,
    detail: ImageDetail,
    sizes: Vec<(u32, u32)>,
) -> Result<Option<Vec<u32>>> {
    app.chat.files().image_tokens(model.as_deref(), sizes, detail).await
}

/// The bytes that the images of all chats take on disk.
#[command(chat, settings)]
pub async fn image_storage(app: State<'_, App>) -> Result<u64> {
    app.chat.files().attachments_size().await
}

/// Starts dragging an image out of the window, as a file of this name without its place and camera.
#[command(chat)]
pub async fn drag_image(window: WebviewWindow, app: State<'_, App>, attachment: String, name: String) -> Result<()> {
    let image = app
        .chat_with(&attachment)
        .await
        .files()
        .image_file(&attachment, &name)
        .await?;
    let path = app.write_dragged(&attachment, &image.name, &image.bytes)?;
    crate::system::drag_out::begin(&window, path, image.icon)
}
