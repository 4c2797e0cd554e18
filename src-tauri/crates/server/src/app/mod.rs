//! The server inside the app: its switch, and setup instructions for clients.

pub(crate) mod client_setups;
pub(crate) mod managed_server;
