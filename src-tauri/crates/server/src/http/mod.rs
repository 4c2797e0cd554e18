//! HTTP without a model: connections, bodies, refusals, keys and origins.

pub(crate) mod auth;
pub(crate) mod connections;
pub(crate) mod error_body;
pub(crate) mod heap_trim;
pub(crate) mod ids;
pub(crate) mod json_body;
pub(crate) mod peer_user;
pub(crate) mod port_holder;
pub(crate) mod response;
#[cfg(target_os = "linux")]
mod tcp_table;
