//! The tools of one run: offered to the model, and called as far as the person who began the run allowed it.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{ensure, Result};
use api::ToolRule;
use protocol::{
    cut_result, CallEnd, CallOrigin, CallProgress, CallRequest, CallResult, Content, OfferedTool, ToolCall, ToolRef,
    Toolbox,
};
use serde_json::Value;
use tokio::sync::watch;
use tools::builtin;
use tools::host::Tools;

use crate::commands::tools::{allowed_named, open, tools_named};
use crate::output;

/// The id of the run in its own process, in place of a chat and a turn.
const RUN: &str = "ask";

/// The tools of a run.
pub(super) struct RunTools {
    tools: Tools,
    offered: Vec<Offered>,
}

/// A tool that the model is told of.
struct Offered {
    tool: OfferedTool,
    /// `--allow` names it.
    is_allowed: bool,
    rule: Option<ToolRule>,
}

/// The end of a call.
pub(super) enum Called {
    /// The model gets this text.
    Ended {
        /// `done` or `failed`.
        state: &'static str,
        /// The result, or what went wrong.
        text: String,
    },
    /// It did not run, for this reason.
    NotAllowed(String),
    /// The person stopped it.
    Stopped,
}

impl RunTools {
    /// Starts the servers of tools with these names, and allows those of `allow` for this run, each as it is now.
    ///
    /// # Errors
    /// When a name names no tool, a server is off or does not start, or a tool is allowed that the model is not told of.
    pub(super) async fn start(names: &[String], allow: &[String]) -> Result<Self> {
        let tools = open()?;
        let mut chosen = BTreeSet::new();
        for name in names {
            chosen.extend(tools_named(&tools, name).await?);
        }
        let mut allowed = BTreeSet::new();
        for name in allow {
            let (tool, host) = allowed_named(&tools, name)?;
            ensure!(
                chosen.contains(&tool),
                "--allow {name} names no tool of --use-tools, or one that a rule denies"
            );
            let done = tools.allow_in_chat(RUN, &tool, host.as_deref()).await;
            done.map_err(protocol::Error::from)?;
            allowed.insert(tool);
        }
        let chosen: Vec<ToolRef> = chosen.into_iter().collect();
        let servers = tools.view().await.map_err(protocol::Error::from)?.servers;
        let rule = |of: &ToolRef| {
            let server = servers.iter().find(|server| server.id == of.server)?;
            server.tools.iter().find(|tool| tool.name == of.tool)?.rule
        };
        let offered = tools.offer(&chosen).await.into_iter().map(|tool| Offered {
            is_allowed: allowed.contains(&tool.of),
            rule: rule(&tool.of),
            tool,
        });
        Ok(Self {
            offered: offered.collect(),
            tools,
        })
    }

    /// The tools as a model is told of them.
    pub(super) fn declarations(&self) -> Vec<Value> {
        let offered = self.offered.iter();
        offered.map(|offered| offered.tool.declaration.clone()).collect()
    }

    /// Runs a call of the response with this number, if it is allowed. `most` limits the bytes of its result.
    pub(super) async fn call(
        &self,
        response: usize,
        call: &ToolCall,
        most: usize,
        stop: watch::Receiver<bool>,
    ) -> Called {
        let Some(offered) = self.offered(call) else {
            return Called::Ended {
                state: "failed",
                text: format!("There is no tool called {}.", call.name),
            };
        };
        let request = CallRequest {
            chat: RUN.to_owned(),
            turn: RUN.to_owned(),
            answer: format!("{RUN}-{response}"),
            call: call.clone(),
            attempt: 1,
            tool: offered.tool.of.clone(),
            origin: CallOrigin::Answer,
        };
        // Nothing of a run is kept.
        let start = Box::new(|_| Box::pin(std::future::ready(Ok(()))) as _);
        let name = offered.name();
        let tell = Arc::new(move |progress: CallProgress| {
            if progress.asks {
                output::warn(&format!(
                    "{name} asked you for something, which was declined: a run asks nobody"
                ));
            }
        });
        let result = self.tools.run(request, start, tell, stop).await;
        let text = text(&result, most);
        match result.end {
            CallEnd::Done => Called::Ended { state: "done", text },
            CallEnd::Failed => Called::Ended { state: "failed", text },
            CallEnd::Refused => Called::NotAllowed(offered.reason(&text)),
            CallEnd::Stopped => Called::Stopped,
        }
    }

    /// The name of a call's tool for people.
    pub(super) fn shown_name(&self, call: &ToolCall) -> String {
        self.offered(call).map_or_else(|| call.name.clone(), Offered::name)
    }

    /// Ends the servers.
    pub(super) fn end(self) {
        self.tools.end_turn(RUN);
        self.tools.shut_down();
    }

    fn offered(&self, call: &ToolCall) -> Option<&Offered> {
        self.offered.iter().find(|offered| offered.tool.name == call.name)
    }
}

impl Offered {
    /// Its name as a person types it.
    fn name(&self) -> String {
        let server = match self.tool.of.server == builtin::SERVER {
            true => builtin::SERVER,
            false => &self.tool.server_name,
        };
        format!("{server}/{}", self.tool.of.tool)
    }

    /// Why a call of it was refused with this text, and the way out.
    fn reason(&self, text: &str) -> String {
        let name = self.name();
        let typed = shlex::try_quote(&name).unwrap_or_default();
        match (self.rule, self.is_allowed) {
            (Some(ToolRule::Deny), _) => {
                format!("{name} was not run, because a rule denies it. 'ponder tools rule {typed} none' removes the rule")
            }
            (Some(ToolRule::Ask), true) => format!(
                "{name} was not run, because a rule asks about each call. 'ponder tools rule {typed} none' removes the rule"
            ),
            (_, false) => format!("{name} was not run, because it is not allowed. --allow {typed} lets it run"),
            (None, true) => format!("{name}: {text}"),
        }
    }
}

/// The text of a result for the model.
fn text(result: &CallResult, most: usize) -> String {
    let parts = result.content.iter().filter_map(Content::as_text);
    cut_result(parts.collect::<Vec<_>>().join("\n"), most)
}
