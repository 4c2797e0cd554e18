//! The client itself: what it is opened with, and what it may be asked.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::{NetSettings, OutboundRequest, Purpose};
use tokio::sync::watch;

use crate::call::RequestBuilder;
use crate::connections::Connections;
use crate::credentials::{one_word, Keychain, MemoryKeychain, SystemKeychain, Token};
use crate::endpoint::{Endpoint, Place};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::offline::{Found, Names};

/// The options of a client.
pub struct Settings {
    /// The data folder, where the switch and the list of requests are kept; `None` keeps both in memory.
    pub folder: Option<PathBuf>,
    /// The environment: endpoint, token, offline.
    pub environment: Environment,
    /// The store of the hub's token and of keys.
    pub keychain: Arc<dyn Keychain>,
}

impl Settings {
    /// This process's environment, the system's keychain, and a data folder.
    pub fn of_this_computer(folder: &Path) -> Self {
        Self {
            folder: Some(folder.to_owned()),
            environment: Environment::of_this_process(),
            keychain: Arc::new(SystemKeychain),
        }
    }

    /// A hub of a test: this endpoint, nothing of this computer's environment or keychain, all in memory.
    pub fn of_a_test(endpoint: &str) -> Self {
        Self {
            folder: None,
            environment: Environment::of(&[("HF_ENDPOINT", endpoint)]),
            keychain: Arc::new(MemoryKeychain::default()),
        }
    }
}

/// The one outbound client. Clones share everything.
#[derive(Clone)]
pub struct Net(Arc<Connections>);

impl std::fmt::Debug for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Net")
            .field("endpoint", &self.0.shown_endpoint.address())
            .finish_non_exhaustive()
    }
}

impl Net {
    /// Opens the client. No connection is opened, and no keychain is asked, before the first request.
    ///
    /// An HF_ENDPOINT that makes no sense does not keep the app from starting: every request fails with
    /// [`Error::BadEndpoint`], because asking the public hub instead is not what was wanted.
    pub fn open(settings: Settings) -> Self {
        // The first one wins, so a second client changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = settings.folder.as_deref();
        let connections = Connections::open(folder, settings.environment, settings.keychain);
        Self(Arc::new(connections))
    }

    /// A client of a test: the places of these names are those of their addresses, and all of them lead to this
    /// computer, where the servers of the test are. No other name has an address.
    pub fn open_with_names(settings: Settings, names: HashMap<String, IpAddr>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut connections = Connections::open(settings.folder.as_deref(), settings.environment, settings.keychain);
        connections.names = Arc::new(Names::looked_up(move |name| {
            let found = names.get(&name).map(|judged| Found {
                number: Ipv4Addr::LOCALHOST.into(),
                place: Place::of(*judged),
            });
            Box::pin(std::future::ready(Ok(found.into_iter().collect())))
        }));
        Self(Arc::new(connections))
    }

    /// The hub's address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.shown_endpoint
    }

    /// A request for the body of an address.
    pub fn get(&self, address: &str, purpose: Purpose) -> RequestBuilder {
        RequestBuilder::new(Arc::clone(&self.0), reqwest::Method::GET, address, purpose)
    }

    /// A request for the headers of an address.
    pub fn head(&self, address: &str, purpose: Purpose) -> RequestBuilder {
        RequestBuilder::new(Arc::clone(&self.0), reqwest::Method::HEAD, address, purpose)
    }

    /// A request that brings a body along: [`RequestBuilder::json`] gives it one. It is never sent to another origin
    /// than the address's own.
    pub fn post(&self, address: &str, purpose: Purpose) -> RequestBuilder {
        RequestBuilder::new(Arc::clone(&self.0), reqwest::Method::POST, address, purpose)
    }

    /// A request that ends what an address stands for.
    pub fn delete(&self, address: &str, purpose: Purpose) -> RequestBuilder {
        RequestBuilder::new(Arc::clone(&self.0), reqwest::Method::DELETE, address, purpose)
    }

    /// True while no connection to another computer may be opened.
    pub fn is_offline(&self) -> bool {
        self.0.is_offline()
    }

    /// Throws the *Offline* switch. On, it ends what is running with [`Error::Offline`] and closes every connection to
    /// another computer.
    ///
    /// # Errors
    /// [`Error::Setting`] if it cannot be stored; going offline holds for this process all the same.
    pub fn set_offline(&self, offline: bool) -> Result<()> {
        let kept = self.0.switch.set(offline);
        // Looking lets the idle connections go.
        self.0.is_offline();
        kept
    }

    /// Changes when the switch does: `true` while no connection to another computer is opened.
    pub fn watch_offline(&self) -> watch::Receiver<bool> {
        self.0.switch.watch()
    }

    /// Keeps a token for the hub in the system's keychain.
    ///
    /// # Errors
    /// [`Error::BadToken`] if it is no token, [`Error::Keychain`] if the keychain does not take it.
    pub async fn set_token(&self, token: &str) -> Result<()> {
        self.0.tokens.keep(Some(token)).await
    }

    /// Forgets the token that the keychain keeps. One in the environment or in a file stays.
    ///
    /// # Errors
    /// [`Error::Keychain`] if the keychain does not answer.
    pub async fn forget_token(&self) -> Result<()> {
        self.0.tokens.keep(None).await
    }

    /// The secret that the system's keychain keeps under this name, such as `endpoint:cluster`; `None` if there is
    /// none. The keychain is asked each time, so that a change by another process counts at once.
    ///
    /// # Errors
    /// [`Error::Keychain`] if the keychain does not answer.
    pub async fn secret(&self, name: &str) -> Result<Option<String>> {
        self.0.secrets.get(name).await
    }

    /// Keeps a secret under this name in the system's keychain, in place of the one that was there.
    ///
    /// # Errors
    /// [`Error::BadKey`] if it could not stand in a header, [`Error::Keychain`] if the keychain does not take it.
    pub async fn set_secret(&self, name: &str, secret: &str) -> Result<()> {
        let secret = one_word(secret).ok_or(Error::BadKey)?;
        self.0.secrets.set(name, &secret).await
    }

    /// Removes the secret of this name from the keychain; one that is not there is removed already.
    ///
    /// # Errors
    /// [`Error::Keychain`] if the keychain does not answer.
    pub async fn forget_secret(&self, name: &str) -> Result<()> {
        self.0.secrets.forget(name).await
    }

    /// The settings of the network. This asks the keychain, once.
    pub async fn settings(&self) -> NetSettings {
        let Token {
            source,
            keychain_problem,
            ..
        } = self.0.tokens.token().await;
        NetSettings {
            offline: self.is_offline(),
            forced_by_env: self.0.switch.is_forced(),
            endpoint: self.endpoint().address().to_owned(),
            token: source,
            keychain_problem: keychain_problem.map(Into::into),
        }
    }

    /// The last thousand requests, the newest last.
    pub fn requests(&self) -> Vec<OutboundRequest> {
        self.0.requests.all()
    }

    /// Changes whenever [`Net::requests`] would give something new.
    pub fn watch_requests(&self) -> watch::Receiver<u64> {
        self.0.requests.watch()
    }
}
