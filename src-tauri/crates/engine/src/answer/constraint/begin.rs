//! The choice of what limits an answer.

use prompt::ChatProcessor;
use protocol::Request;

use crate::answer::constraint::answer::AnswerConstraint;
use crate::answer::constraint::call::CallConstraint;
use crate::answer::constraint::OutputConstraint;
use crate::loaded::LoadedModel;

/// The constraint of the answer to a request; `None` if it may be anything.
pub fn begin(loaded: &LoadedModel, processor: &ChatProcessor, request: &Request) -> Option<Box<dyn OutputConstraint>> {
    if let Some(calls) = CallConstraint::begin(loaded, processor, request) {
        return Some(Box::new(calls));
    }
    let schema = request.schema.clone()?;
    Some(Box::new(AnswerConstraint::begin(loaded, processor, schema)))
}
