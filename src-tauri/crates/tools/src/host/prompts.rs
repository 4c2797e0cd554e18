//! Prompts of servers, listed and fetched when a person asks for them.

use std::collections::BTreeMap;

use api::{PromptArgument, ServerPrompt, ServerPrompts};
use futures::future::join_all;

use super::servers::ServerPhase;
use super::Tools;
use crate::catalog::{Argument, Prompt};
use crate::configuration::Server;
use crate::error::{Error, Result};
use crate::visible::visible;

/// Bytes of the arguments of a prompt at most.
const LONGEST_ARGUMENTS: usize = 256 << 10;

impl Tools {
    /// The prompts of the servers that run; with `start`, also of those that are switched on, which are started for it. A
    /// server that does not list them has none; the settings say why.
    ///
    /// # Errors
    /// If the file of servers cannot be read.
    pub async fn prompts(&self, start: bool) -> Result<ServerPrompts> {
        let servers = self.0.file.get()?.servers;
        let runs = |server: &Server| matches!(self.0.servers.phase(&server.id), ServerPhase::Ready(_));
        let enabled = || servers.iter().filter(|server| server.enabled);
        let asked = enabled().filter(|server| start || runs(server));
        let lists = join_all(asked.map(|server| self.prompts_of(server))).await;
        Ok(ServerPrompts {
            prompts: lists.into_iter().flatten().collect(),
            more: !start && !enabled().all(runs),
        })
    }

    async fn prompts_of(&self, server: &Server) -> Vec<ServerPrompt> {
        let listed = async {
            let running = self.0.servers.running(server).await?;
            if !running.session.has_prompts() {
                return Ok(Vec::new());
            }
            running.session.prompts().await.map_err(|error| error.to_string())
        };
        match listed.await {
            Ok(prompts) => prompts.into_iter().map(|prompt| shown(server, prompt)).collect(),
            Err(reason) => {
                tracing::warn!(reason, "the prompts of a server could not be listed");
                Vec::new()
            }
        }
    }

    /// The text of a prompt, in which nothing is invisible.
    ///
    /// # Errors
    /// [`Error::NoServer`], [`Error::NotRunning`], and [`Error::NoPrompt`] if it does not come or has no text.
    pub async fn prompt(&self, server: &str, name: &str, arguments: BTreeMap<String, String>) -> Result<String> {
        let server = self.server(server)?;
        let refused = |reason: String| Error::NoPrompt {
            server: visible(&server.name),
            reason: visible(&reason),
        };
        let bytes: usize = arguments.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > LONGEST_ARGUMENTS {
            return Err(refused(format!(
                "more than {} kB were filled in",
                LONGEST_ARGUMENTS >> 10
            )));
        }
        let running = self.0.servers.running(&server).await;
        let running = running.map_err(|reason| Error::NotRunning {
            server: server.name.clone(),
            reason,
        })?;
        let text = running.session.prompt(name, &arguments).await;
        let text = text.map_err(|error| refused(error.to_string()))?;
        let text = text.ok_or_else(|| refused("its answer holds no text".to_owned()))?;
        // Line ends of other systems are no sign of anything.
        Ok(visible(&text.replace("\r\n", "\n")))
    }
}

fn shown(server: &Server, prompt: Prompt) -> ServerPrompt {
    let argument = |argument: Argument| PromptArgument {
        description: visible(&argument.description),
        name: argument.name,
        required: argument.required,
    };
    ServerPrompt {
        server: server.id.clone(),
        server_name: visible(&server.name),
        title: visible(match prompt.title.trim() {
            "" => &prompt.name,
            title => title,
        }),
        description: visible(&prompt.description),
        arguments: prompt.arguments.into_iter().map(argument).collect(),
        name: prompt.name,
    }
}
