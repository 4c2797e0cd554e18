//! The tokens of a server at which somebody signed in, renewed when they end.

use std::time::{SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use futures::FutureExt;
use net::Net;
use rmcp::transport::auth::{AuthError, CredentialStore, InMemoryCredentialStore};
use tokio::sync::Mutex;

use super::error::Error;
use super::requests::Requests;
use super::sign_in::config;
use super::stored::{SignInStore, StoredSignIn};
use crate::http::{Failure, Tokens};

/// A token is renewed so many seconds before its end.
const BEFORE: u64 = 30;

/// The tokens of one server.
pub struct SignedIn {
    net: Net,
    address: String,
    store: SignInStore,
    /// The sign-in, once it was looked for. Held while it is renewed, so that a refresh token is used once.
    kept: Mutex<Option<Option<StoredSignIn>>>,
}

impl SignedIn {
    /// Of the server at this address.
    pub fn new(net: Net, address: String, store: SignInStore) -> Self {
        Self {
            net,
            address,
            store,
            kept: Mutex::default(),
        }
    }

    /// A newer sign-in in place of this one; none if somebody has to sign in again.
    async fn newer(&self, kept: &StoredSignIn) -> Result<Option<StoredSignIn>, Error> {
        if !kept.is_renewable() {
            return Ok(None);
        }
        let requests = Requests::new(self.net.clone(), &self.address)?;
        let mut manager = requests.manager().await?;
        let credentials = InMemoryCredentialStore::new();
        let sentence = |error: AuthError| requests.error(&error);
        credentials.save(kept.credentials.clone()).await.map_err(sentence)?;
        manager.set_credential_store(credentials.clone());
        // False if another server of sign-ins took the place of the one that gave the tokens.
        if !manager.initialize_from_store().await.map_err(sentence)? {
            return Ok(None);
        }
        manager.configure_client(config(&kept.client)).map_err(sentence)?;
        match manager.refresh_token().await {
            Ok(_) => {}
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => return Ok(None),
            Err(error) => return Err(sentence(error)),
        }
        let renewed = credentials.load().await.map_err(sentence)?;
        Ok(renewed.map(|credentials| StoredSignIn {
            credentials,
            ..kept.clone()
        }))
    }

    /// Renews, and keeps the outcome.
    async fn renew(
        &self,
        held: &mut Option<Option<StoredSignIn>>,
        kept: StoredSignIn,
    ) -> Result<Option<String>, Error> {
        let renewed = self.newer(&kept).await?;
        let token = renewed.as_ref().and_then(StoredSignIn::token);
        let kept = renewed.unwrap_or_else(|| {
            // Ponder stays known to the server.
            let mut kept = kept;
            kept.credentials.token_response = None;
            kept
        });
        self.store.save(&kept).await?;
        *held = Some(Some(kept));
        Ok(token)
    }
}

impl Tokens for SignedIn {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, Failure>> {
        async move {
            let mut held = self.kept.lock().await;
            if held.is_none() {
                *held = Some(self.store.load(&self.address).await.map_err(failure)?);
            }
            let Some(Some(kept)) = held.clone() else {
                return Ok(None);
            };
            if !kept.ends_within(BEFORE, now()) {
                return Ok(kept.token());
            }
            // Another process may have renewed it, and each refresh token is used once.
            let stored = self.store.load(&self.address).await.map_err(failure)?;
            match stored {
                Some(stored) if stored.token() == kept.token() => self.renew(&mut held, stored).await.map_err(failure),
                other => {
                    let token = other.as_ref().and_then(StoredSignIn::token);
                    *held = Some(other);
                    Ok(token)
                }
            }
        }
        .boxed()
    }

    fn renewed<'a>(&'a self, refused: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        async move {
            let mut held = self.kept.lock().await;
            // Another request, or another process, may have renewed it meanwhile.
            let stored = self.store.load(&self.address).await.map_err(failure)?;
            let Some(kept) = stored else {
                *held = Some(None);
                return Ok(None);
            };
            match kept.token() {
                Some(token) if token != refused => {
                    *held = Some(Some(kept));
                    Ok(Some(token))
                }
                None => {
                    *held = Some(Some(kept));
                    Ok(None)
                }
                Some(_) => self.renew(&mut held, kept).await.map_err(failure),
            }
        }
        .boxed()
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Net(error) => Failure::Net(error),
        other => Failure::Tokens(other.to_string()),
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
