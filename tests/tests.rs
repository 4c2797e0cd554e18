//! Tests of the whole app in one binary, so that Tauri is linked once. The real window is driven by WebDriver, which
//! exists on Linux only.

#[cfg(target_os = "linux")]
mod accessible_window;
#[cfg(target_os = "linux")]
mod answers_window;
#[cfg(target_os = "linux")]
mod app_window;
#[cfg(target_os = "linux")]
mod artifacts_window;
#[cfg(target_os = "linux")]
mod branches_window;
#[cfg(target_os = "linux")]
mod bundle;
#[cfg(target_os = "linux")]
mod chat_settings_window;
#[cfg(target_os = "linux")]
mod compaction_window;
#[cfg(target_os = "linux")]
mod confined_window;
#[cfg(target_os = "linux")]
mod contract;
#[cfg(target_os = "linux")]
mod damaged_window;
#[cfg(target_os = "linux")]
mod day_window;
#[cfg(target_os = "linux")]
mod desktop_window;
#[cfg(target_os = "linux")]
mod documents_window;
#[cfg(target_os = "linux")]
mod first_use;
#[cfg(target_os = "linux")]
mod hostile_window;
#[cfg(target_os = "linux")]
mod images_window;
#[cfg(target_os = "linux")]
mod large_model_window;
#[cfg(target_os = "linux")]
mod library_window;
#[cfg(target_os = "linux")]
mod look_window;
#[cfg(target_os = "linux")]
mod models_window;
#[cfg(target_os = "linux")]
mod personal_window;
#[cfg(target_os = "linux")]
mod quantize_window;
#[cfg(target_os = "linux")]
mod server_window;
#[cfg(target_os = "linux")]
mod settings_window;
#[cfg(target_os = "linux")]
mod state_pictures;
#[cfg(target_os = "linux")]
mod support;
#[cfg(target_os = "linux")]
mod temporary_chat_window;
#[cfg(target_os = "linux")]
mod thinking_window;
#[cfg(target_os = "linux")]
mod tool_turn_window;
#[cfg(target_os = "linux")]
mod tools_window;
#[cfg(target_os = "linux")]
mod two_models;
#[cfg(target_os = "linux")]
mod ways_out;
#[cfg(target_os = "linux")]
mod web_process;
#[cfg(target_os = "linux")]
mod window;
#[cfg(target_os = "linux")]
mod writing_window;
