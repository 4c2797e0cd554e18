//! Servers behind an address: MCP's streamable HTTP, through the crate `net`.

mod answer;
mod client;
mod events;
mod failure;
mod headers;

pub use client::{HttpClient, Tokens};
pub use failure::{Challenge, ConnectError, Failure};
pub use headers::{check_header, Header};

pub(crate) use failure::failure_of_service;
