//! The interface between the app and its windows: settings, chats, listings, the hub's views, the commands. The rooms
//! that implement it (history, chat, hub, net, remote, server, power, tools) share it. The engine does not depend on it, so a
//! change here does not rebuild the engine.
//!
//! The unit tests write types marked `#[ts(export)]`, and the types of `protocol` inside them, to `ui/src/bindings`.

mod app;
mod chats;
mod documents;
mod models;
mod settings;
mod tools;

pub use app::*;
pub use chats::*;
pub use documents::*;
pub use models::*;
pub use settings::*;
pub use tools::*;

#[cfg(test)]
mod tests;
