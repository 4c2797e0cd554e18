//! One engine for all processes of a user. A long-running process (the app, `ponder serve`) listens on a private socket
//! in the data folder ([`EngineSocket`]); others ([`SharedEngine`]) use that engine instead of loading the weights a
//! second time, and one of their own if none is shared.
//!
//! The wire carries the types of `protocol`, one JSON value per line and one connection per call, so a shared engine
//! can do everything that one of this process can. Only the same user can open it: the folder has mode 0700, the socket
//! 0600, and each side compares the other's user with its own.

mod client;
mod error;
mod host;
mod wire;

pub use client::SharedEngine;
pub use error::{Error, Result};
pub use host::EngineSocket;
