//! Answers with models that other programs serve: any endpoint that speaks OpenAI's `/v1/chat/completions`, such as
//! vLLM, llama-server, LM Studio or mlx-lm's server, on this computer or another.
//!
//! Connections are opened by `net` alone, so its rules hold: the offline switch, the list of requests, keys that go to
//! their own address. Nothing is sent that nobody asked for. [`RemoteEngine`] is the [`Engine`](protocol::Engine) of
//! such models, [`EndpointShelf`] finds them by their references.

mod endpoint;
mod engine;
mod error;
mod http;
mod reply;
mod request;
mod shelf;

pub use endpoint::{address, check_name_is_free, check_way, endpoint, info};
pub use engine::RemoteEngine;
pub use error::{Error, Result};
pub use shelf::EndpointShelf;
