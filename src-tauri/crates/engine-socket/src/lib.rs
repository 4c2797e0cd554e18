//! One engine for all processes of a person. The process that runs one for longer (the app, `ponder serve`) listens on a private
//! socket in the data folder ([`EngineSocket`]); others ([`SharedEngine`]) answer with that engine instead of loading the weights a
//! second time, and with one of their own if nobody shares any.
//!
//! What goes over the socket are the types of `protocol`, one JSON value a line, a connection for each call, so that an engine behind it
//! can do all that one of this process can. Only the same user can open it: the folder has mode 0700, the socket 0600.

mod client;
mod error;
mod host;
mod wire;

pub use client::SharedEngine;
pub use error::{Error, Result};
pub use host::EngineSocket;
