//! The commands of the windows, one line each where possible: the work is done in the other rooms. A command is a
//! function with `#[command]` and a line in the list below, from which `ui/src/host/generated.ts` is generated.

// A command that is not listed is dead code.
#![deny(dead_code)]

mod answers;
mod app_update;
mod branches;
mod chats;
mod data;
mod desktop;
mod downloads;
mod endpoints;
mod failure;
mod files;
mod hub;
mod images;
#[cfg(test)]
mod interface;
mod keeping;
mod library;
mod memory;
mod models;
mod network;
mod power;
mod server;
mod settings;
mod transfer;
mod windows;

pub use crate::events::*;
pub use failure::{Failure, READ_ONLY};
pub use library::models_changed;

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
    memory::context_use,
    memory::set_memory_cut,
    memory::forget_oldest,
    memory::summarise_oldest,
    memory::stop_summary,
    memory::carry_over,
    keeping::search_history,
    keeping::archive_chat,
    keeping::trash,
    keeping::purge_chat,
    keeping::folders,
    keeping::create_folder,
    keeping::change_folder,
    keeping::prefetch_folder,
    keeping::put_folder_file,
    keeping::remove_folder_file,
    keeping::delete_folder,
    keeping::restore_folder,
    keeping::move_chat,
    keeping::history_state,
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
    models::eject_model,
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
    library::put_back_model,
    library::free_model,
    library::update_of,
    library::reveal_model,
    library::model_folders,
    library::add_model_folder,
    library::choose_model_folder,
    library::forget_model_folder,
    library::chat_with,
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
    transfer::export_chats,
    transfer::show_export,
    transfer::import_chats,
    transfer::save_code,
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
    desktop::take_arrivals,
    desktop::arrived_file,
    desktop::import_arrived,
    desktop::unfinished,
    desktop::quit,
    desktop::open_at_login,
    desktop::hide_quick_entry,
    desktop::fit_quick_entry,
    desktop::show_chat,
    windows::open_window,
    windows::open_link,
    windows::first_paint,
];
