//! The calls that wait, the grants, and the way from one to the other.

use api::ConsentExtent;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use crate::catalog::{Binding, ToolRef};
use crate::consent::{decide, CallHash, CallKey, Grant, LiveCall, Pending, Permit, Rule, Rules, TurnCalls, WaitReason};

/// Calls that wait at most; a person decides them one by one.
const MOST_WAITING: usize = 100;

/// Why an approval does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such call waits.
    #[error("this call does not wait for an answer any more")]
    NotWaiting,
    /// The call that waits is not the one that was shown.
    #[error("this call is not the one that was shown")]
    Changed,
    /// Arguments are a JSON object.
    #[error("the arguments of a call are a JSON object")]
    NotAnObject,
}

/// A person's consent to a call that was shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// The call.
    pub key: CallKey,
    /// The hash of what was shown.
    pub hash: CallHash,
    /// How far it reaches.
    pub extent: ConsentExtent,
    /// The arguments that the person wrote in place of the shown ones.
    pub arguments: Option<Value>,
}

/// The refusal of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// A rule that a person set before.
    Rule,
    /// A person now, with a word for the model.
    Person(String),
    /// The turn makes the same call again and again.
    Repeated,
    /// Too many calls wait.
    TooMany,
}

/// The decision about a call.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// It runs.
    Run(Permit),
    /// A person is asked.
    Wait(CallHash),
    /// It does not run.
    Refused(Denial),
}

/// The calls of this process that wait, and what persons granted.
#[derive(Debug, Default)]
pub struct Consents {
    waiting: BTreeMap<CallKey, Pending>,
    /// Calls that were decided; a second one of the same name never waits.
    decided: HashSet<CallKey>,
    always: HashMap<(ToolRef, Binding), Grant>,
    /// By chat. They end with the process.
    in_chat: HashSet<(String, ToolRef, Binding)>,
}

impl Consents {
    /// With the grants whose seals are right.
    pub fn new(always: impl IntoIterator<Item = Grant>) -> Self {
        let mut consents = Self::default();
        consents.set_always(always);
        consents
    }

    /// Replaces the grants that hold in all chats, as they were sealed last: by this process or another one.
    pub fn set_always(&mut self, always: impl IntoIterator<Item = Grant>) {
        self.always = always
            .into_iter()
            .map(|grant| ((grant.tool.clone(), grant.binding), grant))
            .collect();
    }

    /// The grants that hold in all chats, the oldest first.
    pub fn always(&self) -> Vec<Grant> {
        let mut grants: Vec<Grant> = self.always.values().cloned().collect();
        grants.sort_by(|one, other| (one.granted_at, &one.tool).cmp(&(other.granted_at, &other.tool)));
        grants
    }

    /// Decides about a call that a live answer has just made. `rules` are what the person said of the tool and its
    /// server besides grants.
    pub fn request(&mut self, call: LiveCall, rules: Rules, turn: &mut TurnCalls) -> Verdict {
        if self.decided.contains(&call.key) || self.waiting.contains_key(&call.key) {
            return Verdict::Refused(Denial::Repeated);
        }
        let granted = self.covers(&call).then_some(Rule::Allow);
        let rule = decide(Rules {
            // A rule of the person is stronger than a grant.
            tool: rules.tool.max(granted),
            server: rules.server,
        });
        if rule == Rule::Deny {
            self.decided.insert(call.key);
            return Verdict::Refused(Denial::Rule);
        }
        if turn.repeats(&call) {
            self.decided.insert(call.key);
            return Verdict::Refused(Denial::Repeated);
        }
        let reason = match rule {
            _ if turn.has_many_calls() => WaitReason::ManyCalls,
            Rule::Allow if turn.distrusts(&call) => WaitReason::UntrustedResult,
            Rule::Allow => {
                turn.runs();
                self.decided.insert(call.key.clone());
                return Verdict::Run(Permit { call: Box::new(call) });
            }
            Rule::Ask | Rule::Deny if granted.is_some() => WaitReason::Rule,
            Rule::Ask | Rule::Deny => WaitReason::NoGrant,
        };
        if self.waiting.len() == MOST_WAITING {
            self.decided.insert(call.key);
            return Verdict::Refused(Denial::TooMany);
        }
        let hash = CallHash::of(&call);
        self.waiting.insert(call.key.clone(), Pending { call, reason });
        Verdict::Wait(hash)
    }

    /// Lets calls of a tool as it is now run in a chat, as a person typed on the command line.
    pub(crate) fn allow_in_chat(&mut self, chat: &str, tool: ToolRef, binding: Binding) {
        self.in_chat.insert((chat.to_owned(), tool, binding));
    }

    /// The calls that wait, by answer and call.
    pub fn waiting(&self) -> impl Iterator<Item = &Pending> {
        self.waiting.values()
    }

    /// A person's consent. `at` is the time, in Unix milliseconds.
    ///
    /// # Errors
    /// [`Error::NotWaiting`] if no such call waits, [`Error::Changed`] if another one was shown, [`Error::NotAnObject`]
    /// for written arguments that are none. The call goes on waiting.
    pub fn approve(&mut self, approval: Approval, turn: &mut TurnCalls, at: i64) -> Result<Permit, Error> {
        let pending = self.shown(&approval.key, approval.hash)?;
        if approval.arguments.as_ref().is_some_and(|written| !written.is_object()) {
            return Err(Error::NotAnObject);
        }
        let mut call = pending.call.clone();
        let (tool, binding) = (call.tool.clone(), call.binding);
        match approval.extent {
            ConsentExtent::Once => {}
            ConsentExtent::Chat => {
                self.in_chat.insert((call.chat.clone(), tool.clone(), binding));
                turn.granted(&tool, binding);
            }
            ConsentExtent::Always => {
                let grant = Grant {
                    tool: tool.clone(),
                    binding,
                    host: call.host.clone(),
                    granted_at: at,
                };
                turn.granted(&tool, binding);
                self.always.insert((tool, binding), grant);
            }
        }
        self.decide(&approval.key);
        turn.runs();
        if let Some(arguments) = approval.arguments {
            call.arguments = arguments;
        }
        Ok(Permit { call: Box::new(call) })
    }

    /// A person's refusal of a call that was shown.
    ///
    /// # Errors
    /// Those of [`Consents::approve`].
    pub fn refuse(&mut self, key: &CallKey, hash: CallHash, word: String) -> Result<Denial, Error> {
        self.shown(key, hash)?;
        self.decide(key);
        Ok(Denial::Person(word))
    }

    /// Withdraws the calls of an answer that was stopped; returns their ids.
    pub fn withdraw(&mut self, answer: &str) -> Vec<String> {
        let of_answer = |key: &&CallKey| key.answer == answer;
        let keys: Vec<CallKey> = self.waiting.keys().filter(of_answer).cloned().collect();
        keys.iter().for_each(|key| self.decide(key));
        keys.into_iter().map(|key| key.call).collect()
    }

    /// Takes back every grant for a tool, whatever it was then, in all chats; if a host is named, of those that hold in
    /// all chats only the ones for it. What is sealed anew goes under a new key.
    pub fn revoke(&mut self, tool: &ToolRef, host: Option<&str>) {
        self.always
            .retain(|_, grant| grant.tool != *tool || host.is_some() && grant.host.as_deref() != host);
        self.in_chat.retain(|(_, granted, _)| granted != tool);
    }

    /// Forgets what was granted in a chat.
    pub fn forget_chat(&mut self, chat: &str) {
        self.in_chat.retain(|(granted, ..)| granted != chat);
    }

    fn covers(&self, call: &LiveCall) -> bool {
        let (tool, binding) = (call.tool.clone(), call.binding);
        self.always.contains_key(&(tool.clone(), binding)) || self.in_chat.contains(&(call.chat.clone(), tool, binding))
    }

    fn shown(&self, key: &CallKey, hash: CallHash) -> Result<&Pending, Error> {
        let pending = self.waiting.get(key).ok_or(Error::NotWaiting)?;
        if pending.hash() != hash {
            return Err(Error::Changed);
        }
        Ok(pending)
    }

    fn decide(&mut self, key: &CallKey) {
        self.waiting.remove(key);
        self.decided.insert(key.clone());
    }
}
