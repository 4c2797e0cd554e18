//! Tools that a model may call: what servers offer, what a person consented to, and what became of a call.
//!
//! No call runs without a [`consent::Permit`], and nothing makes one but a person's approval of exactly that call, or a
//! grant that a person gave and that still binds.

pub mod builtin;
pub mod bundle;
pub mod canonical;
pub mod catalog;
pub mod configuration;
pub mod consent;
pub mod elicitation;
pub mod error;
pub mod host;
pub mod http;
pub mod import;
pub mod oauth;
pub mod outcome;
pub mod search_path;
pub mod session;
pub mod stdio;
pub mod visible;
