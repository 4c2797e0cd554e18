//! The local server: models of this computer behind OpenAI's, Anthropic's and Ollama's HTTP interfaces, for editors, agents
//! and scripts.
//!
//! It knows an [`Engine`](protocol::Engine) and a [`ModelShelf`](protocol::ModelShelf), nothing of chats. Each surface
//! is translated in files of its own without a socket: a request to a [`protocol::Request`], engine events to wire
//! events. Contents are never logged.

mod answer;
mod anthropic;
mod app;
mod config;
mod describe;
mod error;
mod figures;
mod http;
mod lm_studio;
mod models;
mod ollama;
mod openai;
mod request;
mod routes;
mod server;
mod state;

pub use answer::allowed_documents::AllowedDocuments;
pub use app::client_setups::client_setups;
pub use app::managed_server::{new_key, ServerSwitch};
pub use config::{Limits, ServerConfig, DEFAULT_PORT, WAITING};
pub use error::{Error, Result};
pub use models::keep_alive::KeepAlive;
pub use models::served::{reference_of, served_models, ServedModel};
pub use server::Server;
