//! Ponder's own tools as a person sets them up: those that reach the internet, and the search engine.

use api::{WebSearch, WebSearchSetup};

use super::file::Configuration;
use super::Tools;
use crate::builtin::{Builtin, SearchEngine};
use crate::error::{Error, Result};

impl Tools {
    /// Switches one of Ponder's own tools that reach the internet on or off. Calls of it ask for consent all the same.
    ///
    /// # Errors
    /// [`Error::NoSwitch`] for another tool, and [`Error::File`].
    pub fn switch_own_tool(&self, name: &str, on: bool) -> Result<()> {
        let own = Builtin::named(name).filter(|own| own.reaches_the_internet());
        let own = own.ok_or_else(|| Error::NoSwitch(name.to_owned()))?;
        self.0.file.change(|configuration| {
            match on {
                true => configuration.switched_on.insert(own.name().to_owned()),
                false => configuration.switched_on.remove(own.name()),
            };
            Ok(())
        })?;
        self.changed();
        Ok(())
    }

    /// Chooses the search engine; its key goes to the keychain. `None` chooses none, and forgets the key of the one
    /// before.
    ///
    /// # Errors
    /// [`Error::SearchEngine`] for an address or a key that is none, [`Error::Keychain`] and [`Error::File`]; the engine
    /// before stays then.
    pub async fn set_web_search(&self, setup: Option<WebSearchSetup>) -> Result<()> {
        let before = self.0.file.get()?.search_engine;
        let net = &self.0.sources.net;
        let keychain = |error: net::Error| match error {
            net::Error::BadKey => Error::SearchEngine(error.to_string()),
            other => Error::Keychain(other.to_string()),
        };
        let engine = setup.as_ref().map(|setup| SearchEngine {
            provider: setup.provider,
            address: setup.address.trim().to_owned(),
        });
        let name = engine.as_ref().map(SearchEngine::secret_name).transpose();
        let name = name.map_err(Error::SearchEngine)?;
        let key = setup.and_then(|setup| setup.key).filter(|key| !key.trim().is_empty());
        if let (Some(name), Some(key)) = (&name, key) {
            net.set_secret(name, &key).await.map_err(keychain)?;
        }
        self.0.file.change(|configuration| {
            configuration.search_engine = engine;
            Ok(())
        })?;
        self.changed();
        let old = before.and_then(|before| before.secret_name().ok());
        match old.filter(|old| name.as_ref() != Some(old)) {
            Some(old) => net.forget_secret(&old).await.map_err(keychain),
            None => Ok(()),
        }
    }

    /// The search engine as it is shown.
    pub(super) async fn web_search(&self, configuration: &Configuration) -> Option<WebSearch> {
        let engine = configuration.search_engine.clone()?;
        let has_key = match engine.secret_name() {
            Ok(name) if engine.needs_key() => {
                let kept = self.0.sources.net.secret(&name).await;
                kept.is_ok_and(|kept| kept.is_some())
            }
            _ => false,
        };
        Some(WebSearch {
            provider: engine.provider,
            address: engine.address,
            has_key,
        })
    }
}
