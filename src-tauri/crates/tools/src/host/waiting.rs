//! Calls that wait for a person: shown, approved, refused.

use std::time::{SystemTime, UNIX_EPOCH};

use api::{CallApproval, ConsentExtent, ConsentReason, WaitingCall};
use serde_json::Value;

use super::grants::StoredConsents;
use super::state::{Decision, ShownCall, State};
use super::{arguments, Tools};
use crate::catalog::ToolRef;
use crate::consent::{Approval, CallHash, CallKey, Error as ConsentError, Pending, WaitReason};
use crate::error::{Error, Result};
use crate::visible::visible;

impl Tools {
    /// The calls that wait, as they are shown.
    pub fn waiting(&self) -> Vec<WaitingCall> {
        let state = self.state();
        let waiting = state.consents.waiting();
        waiting.filter_map(|pending| shown(&state, pending)).collect()
    }

    /// A person's consent to a call that was shown.
    ///
    /// # Errors
    /// [`Error::Consent`] if it does not wait any more or is another one than was shown, [`Error::Arguments`] for
    /// arguments that the tool does not take; it goes on waiting then. [`Error::Keychain`] if *always* cannot be kept.
    pub async fn approve(&self, approval: CallApproval) -> Result<()> {
        let key = key_of(&approval.answer, &approval.call);
        let hash = CallHash::parse(&approval.hash).ok_or(ConsentError::Changed)?;
        let extent = approval.extent;
        let kept = {
            let mut state = self.state();
            let state = &mut *state;
            let asked = state.asked.get(&key).ok_or(ConsentError::NotWaiting)?;
            let written = approval.arguments.as_deref().map(arguments::read).transpose();
            let written = written.map_err(Error::Arguments)?;
            if let Some(written) = &written {
                arguments::check(&asked.parameters, written).map_err(Error::Arguments)?;
                let shown = state.consents.waiting().find(|pending| pending.call().key == key);
                let shown = shown.and_then(|pending| pending.call().host.clone());
                check_host(asked, written, shown, extent)?;
            }
            let turn = state.turns.entry(asked.turn.clone()).or_default();
            let approval = Approval {
                key: key.clone(),
                hash,
                extent,
                arguments: written,
            };
            let permit = state.consents.approve(approval, turn, now())?;
            let Some(asked) = state.asked.remove(&key) else {
                return Err(ConsentError::NotWaiting.into());
            };
            let tool = permit.call().tool.clone();
            // Whoever ran it may be gone; then the permit ends here.
            let _ = asked.decided.send(Decision::Run(Box::new(permit)));
            (extent == ConsentExtent::Always).then(|| {
                state.descriptions.insert(tool, asked.description);
                state.kept()
            })
        };
        self.0.waiting.send_replace(());
        match kept {
            Some(kept) => self.keep(kept, false).await,
            None => Ok(()),
        }
    }

    /// A person's refusal of a call that was shown, with a word for the model.
    ///
    /// # Errors
    /// [`Error::Consent`] if it does not wait any more or is another one than was shown.
    pub fn refuse(&self, answer: &str, call: &str, hash: &str, word: String) -> Result<()> {
        let key = key_of(answer, call);
        let hash = CallHash::parse(hash).ok_or(ConsentError::Changed)?;
        {
            let mut state = self.state();
            let denial = state.consents.refuse(&key, hash, word)?;
            if let Some(asked) = state.asked.remove(&key) {
                let _ = asked.decided.send(Decision::Refused(denial));
            }
        }
        self.0.waiting.send_replace(());
        Ok(())
    }

    /// Takes back every consent for a tool, whatever it was then, or those for this host.
    ///
    /// # Errors
    /// [`Error::Keychain`] and [`Error::File`]; it counts no more in this process whatever happens.
    pub async fn revoke(&self, tool: &protocol::ToolRef, host: Option<&str>) -> Result<()> {
        self.read_grants().await;
        let kept = {
            let mut state = self.state();
            state.consents.revoke(tool, host);
            state.kept()
        };
        self.keep(kept, true).await
    }

    async fn keep(&self, kept: StoredConsents, taken_back: bool) -> Result<()> {
        let grants = self.0.grants.clone();
        let saved = tokio::task::spawn_blocking(move || grants.save(&kept, taken_back)).await;
        self.changed();
        saved.unwrap_or_else(|_| Err(Error::Keychain("it broke down".to_owned())))
    }
}

/// Refuses arguments that a person wrote and that a consent which goes further would not be for.
fn check_host(asked: &ShownCall, written: &Value, shown: Option<String>, extent: ConsentExtent) -> Result<()> {
    let Some((own, engine)) = &asked.own else { return Ok(()) };
    let host = own.host(written, engine.as_ref()).map_err(Error::Arguments)?;
    match extent {
        ConsentExtent::Chat | ConsentExtent::Always if host != shown => Err(Error::OtherHost {
            shown: shown.unwrap_or_default(),
            written: host.unwrap_or_default(),
        }),
        ConsentExtent::Once | ConsentExtent::Chat | ConsentExtent::Always => Ok(()),
    }
}

fn shown(state: &State, pending: &Pending) -> Option<WaitingCall> {
    let call = pending.call();
    let asked = state.asked.get(&call.key)?;
    // One for another host says nothing about this one.
    let was_allowed = |tool: &ToolRef| {
        let always = state.consents.always();
        always
            .iter()
            .any(|grant| grant.tool == *tool && grant.host == call.host)
    };
    let reason = match pending.reason() {
        _ if asked.again => ConsentReason::Again,
        WaitReason::NoGrant if was_allowed(&call.tool) => ConsentReason::Changed,
        WaitReason::NoGrant => ConsentReason::New,
        WaitReason::Rule => ConsentReason::Rule,
        WaitReason::UntrustedResult => ConsentReason::UntrustedResult,
        WaitReason::ManyCalls => ConsentReason::ManyCalls,
    };
    let former = state
        .descriptions
        .get(&call.tool)
        .filter(|_| reason == ConsentReason::Changed);
    Some(WaitingCall {
        answer: call.key.answer.clone(),
        call: call.key.call.clone(),
        hash: pending.hash().to_string(),
        chat: call.chat.clone(),
        tool: call.tool.clone(),
        server_name: visible(&asked.server_name),
        server_command: visible(&asked.server_command),
        title: visible(&asked.title),
        host: call.host.as_deref().map(visible),
        description: visible(&asked.description),
        former_description: former.map(|text| visible(text)),
        parameters: asked.parameters.clone(),
        arguments_text: serde_json::to_string_pretty(&call.arguments).unwrap_or_default(),
        arguments: call.arguments.clone(),
        effects: call.effects,
        reason,
        reading: asked.reading,
        can_keep: state.can_keep,
    })
}

fn key_of(answer: &str, call: &str) -> CallKey {
    CallKey {
        answer: answer.to_owned(),
        call: call.to_owned(),
    }
}

/// Unix milliseconds.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
