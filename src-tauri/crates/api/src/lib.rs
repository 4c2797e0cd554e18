//! The interface between the app and its windows: settings, chats, listings, the hub's views, the commands. The rooms that
//! fill it (history, chat, hub, net, remote, server, power) share it; the engine and what it is built of do not know it, so a
//! change here builds no engine anew.
//!
//! Types marked `#[ts(export)]`, and those of `protocol` that they hold, are written to `ui/src/bindings` by the unit tests.

mod app;
mod chats;
mod models;
mod settings;

pub use app::*;
pub use chats::*;
pub use models::*;
pub use settings::*;

#[cfg(test)]
mod tests {
    use ts_rs::{Config, TS};

    /// The types of `protocol` that windows see by themselves; those inside a type of this crate are written with it.
    #[test]
    fn export_bindings_of_protocol() -> Result<(), ts_rs::ExportError> {
        let config = Config::from_env();
        protocol::Capabilities::export_all(&config)?;
        protocol::TokenCount::export_all(&config)
    }
}
