//! Consents of a person, and the only way to a call that runs.
//!
//! A call waits for consent as a [`LiveCall`], which nothing reads from bytes: calls that were imported, edited, stored
//! before or sent by another program never become one. [`Consents`] hands out a [`Permit`] for it, at once where a
//! [`Grant`] covers the tool as it is now, or when a person approves the very call that was shown, which the approval
//! names by its hash. Running takes the permit, so that none runs twice.

mod consents;
mod decision;
mod grant;
mod pending;
#[cfg(test)]
mod tests;
mod turn;

pub use consents::{Approval, Consents, Denial, Error, Verdict};
pub use decision::{decide, Rule, Rules};
pub use grant::{Grant, SealKey, SealedGrant};
pub use pending::{CallHash, CallKey, LiveCall, Pending, Permit, WaitReason};
pub use turn::TurnCalls;
