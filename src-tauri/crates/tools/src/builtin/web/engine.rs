//! The search engine that a person chose.

use api::SearchProvider;
use net::Endpoint;
use serde::{Deserialize, Serialize};

/// A search engine: its kind, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchEngine {
    /// Its kind.
    pub provider: SearchProvider,
    /// Its address; empty for the provider's own.
    #[serde(default)]
    pub address: String,
}

impl SearchEngine {
    /// Its address.
    ///
    /// # Errors
    /// A sentence, if it has none or an impossible one.
    pub fn endpoint(&self) -> Result<Endpoint, String> {
        let own = match self.provider {
            SearchProvider::Brave => "https://api.search.brave.com",
            SearchProvider::Tavily => "https://api.tavily.com",
            SearchProvider::Searxng => "",
        };
        let address = match self.address.trim() {
            "" => own,
            address => address,
        };
        if address.is_empty() {
            return Err("a SearXNG server has an address, such as http://localhost:8888".to_owned());
        }
        let wrong =
            "the address of a search engine looks like https://search.example.org, without a user name or a query";
        Endpoint::parse(address).map_err(|_| wrong.to_owned())
    }

    /// The host that searches reach.
    ///
    /// # Errors
    /// That of [`SearchEngine::endpoint`].
    pub fn host(&self) -> Result<String, String> {
        Ok(self.endpoint()?.host())
    }

    /// True if it wants a key.
    pub fn needs_key(&self) -> bool {
        self.provider != SearchProvider::Searxng
    }

    /// The name of its key in the keychain. Another address has another key, so that none goes where it does not
    /// belong.
    ///
    /// # Errors
    /// That of [`SearchEngine::endpoint`].
    pub fn secret_name(&self) -> Result<String, String> {
        Ok(format!("web-search:{}", self.endpoint()?.origin()))
    }

    /// The part that a consent binds to beside the tool.
    pub fn binding(&self) -> serde_json::Value {
        serde_json::json!([self.provider, self.address])
    }
}
