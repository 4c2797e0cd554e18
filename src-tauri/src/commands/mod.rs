//! The commands of the web view, one line each where possible: what they do lives in the other rooms. The list stands in
//! [`all`] and nowhere else; the typed calls stand in `ui/src/platform`.

mod answers;
mod chats;
mod downloads;
mod endpoints;
mod hub;
mod library;
mod models;
mod network;
mod pictures;
mod server;
mod settings;
mod windows;

use tauri::ipc::Invoke;

pub use library::models_changed;

/// Tells windows to list the chats again.
pub const CHATS_CHANGED: &str = "chats_changed";
/// Tells windows to list the models again.
pub const MODELS_CHANGED: &str = "models_changed";
/// Tells windows to ask again what the network may be used for.
pub const NETWORK_CHANGED: &str = "network_changed";
/// Tells windows what is set now.
pub const SETTINGS_CHANGED: &str = "settings_changed";
/// Tells the chat window to begin a chat with a model.
pub const CHAT_WITH: &str = "chat_with";

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
        answers::attach,
        pictures::add_picture,
        pictures::clipboard_picture,
        pictures::picture_tokens,
        pictures::picture_storage,
        pictures::drag_picture,
        models::models,
        models::default_model,
        models::set_default_model,
        models::engine_status,
        models::capabilities,
        endpoints::endpoints,
        endpoints::endpoint_address,
        endpoints::endpoint_models,
        endpoints::test_endpoint,
        endpoints::add_endpoint,
        endpoints::set_endpoint_key,
        endpoints::remove_endpoint,
        hub::search_models,
        hub::describe_model,
        hub::model_card,
        hub::first_models,
        hub::fit_of,
        hub::memory,
        downloads::download,
        downloads::pause_download,
        downloads::resume_download,
        downloads::cancel_download,
        downloads::move_download,
        downloads::watch_downloads,
        library::verify_model,
        library::repair_model,
        library::removal_of,
        library::remove_model,
        library::update_of,
        library::reveal_model,
        library::model_folders,
        library::add_model_folder,
        library::forget_model_folder,
        library::chat_with,
        network::net_settings,
        network::set_offline,
        network::set_token,
        network::outbound_requests,
        server::server_status,
        server::set_server,
        server::new_server_key,
        server::forget_server_key,
        server::server_key,
        server::served_models,
        server::client_setups,
        settings::settings,
        settings::change_settings,
        settings::chat_window_state,
        settings::set_chat_window_state,
        windows::open_window,
        windows::open_link,
        windows::first_paint,
    ]
}
