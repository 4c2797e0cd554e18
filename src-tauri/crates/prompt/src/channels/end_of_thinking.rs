//! The text between a thought and the answer. Fed to a model, it ends the thought as if the model had ended it itself.

use std::sync::Arc;

use protocol::Thinking;
use serde_json::{json, Value};

use super::event::Piece;
use super::formats::{ChannelFormat, MarkerKind};
use super::splitter::Splitter;
use crate::error::Result;
use crate::template::{RenderRequest, Template};
use crate::tokenizer::Tokenizer;

/// Stand for the texts of a conversation; no template looks for them.
const QUESTION: &str = "Zyzzyva?";
const THOUGHT: &str = "Quokka";
const ANSWER: &str = "Axolotl";

/// The text and ids that end a thought so that the answer follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndOfThinking {
    text: String,
    ids: Vec<u32>,
    bare: Vec<u32>,
}

impl EndOfThinking {
    /// The terminator of a model; `None` if it has no thoughts.
    pub(crate) fn of(template: &Template, format: &ChannelFormat, tokenizer: &Arc<Tokenizer>) -> Result<Option<Self>> {
        let Some(text) = text(template, format) else {
            return Ok(None);
        };
        let ids = |text: &str| -> Result<Vec<u32>> {
            let ids = tokenizer.encode_rendered(text, None)?;
            // Some tokenizers put a blank before the first word of a text, and this is none.
            let blank = ids.first().is_some_and(|id| tokenizer.decode(&[*id]) == " ") && !text.starts_with(' ');
            Ok(ids[usize::from(blank)..].to_vec())
        };
        Ok(Some(Self {
            ids: ids(&text)?,
            bare: ids(text.trim_start())?,
            text,
        }))
    }

    /// As it is spelled, such as `\n</think>\n\n`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its ids, markers as tokens where they are tokens.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The ids without the blanks it begins with, for a thought that ends with them, or in the middle of a character.
    pub fn bare(&self) -> &[u32] {
        &self.bare
    }

    /// The opening of an answer without a thought; empty if answers have none.
    pub(crate) fn answer_opening(&self, format: &ChannelFormat) -> &str {
        let closes = [MarkerKind::Close, MarkerKind::MessageClose].map(|mark| format.marker(mark));
        let mut closes = closes.into_iter().flatten().map(|marker| marker.text);
        let end = closes.find_map(|spelled| Some(self.text.find(spelled)? + spelled.len()));
        let behind = self.text[end.unwrap_or(self.text.len())..].trim_start();
        // Harmony's prompt has begun the message.
        behind
            .strip_prefix("<|start|>assistant")
            .filter(|_| format.headers.is_some())
            .unwrap_or(behind)
    }
}

/// The closing as text: what the template writes between a thought and an answer, else what the table knows.
fn text(template: &Template, format: &ChannelFormat) -> Option<String> {
    let row = tabled(format)?;
    let wrapped = |text: &str| {
        let mut opening = format.markers_of(&[MarkerKind::AnswerOpen]);
        opening.any(|marker| text.contains(marker.text))
    };
    let whole = |text: &String| closes(format, text) && wrapped(text) == wrapped(&row);
    Some(written(template, format).into_iter().find(whole).unwrap_or(row))
}

impl Template {
    /// The text between a thought and the answer, as far as the template alone tells; `None` if it knows no thoughts.
    pub fn end_of_thinking(&self) -> Option<String> {
        text(self, &ChannelFormat::spoken(self.source()))
    }
}

impl Splitter {
    /// The text between a thought and the answer in this format; `None` if it has no thoughts.
    pub fn end_of_thinking(&self) -> Option<String> {
        tabled(&self.format)
    }
}

/// The closing as far as the table of formats knows it.
fn tabled(format: &ChannelFormat) -> Option<String> {
    format.opened()?;
    let terminator = format.terminator.unwrap_or_else(|| format.spelled(MarkerKind::Close));
    closes(format, terminator).then(|| terminator.to_owned())
}

/// True if this text ends a thought and begins an answer.
fn closes(format: &ChannelFormat, terminator: &str) -> bool {
    let mut spelled = format.clone();
    spelled.markers.iter_mut().for_each(|marker| marker.id = None);
    let mut splitter = Splitter::new(spelled, true, &[]);
    splitter.begin_thought();
    let mut events = splitter.push(&format!("{THOUGHT}{terminator}{ANSWER}"));
    events.extend(splitter.finish());
    let pieces: Vec<Piece> = events.into_iter().map(|event| event.piece).collect();
    pieces == [Piece::Thinking(THOUGHT.into()), Piece::Text(ANSWER.into())]
}

/// The candidates that renderings of the template give, the best evidence first.
fn written(template: &Template, format: &ChannelFormat) -> Vec<String> {
    let call = json!([{"type": "function", "id": "a1B2c3D4e", "function": {"name": "f", "arguments": {}}}]);
    let answered = json!({"role": "assistant", "content": ANSWER, "reasoning_content": THOUGHT});
    let calling = json!({"role": "assistant", "content": "", "reasoning_content": THOUGHT, "tool_calls": call});
    let mut found = Vec::new();
    for thinking in [Some(Thinking::On), None] {
        let behind = |message: &Value| {
            let text = render(template, Some(message), thinking)?;
            let (_, behind) = text.split_once(THOUGHT)?;
            Some(behind.to_owned())
        };
        found.extend(behind(&answered).and_then(|text| Some(text.split_once(ANSWER)?.0.to_owned())));
        // Some keep a thought only where a call follows it.
        let calls = |text: &str| {
            let opening = format.markers_of(&[MarkerKind::CallOpen, MarkerKind::CallHead, MarkerKind::Section]);
            opening.filter_map(|marker| text.find(marker.text)).min()
        };
        found.extend(behind(&calling).and_then(|text| Some(text[..calls(&text)?].to_owned())));
    }
    // The end of a prompt with thinking off.
    let off = render(template, None, Some(Thinking::Off));
    found.extend(off.and_then(|text| empty_thought(&text, format)));
    found
}

fn render(template: &Template, answer: Option<&Value>, thinking: Option<Thinking>) -> Option<String> {
    let request = RenderRequest {
        thinking,
        add_generation_prompt: answer.is_none(),
        ..RenderRequest::default()
    };
    let mut variables = template.variables(&request);
    let question = json!({"role": "user", "content": QUESTION});
    let messages: Vec<Value> = [question].into_iter().chain(answer.cloned()).collect();
    variables.insert("messages".into(), messages.into());
    template.render(variables).ok()
}

/// The terminator in the empty thought at a prompt's end, which begins with a line end where thoughts do.
fn empty_thought(prompt: &str, format: &ChannelFormat) -> Option<String> {
    let (open, close) = (format.opened()?, format.spelled(MarkerKind::Close));
    let (_, tail) = prompt.rsplit_once(QUESTION)?;
    let at = tail.rfind(close).filter(|_| !close.is_empty())?;
    let before = match tail[..at].rsplit_once(open.as_str()) {
        Some((_, blank)) if blank.trim().is_empty() => blank.strip_prefix('\n').unwrap_or(blank),
        _ => "",
    };
    let behind = &tail[at..];
    Some(format!("{before}{behind}"))
}
