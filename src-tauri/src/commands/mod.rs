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
mod documents;
mod downloads;
mod endpoints;
mod failure;
mod files;
mod gguf;
mod hub;
mod images;
mod import_export;
#[cfg(test)]
mod interface;
mod library;
mod local_models;
mod models;
mod network;
mod notes;
mod power;
mod previews;
mod quantize;
mod server;
mod settings;
mod tools;
mod windows;

use protocol::{Error, ErrorCode, Result};
use tauri::ipc::{InvokeBody, Request};

pub use crate::events::*;
pub use failure::{Failure, READ_ONLY};
pub use local_models::models_changed;

/// The header with the id of a chat, a JSON text.
const CHAT: &str = "ponder-chat";

/// The bytes of a call; `expected` says what it should have brought.
fn body(request: &Request<'_>, expected: &str) -> Result<Vec<u8>> {
    match request.body() {
        InvokeBody::Raw(bytes) => Ok(bytes.clone()),
        InvokeBody::Json(_) => Err(Error::new(ErrorCode::BadRequest, expected)),
    }
}

/// The chat that a call with a body is for; empty for a new one.
fn chat_of(request: &Request<'_>) -> String {
    let chat = request.headers().get(CHAT);
    chat.and_then(|chat| serde_json::from_slice(chat.as_bytes()).ok())
        .unwrap_or_default()
}

command::list![
    chats::{
        chats, chats_since, chat, earlier_messages, create_chat, new_chat_settings, rename_chat, pin_chat,
        delete_chat, restore_chat, set_chat_settings, check_chat_settings, set_draft,
        begin_temporary_chat, temporary_chat, keep_temporary_chat, close_temporary_chat,
    },
    branches::{show_branch, edit_answer, delete_message, fork_chat, mark_read, set_scroll_place},
    compaction::{
        context_use, set_compaction_mark, drop_oldest_turns, summarize_oldest_turns, stop_summary,
        fork_with_summary,
    },
    library::{
        search_history, archive_chat, trash, purge_chat, projects, create_project, change_project, prefetch_project,
        put_project_file, remove_project_file, delete_project, restore_project, move_chat, history_state,
    },
    documents::{
        collections, choose_collection_folder, choose_collection_files, add_own_chats, collection_files,
        rename_collection, pause_collection, update_collection, read_collection_images, stop_collection_images,
        remove_collection, set_project_collections, citations, open_passage, passage_page, reading_cost,
        send_after_reading, stop_reading,
    },
    notes::{notes, add_note, change_note, delete_note, use_project_notes},
    answers::{send, send_to_two, regenerate, stop, answer_now, continue_answer, attach},
    files::{add_file, paste, clipboard_files, clipboard_file, file_text, content_tokens},
    images::{add_image, clipboard_image, image_tokens, image_storage, drag_image},
    previews::{show_preview, close_preview},
    models::{models, default_model, set_default_model, engine_status},
    power::slowed_by,
    models::{unload_model, capabilities},
    endpoints::{
        endpoints, endpoint_address, endpoint_models, test_endpoint, add_endpoint, set_endpoint_key,
        set_endpoint_personal, remove_endpoint,
    },
    hub::{search_models, describe_model, model_card, first_models, fit_of, memory},
    downloads::{download, pause_download, resume_download, cancel_download, move_download, watch_downloads},
    gguf::{gguf_models, choose_gguf_files, import_gguf, stop_gguf_import},
    quantize::{quantize_choices, quantize_model, stop_quantizing},
    local_models::{
        verify_model, repair_model, removal_of, remove_model, put_back_model, free_model, update_of, draft_models,
        reveal_model, model_folders, add_model_folder, choose_model_folder, forget_model_folder, load_anyway, chat_with,
    },
    data::{data_use, back_up_now, add_from_set_aside, reveal_data, delete_all_chats},
    network::{net_settings, set_offline, set_token, outbound_requests},
    server::{
        server_status, set_server, new_server_key, forget_server_key, server_key, allow_server_collections,
        served_models, client_setups,
    },
    tools::{
        chat_tools, tools_change, use_new_tools, server_resources, attach_resource, server_prompts,
        server_prompt, start_tool_server, run_calls_again, go_on_without_calls, running_calls, show_consent,
        waiting_calls, approve_call, refuse_call, waiting_elicitations, send_form, open_elicited_address,
        decline_elicitation, tools, add_tool_server, choose_tool_bundle, add_tool_bundle, change_tool_server,
        add_tool_root, remove_tool_root, found_tool_servers, read_tool_configuration, switch_tool_server,
        remove_tool_server, restart_tool_server, sign_in_tool_server, sign_out_tool_server, tool_server_log,
        set_tool_rule, revoke_tool_grant, switch_own_tool, set_web_search,
    },
    settings::{settings, change_settings, chat_window_state, set_chat_window_state},
    import_export::{export_chats, show_export, import_chats, save_code},
    app_update::{app_update, ask_for_app_update, install_app_update, stop_app_update, restart},
    failure::{
        note_history_damage, examine_history, repair_history, open_again, show_data_folder, begin_anew, open_read_only,
    },
    desktop::{
        desktop, run_command, set_available_commands, take_open_requests, opened_file, import_opened, running_work,
        quit, open_at_login, hide_quick_entry, fit_quick_entry, show_chat,
    },
    windows::{open_window, show_page, open_link, first_paint},
];
