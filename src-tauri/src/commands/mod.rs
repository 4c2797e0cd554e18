//! The commands of the windows, one line each where possible: the work is done in the other rooms. A command is a
//! function with `#[command]` and a line in the list below, from which `ui/src/host/generated.ts` is generated.

// A command that is not listed is dead code.
#![deny(dead_code)]

mod answers;
mod app_update;
mod branches;
mod chats;
mod compaction;
mod data;
mod desktop;
mod downloads;
mod endpoints;
mod failure;
mod files;
mod hub;
mod images;
mod import_export;
#[cfg(test)]
mod interface;
mod library;
mod local_models;
mod models;
mod network;
mod power;
mod server;
mod settings;
mod windows;

pub use crate::events::*;
pub use failure::{Failure, READ_ONLY};
pub use local_models::models_changed;

command::list![
    chats::chats,
    chats::chats_since,
    chats::chat,
    chats::earlier_messages,
    chats::create_chat,
    chats::new_chat_settings,
    chats::rename_chat,
    chats::pin_chat,
    chats::delete_chat,
    chats::restore_chat,
    chats::set_chat_settings,
    chats::check_chat_settings,
    chats::set_draft,
    branches::show_branch,
    branches::edit_answer,
    branches::delete_message,
    branches::fork_chat,
    branches::mark_read,
    branches::set_scroll_place,
    compaction::context_use,
    compaction::set_compaction_mark,
    compaction::drop_oldest_turns,
    compaction::summarize_oldest_turns,
    compaction::stop_summary,
    compaction::fork_with_summary,
    library::search_history,
    library::archive_chat,
    library::trash,
    library::purge_chat,
    library::projects,
    library::create_project,
    library::change_project,
    library::prefetch_project,
    library::put_project_file,
    library::remove_project_file,
    library::delete_project,
    library::restore_project,
    library::move_chat,
    library::history_state,
    answers::send,
    answers::send_to_two,
    answers::regenerate,
    answers::stop,
    answers::answer_now,
    answers::continue_answer,
    answers::attach,
    files::add_file,
    files::paste,
    files::clipboard_files,
    files::clipboard_file,
    files::file_text,
    files::content_tokens,
    images::add_image,
    images::clipboard_image,
    images::image_tokens,
    images::image_storage,
    images::drag_image,
    models::models,
    models::default_model,
    models::set_default_model,
    models::engine_status,
    power::slowed_by,
    models::unload_model,
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
    local_models::verify_model,
    local_models::repair_model,
    local_models::removal_of,
    local_models::remove_model,
    local_models::put_back_model,
    local_models::free_model,
    local_models::update_of,
    local_models::reveal_model,
    local_models::model_folders,
    local_models::add_model_folder,
    local_models::choose_model_folder,
    local_models::forget_model_folder,
    local_models::chat_with,
    data::data_use,
    data::back_up_now,
    data::reveal_data_folder,
    data::delete_all_chats,
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
    import_export::export_chats,
    import_export::show_export,
    import_export::import_chats,
    import_export::save_code,
    app_update::app_update,
    app_update::ask_for_app_update,
    app_update::install_app_update,
    app_update::stop_app_update,
    app_update::restart,
    failure::show_data_folder,
    failure::begin_anew,
    failure::open_read_only,
    desktop::desktop,
    desktop::run_command,
    desktop::set_available_commands,
    desktop::take_open_requests,
    desktop::opened_file,
    desktop::import_opened,
    desktop::running_work,
    desktop::quit,
    desktop::open_at_login,
    desktop::hide_quick_entry,
    desktop::fit_quick_entry,
    desktop::show_chat,
    windows::open_window,
    windows::open_link,
    windows::first_paint,
];
