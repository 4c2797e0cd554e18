//! The servers, tools and consents as windows and the command line show them.

use api::{ServerVariable, ToolGrant, ToolServer, ToolServerState, ToolView, ToolsView};

use super::calls::declaration;
use super::file::Configuration;
use super::servers::ServerPhase;
use super::{Tools, OWN_NAME};
use crate::builtin::{self, Builtin};
use crate::catalog::Tool;
use crate::configuration::{Server, Setting, Transport};
use crate::error::Result;
use crate::visible::visible;

/// Bytes of a declaration to a token, about.
const BYTES_A_TOKEN: usize = 4;

impl Tools {
    /// Everything, without starting a server. Texts of strangers have no invisible characters.
    ///
    /// # Errors
    /// If the file of servers cannot be read.
    pub async fn view(&self) -> Result<ToolsView> {
        self.read_grants().await;
        let configuration = self.0.file.get()?;
        let own = ToolServer {
            id: builtin::SERVER.to_owned(),
            name: OWN_NAME.to_owned(),
            command: String::new(),
            parts: Vec::new(),
            builtin: true,
            signed_in: false,
            state: ToolServerState::Ready,
            tools: Builtin::ALL
                .into_iter()
                .map(|own| ToolView {
                    on: own.reaches_the_internet().then(|| configuration.is_on(own)),
                    ..tool_view(&configuration, builtin::SERVER, &own.tool())
                })
                .collect(),
            problems: Vec::new(),
            roots: Vec::new(),
        };
        let configured = configuration
            .servers
            .iter()
            .map(|server| self.server_view(&configuration, server));
        let servers = std::iter::once(own).chain(configured).collect();
        let grants = self.state().consents.always();
        let name_of = |id: &str| match configuration.server(id) {
            Some(server) => server.name.clone(),
            None if id == builtin::SERVER => OWN_NAME.to_owned(),
            None => String::new(),
        };
        let grants = grants.into_iter().map(|grant| ToolGrant {
            server_name: name_of(&grant.tool.server),
            tool: grant.tool.clone(),
            host: grant.host.clone(),
            granted_at: grant.granted_at,
        });
        Ok(ToolsView {
            servers,
            grants: grants.collect(),
            web_search: self.web_search(&configuration).await,
        })
    }

    /// The tools of a server, which is started for it.
    ///
    /// # Errors
    /// Why it does not run.
    pub async fn start(&self, id: &str) -> Result<()> {
        if id == builtin::SERVER {
            return Ok(());
        }
        let server = self.server(id)?;
        let running = self.0.servers.running(&server).await;
        running.map(drop).map_err(|reason| crate::error::Error::NotRunning {
            server: server.name,
            reason,
        })
    }

    fn server_view(&self, configuration: &Configuration, server: &Server) -> ToolServer {
        let state = match self.0.servers.phase(&server.id) {
            _ if !server.enabled => ToolServerState::Off,
            _ if self.0.servers.demand(&server.id).is_some() => ToolServerState::NeedsSignIn,
            ServerPhase::Idle => ToolServerState::Idle,
            ServerPhase::Starting => ToolServerState::Starting,
            ServerPhase::Ready(_) => ToolServerState::Ready,
            ServerPhase::Failed(reason, _) => ToolServerState::Failed {
                reason: visible(&reason),
            },
            ServerPhase::NeedsSignIn(..) => ToolServerState::NeedsSignIn,
        };
        let listing = self.0.servers.known(&server.id);
        let (Transport::Stdio { env: parts, .. } | Transport::Http { headers: parts, .. }) = &server.transport;
        ToolServer {
            id: server.id.clone(),
            name: visible(&server.name),
            command: visible(&server.command_line()),
            parts: parts
                .iter()
                .map(|part| ServerVariable {
                    name: part.name.clone(),
                    value: match &part.value {
                        Setting::Plain(value) => Some(value.clone()),
                        Setting::Secret => None,
                    },
                })
                .collect(),
            builtin: false,
            signed_in: server.signed_in,
            state,
            tools: listing
                .tools
                .iter()
                .map(|tool| tool_view(configuration, &server.id, tool))
                .collect(),
            roots: server.roots.iter().map(|root| root.display().to_string()).collect(),
            problems: listing.problems.iter().map(|problem| visible(problem)).collect(),
        }
    }
}

fn tool_view(configuration: &Configuration, server: &str, tool: &Tool) -> ToolView {
    let rule = configuration.rules.get(server).and_then(|rules| rules.get(&tool.name));
    let bytes = declaration(&tool.name, &tool.description, &tool.parameters)
        .to_string()
        .len();
    ToolView {
        name: tool.name.clone(),
        title: visible(tool.title.as_deref().unwrap_or(&tool.name)),
        description: visible(&tool.description),
        effects: tool.effects,
        tokens: u32::try_from(bytes / BYTES_A_TOKEN).unwrap_or(u32::MAX),
        rule: rule.copied(),
        on: None,
    }
}
