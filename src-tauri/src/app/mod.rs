//! The state of the app: its engines, its server, its updates.

pub mod app_update;
pub mod file_jobs;
pub mod local_server;
pub mod state;
pub mod temporary;
pub mod tool_chats;
