//! The servers that run: each is started when a tool of it is needed, and once.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use net::{Keychain, Net};
use tokio::sync::{watch, OnceCell};

use crate::catalog::Listing;
use crate::configuration::{Server, Setting, Transport, Variable};
use crate::http::{Challenge, ConnectError, Header, HttpClient};
use crate::oauth::{SignInStore, SignedIn};
use crate::search_path::search_path;
use crate::session::{Connection, Limits, Session};
use crate::stdio::{Guard, Launch};

/// A server that did not start is not started again by itself for this long.
const REST: Duration = Duration::from_secs(60);

/// Programs that may fetch a server before they start it, and the time for that.
const FETCHERS: [&str; 5] = ["npx", "uvx", "bunx", "pipx", "docker"];
const FETCHING: Duration = Duration::from_secs(120);

/// The reason why a server does not run that wants somebody to sign in.
const SIGN_IN: &str = "it wants you to sign in: press Sign In under Settings › Tools, or run `ponder tools sign-in`";

/// Lines of standard error that are shown.
const LOG_LINES: usize = 400;

/// A server that runs.
pub struct Running {
    /// Its session.
    pub session: Session,
    listing: Mutex<Arc<Listing>>,
    list_changes: Mutex<watch::Receiver<u64>>,
}

impl Running {
    /// Its tools, listed again if it said that they changed.
    pub async fn listing(&self) -> Arc<Listing> {
        let changed = {
            let mut changes = lock(&self.list_changes);
            let changed = changes.has_changed().unwrap_or(false);
            changes.mark_unchanged();
            changed
        };
        if changed {
            match self.session.tools().await {
                Ok(listing) => *lock(&self.listing) = Arc::new(listing),
                Err(error) => tracing::warn!(%error, "the tools of a server could not be listed again"),
            }
        }
        lock(&self.listing).clone()
    }
}

/// The state of a server.
#[derive(Clone, Default)]
pub enum ServerPhase {
    /// It was not needed yet.
    #[default]
    Idle,
    /// It starts.
    Starting,
    /// It runs.
    Ready(Arc<Running>),
    /// It did not start, or ended, at this time.
    Failed(String, Instant),
    /// Somebody has to sign in, as it said at this time.
    NeedsSignIn(Challenge, Instant),
}

/// Why a server does not run.
enum Trouble {
    /// The reason, and the last lines of its log.
    Failed(String, Vec<String>),
    NeedsSignIn(Challenge),
}

impl From<String> for Trouble {
    fn from(reason: String) -> Self {
        Self::Failed(reason, Vec::new())
    }
}

struct Slot {
    transport: Transport,
    phase: Mutex<ServerPhase>,
    /// Held while it is started.
    starting: tokio::sync::Mutex<()>,
    /// The list and the words that came last.
    known: Mutex<(Arc<Listing>, Vec<String>)>,
}

/// The servers.
pub struct Servers {
    guard: Guard,
    net: Net,
    keychain: Arc<dyn Keychain>,
    path: OnceCell<OsString>,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    changed: watch::Sender<()>,
}

impl Servers {
    /// None runs yet. `changed` hears when the state of one changes.
    pub fn new(guard: Guard, net: Net, keychain: Arc<dyn Keychain>, changed: watch::Sender<()>) -> Self {
        Self {
            guard,
            net,
            keychain,
            path: OnceCell::new(),
            slots: Mutex::default(),
            changed,
        }
    }

    /// The state of a server, without starting it.
    pub fn phase(&self, id: &str) -> ServerPhase {
        let Some(slot) = lock(&self.slots).get(id).cloned() else {
            return ServerPhase::Idle;
        };
        let mut phase = lock(&slot.phase);
        if let ServerPhase::Ready(running) = &*phase {
            if running.session.is_closed() {
                let said = running.session.log(LOG_LINES);
                lock(&slot.known).1 = said;
                *phase = ServerPhase::Failed("it ended".to_owned(), Instant::now());
            } else if let Some(challenge) = running.session.refused_sign_in() {
                lock(&slot.known).1 = running.session.log(LOG_LINES);
                running.session.let_go();
                *phase = ServerPhase::NeedsSignIn(challenge, Instant::now());
            }
        }
        phase.clone()
    }

    /// The demand of a server that somebody signs in, or allows more than when they did.
    pub fn demand(&self, id: &str) -> Option<Challenge> {
        match self.phase(id) {
            ServerPhase::NeedsSignIn(challenge, _) => Some(challenge),
            ServerPhase::Ready(running) => running.session.wanted_permission(),
            _ => None,
        }
    }

    /// The tools that a server listed last.
    pub fn known(&self, id: &str) -> Arc<Listing> {
        let slot = lock(&self.slots).get(id).cloned();
        slot.map(|slot| lock(&slot.known).0.clone()).unwrap_or_default()
    }

    /// The last lines of a server's standard error.
    pub fn log(&self, id: &str) -> Vec<String> {
        if let ServerPhase::Ready(running) = self.phase(id) {
            return running.session.log(LOG_LINES);
        }
        let slot = lock(&self.slots).get(id).cloned();
        slot.map(|slot| lock(&slot.known).1.clone()).unwrap_or_default()
    }

    /// The server, started if it does not run. One that ended by itself is started again, one that did not start only
    /// after a rest.
    ///
    /// # Errors
    /// Why it does not run.
    pub async fn running(&self, server: &Server) -> Result<Arc<Running>, String> {
        if !server.enabled {
            return Err("it is not switched on".to_owned());
        }
        let slot = self.slot(server);
        let _starting = slot.starting.lock().await;
        match self.phase(&server.id) {
            ServerPhase::Ready(running) => return Ok(running),
            ServerPhase::Failed(reason, at) if at.elapsed() < REST && !reason.starts_with("it ended") => {
                return Err(reason)
            }
            ServerPhase::NeedsSignIn(_, at) if at.elapsed() < REST => return Err(SIGN_IN.to_owned()),
            ServerPhase::Idle | ServerPhase::Starting | ServerPhase::Failed(..) | ServerPhase::NeedsSignIn(..) => {}
        }
        self.set(&slot, ServerPhase::Starting);
        let started = match &server.transport {
            Transport::Stdio { command, args, env } => self.start(server, command, args, env).await,
            Transport::Http { url, headers } => self.connect(server, url, headers).await,
        };
        match started {
            Ok(running) => {
                lock(&slot.known).0 = lock(&running.listing).clone();
                let running = Arc::new(running);
                self.set(&slot, ServerPhase::Ready(running.clone()));
                Ok(running)
            }
            Err(Trouble::Failed(reason, log)) => {
                lock(&slot.known).1 = log;
                self.set(&slot, ServerPhase::Failed(reason.clone(), Instant::now()));
                Err(reason)
            }
            Err(Trouble::NeedsSignIn(challenge)) => {
                self.set(&slot, ServerPhase::NeedsSignIn(challenge, Instant::now()));
                Err(SIGN_IN.to_owned())
            }
        }
    }

    /// Tells a server that runs of other folders.
    pub async fn set_roots(&self, id: &str, roots: Vec<PathBuf>) {
        if let ServerPhase::Ready(running) = self.phase(id) {
            running.session.set_roots(roots).await;
        }
    }

    /// Ends a server; it starts again when it is needed.
    pub fn stop(&self, id: &str) {
        let slot = lock(&self.slots).remove(id);
        if let Some(slot) = slot {
            end(&slot);
            self.changed.send_replace(());
        }
    }

    /// Ends all of them.
    pub fn stop_all(&self) {
        lock(&self.slots).drain().for_each(|(_, slot)| end(&slot));
    }

    /// The person's own search path, as a terminal has it.
    pub async fn path(&self) -> OsString {
        self.path.get_or_init(own_path).await.clone()
    }

    fn slot(&self, server: &Server) -> Arc<Slot> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(&server.id) {
            if slot.transport == server.transport {
                return slot.clone();
            }
            end(slot);
        }
        let slot = Arc::new(Slot {
            transport: server.transport.clone(),
            phase: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            known: Mutex::default(),
        });
        slots.insert(server.id.clone(), slot.clone());
        slot
    }

    fn set(&self, slot: &Slot, phase: ServerPhase) {
        *lock(&slot.phase) = phase;
        self.changed.send_replace(());
    }

    /// Starts a program.
    async fn start(
        &self,
        server: &Server,
        command: &str,
        args: &[String],
        env: &[Variable],
    ) -> Result<Running, Trouble> {
        let launch = Launch {
            command: command.to_owned(),
            args: args.to_vec(),
            env: self.values(&server.id, env).await?,
            path: self.path().await,
        };
        let mut limits = Limits::default();
        let program = command.rsplit('/').next().unwrap_or(command);
        if FETCHERS.contains(&program) {
            limits.start = FETCHING;
        }
        let session = Session::start_with_roots(&launch, &self.guard, limits, server.roots.clone())
            .await
            .map_err(|error| Trouble::Failed(error.to_string(), error.lines()))?;
        listed(session).await
    }

    /// Begins a session with an address.
    async fn connect(&self, server: &Server, url: &str, headers: &[Variable]) -> Result<Running, Trouble> {
        let values = self.values(&server.id, headers).await?;
        let headers = values.into_iter().map(|(name, value)| Header { name, value });
        let store = SignInStore::of(self.keychain.clone(), &server.id);
        let tokens = SignedIn::new(self.net.clone(), url.to_owned(), store);
        let connection = Connection {
            address: url.to_owned(),
            client: HttpClient::new(self.net.clone(), headers.collect(), Some(Arc::new(tokens))),
            roots: server.roots.clone(),
        };
        let session = match Session::connect(connection, Limits::default()).await {
            Ok(session) => session,
            Err(ConnectError::Failed(failure)) => {
                return Err(match failure.challenge() {
                    Some(challenge) => Trouble::NeedsSignIn(challenge.clone()),
                    None => failure.to_string().into(),
                });
            }
            Err(error) => return Err(error.to_string().into()),
        };
        listed(session).await
    }

    /// The variables with their secrets.
    async fn values(&self, id: &str, variables: &[Variable]) -> Result<BTreeMap<String, String>, String> {
        let (keychain, id, variables) = (self.keychain.clone(), id.to_owned(), variables.to_vec());
        let read = move || {
            let mut values = BTreeMap::new();
            for Variable { name, value } in variables {
                let value = match value {
                    Setting::Plain(value) => value,
                    Setting::Secret => match keychain.get(&secret_name(&id, &name)) {
                        Ok(Some(secret)) => secret,
                        Ok(None) => return Err(format!("the secret {name} is not in the keychain; set it again")),
                        Err(error) => return Err(error.to_string()),
                    },
                };
                values.insert(name, value);
            }
            Ok(values)
        };
        tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|_| Err("the keychain broke down".to_owned()))
    }
}

/// The server with its tools, which it may show only to somebody who signed in.
async fn listed(session: Session) -> Result<Running, Trouble> {
    let list_changes = session.list_changes();
    let listing = session.tools().await.map_err(|error| {
        let challenge = session.refused_sign_in().or_else(|| session.wanted_permission());
        match challenge {
            Some(challenge) => Trouble::NeedsSignIn(challenge),
            None => Trouble::Failed(error.to_string(), session.log(LOG_LINES)),
        }
    })?;
    Ok(Running {
        listing: Mutex::new(Arc::new(listing)),
        list_changes: Mutex::new(list_changes),
        session,
    })
}

fn end(slot: &Slot) {
    if let ServerPhase::Ready(running) = &*lock(&slot.phase) {
        running.session.let_go();
    }
}

/// The name of a server's secret in the keychain.
pub fn secret_name(server: &str, variable: &str) -> String {
    format!("tool-server/{server}/{variable}")
}

async fn own_path() -> OsString {
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    search_path(&PathBuf::from(shell)).await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each value is replaced in one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
