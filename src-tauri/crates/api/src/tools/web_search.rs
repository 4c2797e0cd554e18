//! The search engine of the tool that searches the web.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A kind of search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum SearchProvider {
    /// Brave Search, with a key.
    Brave,
    /// Tavily, with a key.
    Tavily,
    /// A SearXNG server, with an address.
    Searxng,
}

/// The search engine that a person chose. Its key stays in the keychain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct WebSearch {
    /// Its kind.
    pub provider: SearchProvider,
    /// Its address; empty for the provider's own.
    pub address: String,
    /// True if there is a key for it.
    pub has_key: bool,
}

/// A search engine as a person sets it up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct WebSearchSetup {
    /// Its kind.
    pub provider: SearchProvider,
    /// Its address; empty for the provider's own.
    pub address: String,
    /// Its key; `None` keeps the one that is there.
    pub key: Option<String>,
}
