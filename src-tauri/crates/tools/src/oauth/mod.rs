//! Signing in to a server by OAuth 2.1, as MCP wants it: in the person's own browser, which comes back to an address of
//! this computer.
//!
//! rmcp speaks the protocol; its requests go through `net`, and nothing begins before a person asked for it.

mod error;
mod redirect;
mod requests;
mod sign_in;
mod stored;
mod tokens;

pub use error::Error;
pub use sign_in::{sign_in, Browser, OwnClient, SignIn};
pub use stored::SignInStore;
pub use tokens::SignedIn;
