//! A model hub on loopback, for tests: the real one's responses, and its faults on demand.
//!
//! ```
//! use hub_imitation::{Fault, Imitation, Times};
//!
//! let hub = Imitation::start();
//! let pebble = hub.repository("ponder/pebble").pebble();
//! hub.fault("model.safetensors", Fault::Cut { after: 1_000_000 }, Times::Once);
//! assert!(hub.endpoint().starts_with("http://127.0.0.1:"));
//! assert_eq!(pebble.commit().len(), 40);
//! ```
//!
//! Small files come from the hub itself with git's SHA-1 as entity tag; large ones come from a second origin with
//! entity tags of its own. The imitation runs on a thread of its own until it is dropped, so tests of any kind can use
//! it.

mod body;
mod content;
mod dice;
mod fault;
mod line;
mod listing;
mod on_disk;
mod repository;
mod serve;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method, Uri};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

pub use dice::Dice;
pub use fault::{Fault, FaultTarget, Times};
pub use on_disk::{all_files, OnDisk};
pub use repository::Repository;

use fault::Faults;

/// One of the imitation's two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// API and resolve addresses.
    Hub,
    /// The origin of large files.
    Cdn,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The origin that received it.
    pub origin: Origin,
    /// The time since the start of the imitation.
    pub at: Duration,
    /// GET, HEAD, ….
    pub method: String,
    /// The path as received.
    pub path: String,
    /// The query as received; empty without one.
    pub query: String,
    /// All headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The response's status; `None` before the response.
    pub status: Option<u16>,
    /// Bytes of files written to the connection.
    pub sent: u64,
}

impl Request {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) repositories: BTreeMap<String, Repository>,
    pub(crate) tokens: BTreeSet<String>,
    pub(crate) faults: Faults,
    pub(crate) small_elsewhere: bool,
    requests: Vec<(Request, Arc<AtomicU64>)>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    started: Instant,
    addresses: OnceLock<(SocketAddr, SocketAddr)>,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> (SocketAddr, SocketAddr) {
        *self.addresses.get().expect("the addresses are known before it serves")
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.addresses().0)
    }

    pub(crate) fn cdn(&self) -> String {
        format!("http://{}", self.addresses().1)
    }

    pub(crate) fn log(
        &self,
        origin: Origin,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        sent: Arc<AtomicU64>,
    ) -> usize {
        let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let request = Request {
            origin,
            at: self.started.elapsed(),
            method: method.to_string(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect(),
            status: None,
            sent: 0,
        };
        let requests = &mut self.state().requests;
        requests.push((request, sent));
        requests.len() - 1
    }

    pub(crate) fn answered(&self, number: usize, status: u16) {
        if let Some((request, _)) = self.state().requests.get_mut(number) {
            request.status = Some(status);
        }
    }
}

/// A hub that listens on loopback until it is dropped.
#[derive(Debug)]
pub struct Imitation {
    shared: Arc<Shared>,
    hub_there: watch::Sender<bool>,
    cdn_there: watch::Sender<bool>,
    /// Ends the thread when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Imitation {
    /// Starts an empty hub.
    ///
    /// # Panics
    ///
    /// If loopback gives no port.
    pub fn start() -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            started: Instant::now(),
            addresses: OnceLock::new(),
        });
        let (hub_there, hub_present) = watch::channel(true);
        let (cdn_there, cdn_present) = watch::channel(true);
        let (end, ended) = oneshot::channel::<()>();
        let (ready, listening) = mpsc::channel();
        let served = shared.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime starts");
            runtime.block_on(async move {
                let hub = TcpListener::bind(serve::anywhere())
                    .await
                    .expect("loopback gives a port");
                let cdn = TcpListener::bind(serve::anywhere())
                    .await
                    .expect("loopback gives a port");
                let address = |listener: &TcpListener| listener.local_addr().expect("a listener has an address");
                let _ = served.addresses.set((address(&hub), address(&cdn)));
                let hub = line::Address::new(hub, hub_present).expect("a listener has an address");
                let cdn = line::Address::new(cdn, cdn_present).expect("a listener has an address");
                tokio::spawn(serve::serve(served.clone(), Origin::Hub, hub));
                tokio::spawn(serve::serve(served, Origin::Cdn, cdn));
                let _ = ready.send(());
                let _ = ended.await;
            });
            // Responses that stall forever must not delay the end.
            runtime.shutdown_background();
        });
        listening.recv_timeout(serve::START).expect("the imitation listens");
        Self {
            shared,
            hub_there,
            cdn_there,
            _end: end,
        }
    }

    /// The hub's address, as for `HF_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        self.shared.endpoint()
    }

    /// The address of the origin of large files.
    pub fn cdn(&self) -> String {
        self.shared.cdn()
    }

    /// A new, empty, public repository under this name; it replaces one of the same name.
    pub fn repository(&self, id: &str) -> Repository {
        let repository = Repository::new(id);
        self.shared
            .state()
            .repositories
            .insert(id.to_owned(), repository.clone());
        repository
    }

    /// Plans a fault for responses with this file's bytes, in any repository.
    pub fn fault(&self, path: &str, fault: Fault, times: Times) {
        self.shared
            .state()
            .faults
            .plan(FaultTarget::Body, None, Some(path), fault, times);
    }

    /// Plans a fault for all responses of a kind, or for those of a repository or a file.
    pub fn fault_at(
        &self,
        target: FaultTarget,
        repository: Option<&str>,
        path: Option<&str>,
        fault: Fault,
        times: Times,
    ) {
        self.shared.state().faults.plan(target, repository, path, fault, times);
    }

    /// Removes all planned faults; responses under way keep theirs.
    pub fn clear_faults(&self) {
        self.shared.state().faults.clear();
    }

    /// True if a fault that was planned a number of times is still to come.
    pub fn faults_waiting(&self) -> bool {
        self.shared.state().faults.waiting()
    }

    /// Admits a token: it sees private repositories and gets the files of gated ones.
    pub fn let_in(&self, token: &str) {
        self.shared.state().tokens.insert(token.to_owned());
    }

    /// Redirects small files to an address below `/api/resolve-cache/`, as the real hub does.
    pub fn small_files_elsewhere(&self) {
        self.shared.state().small_elsewhere = true;
    }

    /// Takes an origin away: its connections are reset and new ones refused.
    pub fn disappear(&self, origin: Origin) {
        self.there(origin, false);
    }

    /// Brings an origin back.
    pub fn reappear(&self, origin: Origin) {
        self.there(origin, true);
    }

    fn there(&self, origin: Origin, there: bool) {
        let sender = match origin {
            Origin::Hub => &self.hub_there,
            Origin::Cdn => &self.cdn_there,
        };
        sender.send_replace(there);
    }

    /// Every request so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        let state = self.shared.state();
        state
            .requests
            .iter()
            .map(|(request, sent)| Request {
                sent: sent.load(Ordering::Relaxed),
                ..request.clone()
            })
            .collect()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.shared.state().requests.clear();
    }

    /// Bytes of files sent so far.
    pub fn sent(&self) -> u64 {
        self.requests().iter().map(|request| request.sent).sum()
    }
}
