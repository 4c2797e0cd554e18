//! The token of the hub and the keys of endpoints: the keychain, the environment, and the file of Hugging Face's
//! programs.

mod keychain;
mod secrets;
mod token;

pub use keychain::{Keychain, MemoryKeychain, SystemKeychain};
pub(crate) use secrets::{one_word, Secrets};
pub(crate) use token::{Token, Tokens};
