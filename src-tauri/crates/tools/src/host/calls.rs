//! The way of a call: its tool, the check of its arguments, consent, its run.

use futures::future::BoxFuture;
use futures::FutureExt;
use protocol::{
    CallEnd, CallOrigin, CallProgress, CallRequest, CallResult, Content, OfferedTool, ReadingCost, StoreStart,
    TellProgress, ToolRef, Toolbox,
};
use serde_json::{json, Value};
use tokio::sync::{oneshot, watch};

use super::state::{Decision, ShownCall, State};
use super::{arguments, Callable, CallableServer, Tools};
use crate::builtin::{Builtin, OwnCall};
use crate::catalog::{model_names, Tool};
use crate::consent::{CallKey, Denial, LiveCall, Pending, Permit, Rule, Verdict, WaitReason};
use crate::error::Result;
use crate::outcome::Outcome;
use crate::session::{CallError, Caller};

/// Bytes of a result that are kept with its chat. A model is given less.
const MOST_KEPT: usize = 4 << 20;

impl Toolbox for Tools {
    fn offer(&self, tools: &[ToolRef]) -> BoxFuture<'_, Vec<OfferedTool>> {
        let tools = tools.to_vec();
        async move {
            let mut callable = Vec::new();
            for of in tools {
                match self.callable(&of).await {
                    Ok(found) => callable.push((of, found)),
                    Err(error) => tracing::warn!(%error, "a tool of a chat cannot be offered"),
                }
            }
            offered(&callable)
        }
        .boxed()
    }

    fn declarations_now(&self, tools: &[ToolRef]) -> BoxFuture<'_, Vec<(ToolRef, Option<Value>)>> {
        let tools = tools.to_vec();
        async move {
            let mut now = Vec::new();
            for of in tools {
                if let Some(tool) = self.tool_now(&of).await {
                    let declared = |tool: Tool| declaration(&tool.name, &tool.description, &tool.parameters);
                    now.push((of, tool.map(declared)));
                }
            }
            now
        }
        .boxed()
    }

    fn run(
        &self,
        call: CallRequest,
        start: StoreStart,
        tell: TellProgress,
        stop: watch::Receiver<bool>,
    ) -> BoxFuture<'_, CallResult> {
        async move {
            match self.run_call(call, start, tell, stop).await {
                Ok(result) => result,
                Err(error) => ended(CallEnd::Failed, error.to_string()),
            }
        }
        .boxed()
    }

    fn end_turn(&self, turn: &str) {
        self.state().turns.remove(turn);
    }

    fn forget_chat(&self, chat: &str) {
        self.state().consents.forget_chat(chat);
    }
}

impl Tools {
    /// Lets calls of a tool run in one conversation, as the person said when it began; the tool is bound as it is now. A
    /// tool that reads pages is allowed for a host.
    ///
    /// # Errors
    /// If there is no such tool, or its server does not run.
    pub async fn allow_in_chat(&self, chat: &str, of: &ToolRef, host: Option<&str>) -> Result<()> {
        let callable = self.callable(of).await?;
        let known = match host {
            Some(host) => Some(host.to_owned()),
            // The host of a search engine is known without arguments.
            None => callable.host(&Value::Null).unwrap_or_default(),
        };
        let binding = callable.binding(known.as_deref());
        self.state().consents.allow_in_chat(chat, of.clone(), binding);
        Ok(())
    }

    async fn run_call(
        &self,
        call: CallRequest,
        start: StoreStart,
        tell: TellProgress,
        stop: watch::Receiver<bool>,
    ) -> Result<CallResult> {
        let callable = self.callable(&call.tool).await?;
        if let Err(complaint) = arguments::check(&callable.tool.parameters, &call.call.arguments) {
            let told = format!("The call was not run, because its arguments do not fit the tool: {complaint}");
            return Ok(ended(CallEnd::Failed, told));
        }
        let host = match callable.host(&call.call.arguments) {
            Ok(host) => host,
            Err(reason) => return Ok(ended(CallEnd::Failed, format!("The call was not run: {reason}."))),
        };
        self.read_grants().await;
        let permit = match self.consent(&call, &callable, host, stop.clone()).await? {
            Ok(permit) => permit,
            Err(result) => return Ok(result),
        };
        // On the disk before the call leaves.
        if let Err(error) = start(permit.call().arguments.clone()).await {
            let told = format!("The call was not run, because its beginning could not be stored: {error}");
            return Ok(ended(CallEnd::Failed, told));
        }
        let strangers = callable.may_quote_strangers();
        let result = self.run_permitted(callable, permit, tell, stop).await;
        if strangers {
            self.state().turns.entry(call.turn).or_default().note_untrusted_result();
        }
        Ok(result)
    }

    /// Waits for a consent to a call. The inner error is how the call ended without one.
    async fn consent(
        &self,
        call: &CallRequest,
        callable: &Callable,
        host: Option<String>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<std::result::Result<Permit, CallResult>> {
        let key = CallKey {
            answer: call.answer.clone(),
            call: match call.attempt {
                1 => call.call.id.clone(),
                attempt => format!("{}.{attempt}", call.call.id),
            },
        };
        let live = LiveCall {
            chat: call.chat.clone(),
            key: key.clone(),
            tool: call.tool.clone(),
            binding: callable.binding(host.as_deref()),
            host,
            effects: callable.tool.effects,
            arguments: call.call.arguments.clone(),
        };
        let mut rules = self.0.file.get()?.rules(&live.tool);
        let again = call.origin == CallOrigin::Again;
        let reading = tokio::select! {
            cost = self.reading_cost(call, callable) => cost,
            _ = stop.wait_for(|stop| *stop) => return Ok(Err(not_run())),
        };
        if again {
            rules.tool = rules.tool.max(Some(Rule::Ask));
        }
        let decided = {
            let mut state = self.state();
            let State {
                consents, turns, asked, ..
            } = &mut *state;
            let turn = turns.entry(call.turn.clone()).or_default();
            match consents.request(live, rules, turn) {
                Verdict::Run(permit) => return Ok(Ok(permit)),
                Verdict::Refused(denial) => return Ok(Err(refused(denial))),
                Verdict::Wait(_) if !self.0.attended => {
                    let reason = consents
                        .waiting()
                        .find(|pending| pending.call().key == key)
                        .map(Pending::reason);
                    consents.withdraw(&call.answer);
                    return Ok(Err(ended(CallEnd::Refused, unattended(reason).to_owned())));
                }
                Verdict::Wait(_) => {}
            }
            let (decided, decision) = oneshot::channel();
            let waiting = ShownCall {
                decided,
                turn: call.turn.clone(),
                again,
                server_name: callable.server_name(),
                server_command: callable.server_command(),
                own: match &callable.server {
                    CallableServer::Own(own, engine) => Some((*own, engine.clone())),
                    CallableServer::Configured(..) => None,
                },
                title: callable
                    .tool
                    .title
                    .clone()
                    .unwrap_or_else(|| callable.tool.name.clone()),
                description: callable.tool.description.clone(),
                parameters: callable.tool.parameters.clone(),
                reading,
            };
            asked.insert(key.clone(), waiting);
            decision
        };
        self.0.waiting.send_replace(());
        // Withdrawn however the waiting ends: the turn's task may be dropped.
        let _waits = Waits(self, &key);
        tokio::select! {
            decision = decided => Ok(match decision {
                Ok(Decision::Run(permit)) => Ok(*permit),
                Ok(Decision::Refused(denial)) => Err(refused(denial)),
                Err(_) => Err(ended(CallEnd::Stopped, "The tool was not run.".to_owned())),
            }),
            _ = stop.wait_for(|stop| *stop) => Ok(Err(not_run())),
        }
    }

    /// The cost of a call that reads all documents, for the person who may allow it; none for any other.
    async fn reading_cost(&self, call: &CallRequest, callable: &Callable) -> Option<ReadingCost> {
        if !self.0.attended || !matches!(callable.server, CallableServer::Own(Builtin::ReadAll, _)) {
            return None;
        }
        let cost = self.0.sources.chats.reading_cost(call.chat.clone()).await;
        cost.inspect_err(|error| tracing::warn!(%error, "the cost of reading all documents is not known"))
            .ok()
    }

    /// Runs a call, for which there is a permit.
    async fn run_permitted(
        &self,
        callable: Callable,
        permit: Permit,
        tell: TellProgress,
        mut stop: watch::Receiver<bool>,
    ) -> CallResult {
        let arguments = permit.call().arguments.clone();
        let ask = self.asker(&callable, permit.call(), tell.clone());
        let mut outcome = match callable.server {
            CallableServer::Own(own, engine) => {
                let call = OwnCall {
                    arguments: &arguments,
                    chat: &permit.call().chat,
                    zone: &own_zone(),
                    engine: engine.as_ref(),
                    tell: tell.clone(),
                };
                tokio::select! {
                    outcome = own.run(call, &self.0.sources) => outcome,
                    _ = stop.wait_for(|stop| *stop) => {
                        return ended(CallEnd::Stopped, CallError::Stopped.to_string());
                    }
                }
            }
            CallableServer::Configured(_, running) => {
                let (progress, mut heard) = watch::channel(CallProgress::default());
                let caller = Caller {
                    progress,
                    ask: Some(ask),
                };
                let called = running.session.call(&callable.tool.name, &arguments, caller, stop);
                let telling = async {
                    while heard.changed().await.is_ok() {
                        tell(heard.borrow_and_update().clone());
                    }
                };
                // The call ends the telling.
                match tokio::join!(called, telling).0 {
                    Ok(outcome) => outcome,
                    Err(CallError::Stopped) => return ended(CallEnd::Stopped, CallError::Stopped.to_string()),
                    Err(error) => Outcome::failed(error.to_string()),
                }
            }
        };
        let end = match outcome.is_error {
            true => CallEnd::Failed,
            false => CallEnd::Done,
        };
        let (images, passages) = (outcome.take_images(), outcome.take_passages());
        let text = outcome.text(MOST_KEPT);
        let is_silent = text.is_empty() && !(images.is_empty() && passages.is_empty());
        let text = (!is_silent).then(|| Content::text(text));
        CallResult {
            end,
            content: text.into_iter().chain(passages).collect(),
            images,
        }
    }
}

/// Takes a call off the list of those that wait.
struct Waits<'a>(&'a Tools, &'a CallKey);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let Self(tools, key) = self;
        let mut state = tools.state();
        if state.asked.remove(key).is_some() {
            state.consents.withdraw(&key.answer);
            drop(state);
            tools.0.waiting.send_replace(());
        }
    }
}

fn not_run() -> CallResult {
    ended(CallEnd::Stopped, "The tool was not run: the person stopped.".to_owned())
}

fn ended(end: CallEnd, text: String) -> CallResult {
    CallResult::words(end, text)
}

fn refused(denial: Denial) -> CallResult {
    let text = match denial {
        Denial::Rule => "The tool was not run: the person does not allow it.".to_owned(),
        Denial::Person(word) if word.trim().is_empty() => "The tool was not run: the person refused.".to_owned(),
        Denial::Person(word) => format!("The tool was not run: the person refused and says: {word}"),
        Denial::Repeated => "The tool was not run: the same call was made before, with the same result.".to_owned(),
        Denial::TooMany => "The tool was not run: too many calls wait for the person.".to_owned(),
    };
    ended(CallEnd::Refused, text)
}

/// Why a call does not run where nobody can be asked.
fn unattended(reason: Option<WaitReason>) -> &'static str {
    match reason {
        Some(WaitReason::UntrustedResult) => {
            "The tool was not run: a result of a server came before, which may have asked for it."
        }
        Some(WaitReason::ManyCalls) => "The tool was not run: this turn has made too many calls.",
        Some(WaitReason::Rule) => "The tool was not run: a rule asks for each call.",
        Some(WaitReason::NoGrant) | None => "The tool was not run: nobody allowed it.",
    }
}

/// The declarations of these tools, by names that differ.
fn offered(callable: &[(ToolRef, Callable)]) -> Vec<OfferedTool> {
    let ids: Vec<ToolRef> = callable
        .iter()
        .map(|(of, callable)| match callable.server {
            CallableServer::Own(..) => of.clone(),
            // Ids of servers mean nothing to a model.
            CallableServer::Configured(ref server, _) => ToolRef {
                server: server.name.clone(),
                tool: of.tool.clone(),
            },
        })
        .collect();
    let own = |callable: &Callable| matches!(callable.server, CallableServer::Own(..));
    let names = model_names(&ids).into_iter().zip(callable);
    names
        .map(|(name, (of, callable))| {
            let name = match own(callable) {
                // As models know them.
                true => callable.tool.name.clone(),
                false => name,
            };
            OfferedTool {
                of: of.clone(),
                server_name: callable.server_name(),
                declaration: declaration(&name, &callable.tool.description, &callable.tool.parameters),
                name,
            }
        })
        .collect()
}

/// A tool as OpenAI's chat API declares it.
pub(super) fn declaration(name: &str, description: &str, parameters: &Value) -> Value {
    json!({
        "type": "function",
        "function": { "name": name, "description": description, "parameters": parameters }
    })
}

/// The user's time zone.
fn own_zone() -> String {
    let zone = jiff::tz::TimeZone::system();
    zone.iana_name().unwrap_or("UTC").to_owned()
}
