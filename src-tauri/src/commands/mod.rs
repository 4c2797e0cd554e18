//! The commands of the web view, one line each where possible: what they do lives in the other rooms. The list stands in
//! [`all`] and nowhere else; the typed calls stand in `ui/src/platform`.

mod answers;
mod chats;
mod models;
mod windows;

use tauri::ipc::Invoke;

/// Tells windows to list the chats again.
pub const CHATS_CHANGED: &str = "chats_changed";
/// Tells windows to list the models again.
pub const MODELS_CHANGED: &str = "models_changed";

/// Every command.
pub fn all() -> impl Fn(Invoke) -> bool + Send + Sync + 'static {
    tauri::generate_handler![
        chats::chats,
        chats::chat,
        chats::create_chat,
        chats::rename_chat,
        chats::pin_chat,
        chats::delete_chat,
        chats::restore_chat,
        chats::set_chat_settings,
        chats::set_draft,
        chats::show_branch,
        answers::send,
        answers::regenerate,
        answers::stop,
        answers::answer_now,
        answers::continue_answer,
        answers::running,
        answers::attach,
        models::models,
        models::default_model,
        models::set_default_model,
        models::engine_status,
        windows::open_models_window,
        windows::open_link,
        windows::first_paint,
    ]
}
