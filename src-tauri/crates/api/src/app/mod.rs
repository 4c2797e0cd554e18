//! The app itself: its windows and commands, the desktop around it, its server and its updates.

mod app_update;
mod command;
mod desktop;
mod local_server;
mod power;
mod window;

pub use app_update::{AppRelease, AppUpdate};
pub use command::Command;
pub use desktop::{Desktop, ImportPreview, OpenRequest, QuitChoice, RunningWork, UnavailableReason};
pub use local_server::{
    ClientSetup, InboundClient, PortHolder, ServerFigures, ServerSettings, ServerState, ServerStatus,
};
pub use power::{MemoryRelease, Slowdown};
pub use window::{PageRequest, WindowName, WindowPage};
