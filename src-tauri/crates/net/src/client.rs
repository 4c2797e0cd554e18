//! The client itself: what it is opened with, and what it may be asked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::{NetSettings, OutboundRequest, Purpose};
use tokio::sync::watch;
use url::Url;

use crate::endpoint::{host_of, is_loopback};
use crate::environment::Environment;
use crate::keychain::{Keychain, SystemKeychain};
use crate::offline_switch::OfflineSwitch;
use crate::requests::RequestList;
use crate::resolver::{LoopbackResolver, Resolver};
use crate::secrets::Secrets;
use crate::send::RequestBuilder;
use crate::token::{Token, Tokens};
use crate::{Endpoint, Error, Result, PUBLIC_HUB};

/// How long it may take to open a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// What the client is opened with.
pub struct Settings {
    /// The data folder, where the switch and the list of requests are kept; `None` keeps both in memory.
    pub folder: Option<PathBuf>,
    /// The environment: endpoint, token, offline.
    pub environment: Environment,
    /// Where the token is kept.
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
            keychain: Arc::new(crate::MemoryKeychain::default()),
        }
    }
}

/// The one outbound client. Clones share everything.
#[derive(Clone)]
pub struct Net(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) endpoint: Result<Endpoint>,
    shown_endpoint: Endpoint,
    pub(crate) switch: Arc<OfflineSwitch>,
    pub(crate) tokens: Tokens,
    secrets: Secrets,
    pub(crate) requests: RequestList,
    pub(crate) proxied: bool,
    /// For other computers. Made when first needed and dropped when the switch is thrown, so that no idle connection outlives it.
    outbound: Mutex<Option<reqwest::Client>>,
    /// For this computer itself. Made when first needed.
    loopback: Mutex<Option<reqwest::Client>>,
}

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
        let Settings {
            folder,
            environment,
            keychain,
        } = settings;
        let endpoint = Endpoint::parse(environment.get("HF_ENDPOINT").unwrap_or(PUBLIC_HUB));
        let shown_endpoint = endpoint.clone().unwrap_or_else(|_| Endpoint::unusable());
        let forced = environment.is_on("HF_HUB_OFFLINE") || environment.is_on("TRANSFORMERS_OFFLINE");
        Self(Arc::new(Inner {
            switch: Arc::new(OfflineSwitch::open(folder.as_deref(), forced)),
            requests: RequestList::open(folder.as_deref()),
            proxied: environment.names_a_proxy(),
            tokens: Tokens::new(environment, Secrets::new(Arc::clone(&keychain)), shown_endpoint.origin()),
            secrets: Secrets::new(keychain),
            endpoint,
            shown_endpoint,
            outbound: Mutex::new(None),
            loopback: Mutex::new(None),
        }))
    }

    /// The hub's address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.shown_endpoint
    }

    /// A request for the body of an address.
    pub fn get(&self, address: &str, purpose: Purpose) -> RequestBuilder {
        RequestBuilder::new(self.clone(), reqwest::Method::GET, address, purpose)
    }

    /// A request for the headers of an address.
    pub fn head(&self, address: &str, purpose: Purpose) -> RequestBuilder {
        RequestBuilder::new(self.clone(), reqwest::Method::HEAD, address, purpose)
    }

    /// A request that brings a body along: [`RequestBuilder::json`] gives it one. It is never sent to another origin than the
    /// address's own.
    pub fn post(&self, address: &str, purpose: Purpose) -> RequestBuilder {
        RequestBuilder::new(self.clone(), reqwest::Method::POST, address, purpose)
    }

    /// Whether no connection to another computer is opened.
    pub fn is_offline(&self) -> bool {
        self.0.is_offline()
    }

    /// Throws the *Offline* switch. On, it ends what is running with [`Error::Offline`] and closes every connection to another
    /// computer.
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

    /// The secret that the system's keychain keeps under this name, such as `endpoint:cluster`; `None` if there is none. The keychain is
    /// asked each time, so that a change by another process counts at once.
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
        let secret = crate::secrets::one_word(secret).ok_or(Error::BadKey)?;
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
            source, keychain_problem, ..
        } = self.0.tokens.token().await;
        NetSettings {
            offline: self.is_offline(),
            forced_by_env: self.0.switch.is_forced(),
            endpoint: self.endpoint().address().to_owned(),
            token: source.0,
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

impl Inner {
    pub(crate) fn is_offline(&self) -> bool {
        let offline = self.switch.is_on();
        if offline {
            self.outbound.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        offline
    }

    /// [`Error::Offline`], as it is at the moment.
    pub(crate) fn offline(&self) -> Error {
        Error::Offline {
            forced: self.switch.is_forced(),
        }
    }

    /// What a future gives, unless the switch holds for it and is thrown before.
    pub(crate) async fn unless_offline<T>(&self, lock: OfflineLock, work: impl std::future::Future<Output = T>) -> Result<T> {
        if lock == OfflineLock::Exempt {
            return Ok(work.await);
        }
        if self.is_offline() {
            return Err(self.offline());
        }
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.switch.until_on() => {
                self.is_offline();
                Err(self.offline())
            }
        }
    }

    /// The client for an address. This computer itself is never asked through a proxy: to a proxy, the name means the proxy's own computer.
    pub(crate) fn client(&self, address: &Url) -> Result<reqwest::Client> {
        let loopback = is_loopback(address);
        let place = if loopback { &self.loopback } else { &self.outbound };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*place {
            return Ok(client.clone());
        }
        let builder = if loopback {
            builder().no_proxy().dns_resolver(Arc::new(LoopbackResolver))
        } else {
            builder().dns_resolver(Arc::new(Resolver(Arc::clone(&self.switch))))
        };
        let made = builder.build().map_err(|error| Error::Tls {
            host: host_of(address),
            reason: error.to_string(),
        })?;
        Ok(place.insert(made).clone())
    }
}

/// What every client has in common.
fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(crate::send::USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(Duration::from_secs(30))
        // Ranges of one file go over several connections, which one connection of HTTP/2 would put behind one window.
        .http1_only()
        .referer(false)
}

/// Whether the *Offline* switch holds for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfflineLock {
    /// It does.
    Obeys,
    /// The request does not leave this computer.
    Exempt,
}

impl OfflineLock {
    /// Inference by a server on this computer is exempt. A request to the hub never is: a hub on loopback is a mirror or a tunnel, and
    /// stands for one that is elsewhere.
    pub(crate) fn of(purpose: Purpose, address: &Url) -> Self {
        if purpose == Purpose::Inference && is_loopback(address) {
            Self::Exempt
        } else {
            Self::Obeys
        }
    }
}
