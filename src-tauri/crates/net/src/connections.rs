//! Connections: the HTTP clients, and the state that every request shares.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::Purpose;
use url::Url;

use crate::credentials::{Keychain, Secrets, Tokens};
use crate::endpoint::{host_of, is_loopback, Endpoint, PUBLIC_HUB};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::offline::{LoopbackResolver, OfflineSwitch, Resolver};
use crate::requests::RequestList;

/// How long it may take to open a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// It says nothing about the user or the computer.
pub(crate) const USER_AGENT: &str = concat!("Ponder/", env!("CARGO_PKG_VERSION"));

/// The state that every request shares.
pub(crate) struct Connections {
    pub(crate) endpoint: Result<Endpoint>,
    pub(crate) shown_endpoint: Endpoint,
    pub(crate) switch: Arc<OfflineSwitch>,
    pub(crate) tokens: Tokens,
    pub(crate) secrets: Secrets,
    pub(crate) requests: RequestList,
    pub(crate) proxied: bool,
    /// For other computers. Made when first needed and dropped when the switch is thrown, so that no idle connection
    /// outlives it.
    outbound: Mutex<Option<reqwest::Client>>,
    /// For this computer itself. Made when first needed.
    loopback: Mutex<Option<reqwest::Client>>,
}

impl Connections {
    /// Nothing is connected, and no keychain is asked, before the first request.
    pub(crate) fn open(folder: Option<&Path>, environment: Environment, keychain: Arc<dyn Keychain>) -> Self {
        let endpoint = Endpoint::parse(environment.get("HF_ENDPOINT").unwrap_or(PUBLIC_HUB));
        let shown_endpoint = endpoint.clone().unwrap_or_else(|_| Endpoint::unusable());
        let secrets = Secrets::new(keychain);
        let forced = environment.is_on("HF_HUB_OFFLINE") || environment.is_on("TRANSFORMERS_OFFLINE");
        Self {
            switch: Arc::new(OfflineSwitch::open(folder, forced)),
            requests: RequestList::open(folder),
            proxied: environment.names_a_proxy(),
            tokens: Tokens::new(environment, secrets.clone(), shown_endpoint.origin()),
            secrets,
            endpoint,
            shown_endpoint,
            outbound: Mutex::new(None),
            loopback: Mutex::new(None),
        }
    }

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

    /// The result of a future, or [`Error::Offline`] if the switch applies to it and is turned on first.
    pub(crate) async fn unless_offline<T>(
        &self,
        lock: OfflineLock,
        work: impl std::future::Future<Output = T>,
    ) -> Result<T> {
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

    /// The client for an address. This computer itself is never asked through a proxy: to a proxy, the name means the
    /// proxy's own computer.
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

/// The options that all clients share.
fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(Duration::from_secs(30))
        // Ranges of one file go over several connections, which one connection of HTTP/2 would put behind one window.
        .http1_only()
        .referer(false)
}

/// How the *Offline* switch applies to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfflineLock {
    /// It does.
    Obeys,
    /// The request does not leave this computer.
    Exempt,
}

impl OfflineLock {
    /// Inference by a server on this computer is exempt. A request to the hub never is: a hub on loopback is a mirror
    /// or a tunnel, and stands for one that is elsewhere.
    pub(crate) fn of(purpose: Purpose, address: &Url) -> Self {
        if purpose == Purpose::Inference && is_loopback(address) {
            Self::Exempt
        } else {
            Self::Obeys
        }
    }
}
