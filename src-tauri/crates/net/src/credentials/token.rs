//! The token for the hub: where it comes from. The keychain is asked for it once.

use std::sync::{Mutex, PoisonError};

use api::TokenSource;

use super::secrets::{one_word, Secrets};
use crate::environment::Environment;
use crate::error::{Error, Result};

/// The token that was found. It has no `Debug`, because it holds the secret.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) secret: Option<String>,
    pub(crate) source: TokenSource,
    pub(crate) keychain_problem: Option<Error>,
}

/// Finds the token and remembers it.
pub(crate) struct Tokens {
    environment: Environment,
    secrets: Secrets,
    /// Under this name the keychain keeps it: the endpoint's origin, so that a token for one hub is never sent to a
    /// mirror.
    account: String,
    found: Mutex<Option<Token>>,
    looking: tokio::sync::Mutex<()>,
}

impl Tokens {
    pub(crate) fn new(environment: Environment, secrets: Secrets, account: String) -> Self {
        Self {
            environment,
            secrets,
            account,
            found: Mutex::new(None),
            looking: tokio::sync::Mutex::new(()),
        }
    }

    /// The token as it is at the moment. The keychain is asked once; the environment goes before it, the file that
    /// Hugging Face's programs write comes after it.
    pub(crate) async fn token(&self) -> Token {
        let _one_at_a_time = self.looking.lock().await;
        if let Some(found) = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            // A file is read again, because another program may sign in or out while this one runs.
            return match found.source {
                TokenSource::None | TokenSource::File => self.with_file(found.keychain_problem),
                TokenSource::Environment | TokenSource::Keychain => found,
            };
        }
        let found = self.look().await;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        found
    }

    async fn look(&self) -> Token {
        let of = |secret: String, source| Token {
            secret: Some(secret),
            source,
            keychain_problem: None,
        };
        let named = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]
            .iter()
            .find_map(|name| self.environment.get(name))
            .and_then(one_word);
        if let Some(secret) = named {
            return of(secret, TokenSource::Environment);
        }
        // A path in the environment comes from the environment, so it goes before the keychain as well.
        if self.environment.token_file().is_some_and(|(_, named)| named) {
            let found = self.with_file(None);
            if found.secret.is_some() {
                return found;
            }
        }
        match self.secrets.get(&self.account).await {
            Ok(Some(secret)) => of(secret, TokenSource::Keychain),
            Ok(None) => self.with_file(None),
            Err(problem) => self.with_file(Some(problem)),
        }
    }

    /// The token in the file that Hugging Face's programs write, or none.
    fn with_file(&self, keychain_problem: Option<Error>) -> Token {
        let file = self.environment.token_file();
        let secret = file.and_then(|(path, _)| one_word(&std::fs::read_to_string(path).ok()?));
        Token {
            source: secret.as_ref().map_or(TokenSource::None, |_| TokenSource::File),
            secret,
            keychain_problem,
        }
    }

    /// Stores a token in the keychain, or removes it.
    pub(crate) async fn keep(&self, secret: Option<&str>) -> Result<()> {
        let secret = secret
            .map(|secret| one_word(secret).ok_or(Error::BadToken))
            .transpose()?;
        match &secret {
            Some(secret) => self.secrets.set(&self.account, secret).await?,
            None => self.secrets.forget(&self.account).await?,
        }
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }
}
