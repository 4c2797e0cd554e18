//! Connections: the HTTP clients, and the state that every request shares.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::Purpose;
use url::Url;

use crate::credentials::{Keychain, Secrets, Tokens};
use crate::endpoint::{host_of, is_loopback, Endpoint, Place, PUBLIC_HUB};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::offline::{LoopbackResolver, Names, OfflineSwitch, Resolver};
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
    pub(crate) names: Arc<Names>,
    /// True if the user set the hub's address.
    mirrored: bool,
    /// For other computers, by the nearest place that a name may lead to. They share no connections, so that none is
    /// used that was opened for another place. Made when first needed and dropped when the switch is thrown, so that no
    /// idle connection outlives it.
    outbound: Mutex<HashMap<Place, reqwest::Client>>,
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
            names: Arc::new(Names::of_this_computer()),
            mirrored: environment.get("HF_ENDPOINT").is_some(),
            tokens: Tokens::new(environment, secrets.clone(), shown_endpoint.origin()),
            secrets,
            endpoint,
            shown_endpoint,
            outbound: Mutex::default(),
            loopback: Mutex::new(None),
        }
    }

    pub(crate) fn is_offline(&self) -> bool {
        let offline = self.switch.is_on();
        if offline {
            self.outbound.lock().unwrap_or_else(PoisonError::into_inner).clear();
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

    /// The nearest place that the first address of a request may lead to. One that the user set may lead anywhere.
    pub(crate) fn reach_of(&self, purpose: Purpose, address: &Url) -> Place {
        let mirror = || self.mirrored && self.endpoint.as_ref().is_ok_and(|endpoint| endpoint.owns(address));
        match purpose {
            // A model chose the address.
            Purpose::WebPage => Place::Internet,
            Purpose::Inference | Purpose::ToolServer | Purpose::WebSearch => Place::ThisComputer,
            _ if is_loopback(address) || mirror() => Place::ThisComputer,
            _ => Place::Internet,
        }
    }

    /// The nearest place that the server of an address may redirect to: its own, or none for a page of the web.
    pub(crate) fn reach_from(&self, purpose: Purpose, address: &Url) -> Place {
        match purpose {
            Purpose::WebPage => Place::Internet,
            _ => Place::spelled(address).unwrap_or_else(|| self.names.place_of(address.host_str().unwrap_or_default())),
        }
    }

    /// The client for an address. This computer itself is never asked through a proxy: to a proxy, the name means the
    /// proxy's own computer.
    ///
    /// # Errors
    /// [`Error::LocalNetwork`] if the address spells a nearer place than `reach`.
    pub(crate) fn client(&self, address: &Url, reach: Place) -> Result<reqwest::Client> {
        if Place::spelled(address).is_some_and(|place| place > reach) {
            return Err(Error::LocalNetwork { host: host_of(address) });
        }
        let made = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| Error::Tls {
                host: host_of(address),
                reason: error.to_string(),
            })
        };
        if is_loopback(address) {
            let mut client = self.loopback.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(client) = &*client {
                return Ok(client.clone());
            }
            let built = made(builder().no_proxy().dns_resolver(Arc::new(LoopbackResolver)))?;
            return Ok(client.insert(built).clone());
        }
        self.names.ask_for(address.host_str().unwrap_or_default());
        let mut clients = self.outbound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&reach) {
            return Ok(client.clone());
        }
        let (switch, names) = (Arc::clone(&self.switch), Arc::clone(&self.names));
        let built = made(builder().dns_resolver(Arc::new(Resolver { switch, names, reach })))?;
        Ok(clients.entry(reach).or_insert(built).clone())
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

/// True for requests to the hub and what belongs to it, which alone see its token and need its address.
pub(crate) fn concerns_the_hub(purpose: Purpose) -> bool {
    !matches!(
        purpose,
        Purpose::Inference | Purpose::ToolServer | Purpose::WebPage | Purpose::WebSearch
    )
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
    /// Inference and tools by a server on this computer are exempt. A request to the hub never is: a hub on loopback is a
    /// mirror or a tunnel, and stands for one that is elsewhere.
    pub(crate) fn of(purpose: Purpose, address: &Url) -> Self {
        if matches!(purpose, Purpose::Inference | Purpose::ToolServer) && is_loopback(address) {
            Self::Exempt
        } else {
            Self::Obeys
        }
    }
}
