//! A call that waits for consent, and one that has it.

use api::CallEffects;
use serde_json::Value;

use crate::canonical::{canonical, Digest};
use crate::catalog::{Binding, ToolRef};

/// Names a call. Ids of calls are unique within a chat alone, so that its answer belongs to the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey {
    /// The id of the answer that made it.
    pub answer: String,
    /// The id of the call.
    pub call: String,
}

/// A call that an answer of this process made while it was written. Deliberately not `Deserialize`.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveCall {
    /// The id of the chat.
    pub chat: String,
    /// The call.
    pub key: CallKey,
    /// The tool.
    pub tool: ToolRef,
    /// The tool as it is now.
    pub binding: Binding,
    /// The host that it reaches, if its binding names one.
    pub host: Option<String>,
    /// The effects of a call, as its server describes them.
    pub effects: CallEffects,
    /// The arguments, a JSON object.
    pub arguments: Value,
}

/// The quotation in an approval: a digest of everything that a person was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallHash(Digest);

impl CallHash {
    /// That of a call.
    pub fn of(call: &LiveCall) -> Self {
        Self(Digest::of(&[
            &call.chat,
            &call.key.answer,
            &call.key.call,
            &call.tool.server,
            &call.tool.tool,
            &call.binding.digest().to_string(),
            &canonical(&call.arguments),
        ]))
    }

    /// The hash that this text is.
    pub fn parse(text: &str) -> Option<Self> {
        Digest::parse(text).map(Self)
    }
}

impl std::fmt::Display for CallHash {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(to)
    }
}

/// Why a person is asked although there is a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// There is none, or none for the tool as it is now.
    NoGrant,
    /// The person asked to be asked.
    Rule,
    /// A result in this turn may hold words of strangers.
    UntrustedResult,
    /// The turn has made many calls.
    ManyCalls,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    pub(super) call: LiveCall,
    pub(super) reason: WaitReason,
}

impl Pending {
    /// The call.
    pub fn call(&self) -> &LiveCall {
        &self.call
    }

    /// The hash that an approval quotes.
    pub fn hash(&self) -> CallHash {
        CallHash::of(&self.call)
    }

    /// Why it waits.
    pub fn reason(&self) -> WaitReason {
        self.reason
    }
}

/// The right to run one call once. Only [`super::Consents`] makes one, and running takes it.
#[derive(Debug, PartialEq)]
#[must_use]
pub struct Permit {
    pub(super) call: Box<LiveCall>,
}

impl Permit {
    /// The call, with the arguments that a person saw or wrote.
    pub fn call(&self) -> &LiveCall {
        &self.call
    }
}
