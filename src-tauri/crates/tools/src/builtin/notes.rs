//! Notes about the person.

use serde_json::Value;

use super::arguments::text;
use super::sources::ChatSource;

/// Keeps a note. The person confirmed this call, so they have read it.
pub(super) async fn keep(chats: &dyn ChatSource, chat: &str, arguments: &Value) -> Result<String, String> {
    let note = text(arguments, "note").unwrap_or_default();
    let kept = chats.keep_note(chat.to_owned(), note.to_owned()).await;
    kept.map_err(|error| error.message)?;
    Ok("The user confirmed the note, and it was stored.".to_owned())
}
