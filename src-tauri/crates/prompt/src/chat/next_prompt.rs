//! The places at which prompts of one conversation part: the number of ids they share. The state up to
//! there serves the next turn, another answer, an edited question.
//!
//! Boundaries are found by rendering the conversation a little changed and comparing. They are hints: whoever uses one
//! compares ids again, so a template that refuses a probe costs reuse and nothing else. A rendering costs a
//! millisecond; ids are made of its differing end alone, because control tokens split a text and what stands before one
//! has its ids whatever comes after.

use protocol::{Content, Message, Role};

use super::processor::{ChatProcessor, Rendered};
use crate::error::Result;
use crate::images::widened;
use crate::prompt::{ImageSpan, Prompt};
use crate::template::{RenderLimits, RenderRequest};

/// Made-up questions with different first letters.
const PROBES: [&str; 2] = ["What?", "Hm."];

/// If the next turn parts so few tokens before the prompt's end, the end itself is no boundary: another answer reads
/// these few again.
const NEAR: usize = 32;

/// Bytes after the first difference that take part in making ids, so that the last common token is a whole one.
const MARGIN: usize = 32;

/// The beginning of a conversation's next prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextPrompt {
    /// The ids, up to the next question's own words.
    pub ids: Vec<u32>,
    /// The places at which other prompts part from them, as [`ChatProcessor::boundaries`] returns them.
    pub boundaries: Vec<usize>,
    /// The places of images in the ids, in their order.
    pub images: Vec<ImageSpan>,
}

impl ChatProcessor {
    /// After how many ids of the conversation's `prompt` others part from it, in rising order: chats with the same
    /// instructions, an edit of the last question, the next turn and, as far as it is not near that, another answer.
    /// One id at least is left after the last boundary.
    pub fn boundaries(&self, request: &RenderRequest, prompt: &Prompt) -> Vec<usize> {
        RenderLimits::request().unless_limited(|| self.find_boundaries(request, prompt))
    }

    fn find_boundaries(&self, request: &RenderRequest, prompt: &Prompt) -> Vec<usize> {
        let ids = self.narrow(prompt);
        let whole = ids.len().saturating_sub(1);
        let Ok(rendered) = self.rendered(request) else {
            return vec![prompt.ids.len().saturating_sub(1)];
        };
        let turn = [Message::text(Role::Assistant, "Yes."), question(PROBES[0])];
        let next = [request.messages, &turn].concat();
        let next = self.parting(request, &next, &rendered, &ids);
        let next = next.map(|next| next.min(whole));
        let end = next.is_none_or(|next| next + NEAR <= whole).then_some(whole);
        let mut found: Vec<usize> = next.into_iter().chain(end).collect();
        for messages in [self.instructions(request), before_last_question(request.messages)] {
            found.extend(messages.and_then(|messages| self.parting(request, &messages, &rendered, &ids)));
        }
        in_order(found, whole, &prompt.images)
    }

    /// The beginning of the next prompt, if this conversation is continued by a question.
    pub fn next_prompt(&self, request: &RenderRequest) -> Result<NextPrompt> {
        RenderLimits::request().unless_limited(|| self.find_next_prompt(request))
    }

    fn find_next_prompt(&self, request: &RenderRequest) -> Result<NextPrompt> {
        let [one, other] = PROBES.map(|probe| with_question(request.messages, probe));
        let request = RenderRequest {
            messages: &one,
            ..*request
        };
        let prompt = self.prompt(&request)?;
        let rendered = self.rendered(&request)?;
        let ids = self.narrow(&prompt);
        let Some(end) = self.parting(&request, &other, &rendered, &ids) else {
            return Ok(NextPrompt::default());
        };
        let asked = one.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
        let asked_before = one[..asked].iter().rposition(|message| message.role == Role::User);
        let mut found: Vec<usize> = Vec::new();
        for messages in [self.instructions(&request), before_last_question(&one[..asked])] {
            found.extend(messages.and_then(|messages| self.parting(&request, &messages, &rendered, &ids)));
        }
        if let Some(question) = asked_before {
            // Another answer to the last question; its prompt ends there, and one token has to be left to read.
            let again = self.parting(&request, &one[..=question], &rendered, &ids);
            found.extend(again.map(|end| end.saturating_sub(1)));
        }
        let widened_end = widened(&prompt.images, end);
        let images = prompt.images.iter().cloned();
        Ok(NextPrompt {
            boundaries: in_order(found, end, &prompt.images),
            ids: prompt.ids[..widened_end].to_vec(),
            images: images.filter(|span| span.range.end <= widened_end).collect(),
        })
    }

    /// The instructions and a question, if there are instructions of any kind.
    fn instructions(&self, request: &RenderRequest) -> Option<Vec<Message>> {
        let instructed = request.messages.first().filter(|message| message.role == Role::System);
        (instructed.is_some() || !request.tools.is_empty())
            .then(|| instructed.cloned().into_iter().chain([question(PROBES[0])]).collect())
    }

    /// After how many of `ids`, which were made of `rendered`, the same request with other messages parts from them.
    fn parting(
        &self,
        request: &RenderRequest,
        messages: &[Message],
        rendered: &Rendered,
        ids: &[u32],
    ) -> Option<usize> {
        let other = self
            .rendered_with(&RenderRequest { messages, ..*request }, rendered.sentinel)
            .ok()?;
        let bytes = rendered.text.bytes().zip(other.bytes());
        let same = other.floor_char_boundary(bytes.take_while(|(a, b)| a == b).count());
        let (before, start) = self.tokenizer().last_control(&other[..same]);
        let mut controls = (0..ids.len()).filter(|at| self.tokenizer().is_control(ids[*at]));
        let index = match start {
            None => 0,
            Some(_) => controls.nth(before)?,
        };
        let end = other.floor_char_boundary(same + MARGIN);
        let theirs = self
            .tokenizer()
            .encode_rendered(&other[start.unwrap_or(0)..end], Some(rendered.sentinel))
            .ok()?;
        let common = ids[index..].iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        Some(index + common)
    }
}

fn question(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// The conversation with a question at its end; after a question that got no answer it becomes part of that one,
/// because most templates refuse two in a row.
fn with_question(messages: &[Message], text: &str) -> Vec<Message> {
    let mut messages = messages.to_vec();
    match messages.last_mut() {
        Some(last) if last.role == Role::User => {
            Content::push(&mut last.content, Content::text(format!("\n\n{text}")));
        }
        _ => messages.push(question(text)),
    }
    messages
}

/// The conversation with another question in the place of the last one.
fn before_last_question(messages: &[Message]) -> Option<Vec<Message>> {
    let last = messages.iter().rposition(|message| message.role == Role::User)?;
    let text = messages[last].text_with_placeholders();
    // A probe that begins as the question does would not part from it at the question's first letter.
    let probe = PROBES
        .into_iter()
        .find(|probe| !text.trim_start().starts_with(&probe[..1]))?;
    Some(messages[..last].iter().cloned().chain([question(probe)]).collect())
}

/// Boundaries in a narrow prompt, up to the last, as places in the one with these images.
fn in_order(mut found: Vec<usize>, most: usize, images: &[ImageSpan]) -> Vec<usize> {
    found.retain(|boundary| (1..=most).contains(boundary));
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|at| widened(images, at)).collect()
}
