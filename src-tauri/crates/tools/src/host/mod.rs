//! The tools of a host: servers, Ponder's own, and the way of a call from a model to its result.

mod arguments;
mod bundles;
mod calls;
mod editing;
mod elicitations;
mod file;
mod grants;
mod own;
mod prompts;
mod resources;
mod roots;
mod servers;
mod setup;
mod sign_in;
mod sign_ins;
mod state;
mod view;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use net::{Keychain, Net};
use protocol::ToolRef;
use serde_json::{json, Value};
use tokio::sync::watch;

use crate::builtin::{self, Builtin, ChatSource, SearchEngine, Sources};
use crate::catalog::{Binding, Tool};
use crate::configuration::Server;
use crate::error::{Error, Result};
use crate::stdio::Guard;

use file::ConfigurationFile;
use grants::GrantsFile;
use servers::Servers;
use sign_ins::SignIns;
use state::State;

pub use resources::ResourceFile;

/// The folder of unfolded bundles in the data folder.
const BUNDLES: &str = "tool-bundles";

/// The name of Ponder's own tools for people.
const OWN_NAME: &str = "Ponder";

/// The tools of a host. A clone is the same.
#[derive(Clone)]
pub struct Tools(Arc<Inner>);

struct Inner {
    file: ConfigurationFile,
    grants: GrantsFile,
    keychain: Arc<dyn Keychain>,
    net: Net,
    sources: Sources,
    servers: Servers,
    sign_ins: SignIns,
    /// The folder of unfolded bundles.
    bundles: PathBuf,
    state: Mutex<State>,
    /// False if nobody can be asked: then a call without a consent is refused.
    attended: bool,
    /// Changes with the calls that wait.
    waiting: watch::Sender<()>,
    /// Changes with servers, rules and consents.
    changed: watch::Sender<()>,
}

/// A tool that can be called now.
struct Callable {
    server: CallableServer,
    tool: Tool,
}

enum CallableServer {
    Own(Builtin, Option<SearchEngine>),
    Configured(Server, Arc<servers::Running>),
}

impl Tools {
    /// The tools whose configuration is in this folder. Nothing is started, and nothing is asked. `attended` is true if a
    /// person can be asked; `guard` is what programs run behind, `net` what reaches addresses; Ponder's own tools read
    /// `chats`.
    pub fn open(
        data_dir: &Path,
        net: Net,
        keychain: Arc<dyn Keychain>,
        chats: Arc<dyn ChatSource>,
        guard: Guard,
        attended: bool,
    ) -> Self {
        let changed = watch::Sender::new(());
        Self(Arc::new(Inner {
            file: ConfigurationFile::new(data_dir),
            grants: GrantsFile::new(data_dir, keychain.clone()),
            servers: Servers::new(guard, net.clone(), keychain.clone(), changed.clone()),
            sign_ins: SignIns::default(),
            keychain,
            sources: Sources::new(net.clone(), chats),
            net,
            bundles: data_dir.join(BUNDLES),
            state: Mutex::default(),
            attended,
            waiting: watch::Sender::new(()),
            changed,
        }))
    }

    /// Tells whenever other calls wait.
    pub fn waiting_changes(&self) -> watch::Receiver<()> {
        self.0.waiting.subscribe()
    }

    /// Tells whenever servers, rules or consents may look different.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// Ends all servers.
    pub fn shut_down(&self) {
        self.0.servers.stop_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Consents change in single steps, so a poisoned state is whole.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.0.changed.send_replace(());
    }

    /// The server of this id.
    fn server(&self, id: &str) -> Result<Server> {
        let configuration = self.0.file.get()?;
        configuration
            .server(id)
            .cloned()
            .ok_or_else(|| Error::NoServer(id.to_owned()))
    }

    /// A tool that can be called now; its server is started if it does not run.
    async fn callable(&self, of: &ToolRef) -> Result<Callable> {
        let no_tool = |server: &str| Error::NoTool {
            server: server.to_owned(),
            tool: of.tool.clone(),
        };
        if of.server == builtin::SERVER {
            let own = Builtin::named(&of.tool).ok_or_else(|| no_tool(OWN_NAME))?;
            let configuration = self.0.file.get()?;
            if !configuration.is_on(own) {
                return Err(Error::ToolOff(own.name()));
            }
            let engine = configuration.search_engine.filter(|_| own == Builtin::SearchWeb);
            if own == Builtin::SearchWeb && engine.is_none() {
                return Err(Error::SearchEngine("none is set up under Settings › Tools".to_owned()));
            }
            return Ok(Callable {
                tool: own.tool(),
                server: CallableServer::Own(own, engine),
            });
        }
        let server = self.server(&of.server)?;
        let running = self.0.servers.running(&server).await;
        let running = running.map_err(|reason| Error::NotRunning {
            server: server.name.clone(),
            reason,
        })?;
        let listing = running.listing().await;
        let tool = listing.tools.iter().find(|tool| tool.name == of.tool).cloned();
        Ok(Callable {
            tool: tool.ok_or_else(|| no_tool(&server.name))?,
            server: CallableServer::Configured(server, running),
        })
    }

    /// A tool as it is now, unless its server does not run; the inner one is `None` if it does not have the tool.
    async fn tool_now(&self, of: &ToolRef) -> Option<Option<Tool>> {
        if of.server == builtin::SERVER {
            return Some(Builtin::named(&of.tool).map(Builtin::tool));
        }
        match self.0.servers.phase(&of.server) {
            servers::ServerPhase::Ready(running) => {
                let listing = running.listing().await;
                Some(listing.tools.iter().find(|tool| tool.name == of.tool).cloned())
            }
            _ => None,
        }
    }

    /// Reads the consents that hold in all chats, which another process may have changed.
    async fn read_grants(&self) {
        let grants = self.0.grants.clone();
        let read = tokio::task::spawn_blocking(move || (grants.load(), grants.can_keep())).await;
        if let Ok((kept, can_keep)) = read {
            let mut state = self.state();
            state.consents.set_always(kept.grants);
            state.descriptions = kept.descriptions;
            state.can_keep = can_keep;
        }
    }
}

impl Callable {
    /// The configuration that a consent binds to.
    fn configuration(&self) -> Value {
        match &self.server {
            CallableServer::Own(_, None) => json!({ "id": builtin::SERVER }),
            CallableServer::Own(_, Some(engine)) => json!({ "id": builtin::SERVER, "engine": engine.binding() }),
            CallableServer::Configured(server, _) => server.binding(),
        }
    }

    /// The tool as it is now, for calls that reach this host.
    fn binding(&self, host: Option<&str>) -> Binding {
        Binding::of(&self.configuration(), &self.tool).for_host(host)
    }

    /// The host that a call with these arguments reaches; `None` for a tool that reaches any, or none.
    fn host(&self, arguments: &Value) -> std::result::Result<Option<String>, String> {
        match &self.server {
            CallableServer::Own(own, engine) => own.host(arguments, engine.as_ref()),
            CallableServer::Configured(..) => Ok(None),
        }
    }

    /// True if a result may hold words of strangers.
    fn may_quote_strangers(&self) -> bool {
        match &self.server {
            CallableServer::Own(own, _) => own.may_quote_strangers(),
            CallableServer::Configured(..) => true,
        }
    }

    /// True if a person is asked about every call.
    fn always_asks(&self) -> bool {
        match &self.server {
            CallableServer::Own(own, _) => own.always_asks(),
            CallableServer::Configured(..) => false,
        }
    }

    fn server_name(&self) -> String {
        match &self.server {
            CallableServer::Own(..) => OWN_NAME.to_owned(),
            CallableServer::Configured(server, _) => server.name.clone(),
        }
    }

    /// The command or the address of its server; empty for Ponder's own.
    fn server_command(&self) -> String {
        match &self.server {
            CallableServer::Own(..) => String::new(),
            CallableServer::Configured(server, _) => server.command_line(),
        }
    }
}
