//! The system's own interfaces, without knowledge of the app.

use std::fmt::Display;

use protocol::{Error, Reason};

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
#[cfg(target_os = "linux")]
pub mod session_bus;
pub mod web_process;

/// The error of something that the system did not do, before its reason.
pub fn failed<E: Display>(reason: Reason, what: &str) -> impl FnOnce(E) -> Error + '_ {
    move |error| Error::because(reason, format!("{what}: {error}"))
}
