//! The system's own interfaces, without knowledge of the app.

pub mod badge;
#[cfg(target_os = "linux")]
pub mod caret;
pub mod clipboard;
pub mod code_file;
pub mod command_link;
pub mod deferred_tasks;
pub mod drag_out;
#[cfg(target_os = "macos")]
pub mod frontmost_app;
#[cfg(target_os = "linux")]
pub mod graphics;
pub mod link;
pub mod logging;
pub mod login;
pub mod navigation;
pub mod ponder_link;
#[cfg(target_os = "linux")]
pub mod running_app;
pub mod web_process;
