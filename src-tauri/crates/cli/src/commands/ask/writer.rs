//! Prints the responses of one run, and what became of the calls in them.

use std::time::Instant;

use anyhow::Result;
use protocol::{Content, Done, EndedBy, EngineEvent, FinishReason, JobHandle, Message, Role, ToolCall};
use serde_json::json;
use tokio::sync::watch;

use crate::input::EnterKey;
use crate::output::{visible_line, AnswerLines, Printer, Stream};

/// Characters of arguments and of a result on a line of standard error.
const SHOWN: usize = 80;

/// Prints responses, for people or as JSON lines.
pub(super) struct Writer {
    out: Stream,
    printer: Printer,
    json: bool,
    /// Calls may run, so they are no part of the response until one is not allowed.
    calls_run: bool,
    key: EnterKey,
    hinted: bool,
}

/// A response.
#[derive(Default)]
pub(super) struct Written {
    parts: Vec<Content>,
    done: Option<Done>,
    stopped: bool,
}

impl Writer {
    pub(super) fn new(out: Stream, thoughts: Stream, json: bool, calls_run: bool) -> Self {
        Self {
            printer: Printer::new(out.clone(), thoughts),
            out,
            json,
            calls_run,
            key: EnterKey::new(),
            hinted: false,
        }
    }

    /// Prints a response as it comes, until it ends or `stop` becomes true.
    ///
    /// # Errors
    /// When the model cannot respond, or standard output is closed.
    pub(super) async fn write(&mut self, mut job: JobHandle, stop: &watch::Receiver<bool>) -> Result<Written> {
        let mut stop = stop.clone();
        let (mut lines, mut written) = (AnswerLines::default(), Written::default());
        loop {
            let event = tokio::select! {
                event = job.events.recv() => event,
                () = self.key.pressed() => {
                    job.end_thinking.answer_now();
                    continue;
                }
                Ok(_) = stop.wait_for(|stop| *stop), if !job.cancel.is_cancelled() => {
                    job.cancel.cancel();
                    continue;
                }
            };
            let Some(event) = event else { break };
            if self.json {
                let lines = lines.lines(&event, Instant::now());
                lines.iter().try_for_each(|line| self.out.write(&format!("{line}\n")))?;
            }
            match &event {
                EngineEvent::Failed(error) => return Err(error.clone().into()),
                EngineEvent::Delta {
                    content: Content::Thinking { .. },
                    ..
                } if !std::mem::replace(&mut self.hinted, true) => self.key.hint(),
                _ => {}
            }
            if !self.json && !self.runs(&event) {
                self.printer.print(&event)?;
            }
            written.take(event);
        }
        Ok(written)
    }

    /// Tells of a call and its result.
    ///
    /// # Errors
    /// When standard output is closed.
    pub(super) fn result(&self, call: &ToolCall, name: &str, state: &str, text: &str) -> Result<()> {
        if self.json {
            let line = json!({"type": "tool_result", "id": call.id, "name": call.name, "state": state, "text": text});
            return Ok(self.out.write(&format!("{line}\n"))?);
        }
        let arguments = visible_line(&call.arguments.to_string(), SHOWN);
        let (name, text) = (visible_line(name, SHOWN), visible_line(text, SHOWN));
        eprintln!("{}", Stream::Err.soft(&format!("({name} {arguments}: {text})")));
        Ok(())
    }

    /// Prints calls that do not run, as they are without tools that run, and why.
    ///
    /// # Errors
    /// When standard output is closed.
    pub(super) fn calls_not_run(&mut self, calls: &[ToolCall], reason: &str) -> Result<()> {
        if !self.json {
            let mut calls = calls.iter().cloned();
            calls.try_for_each(|call| self.printer.part(&Content::ToolCall { call }))?;
        }
        eprintln!("({reason})");
        Ok(())
    }

    fn runs(&self, event: &EngineEvent) -> bool {
        let is_call = matches!(
            event,
            EngineEvent::Delta {
                content: Content::ToolCall { .. },
                ..
            }
        );
        is_call && self.calls_run
    }
}

impl Written {
    fn take(&mut self, event: EngineEvent) {
        match event {
            EngineEvent::Continued { parts, .. } => self.parts = parts,
            EngineEvent::Delta { content, .. } => Content::push(&mut self.parts, content),
            EngineEvent::Done(done) => self.done = Some(done),
            _ => {}
        }
    }

    /// The calls in it.
    pub(super) fn calls(&self) -> Vec<ToolCall> {
        let call = |part: &Content| match part {
            Content::ToolCall { call } => Some(call.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(call).collect()
    }

    /// Its text.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The message that a model is given of it.
    pub(super) fn message(&self) -> Message {
        let (mut content, mut reasoning) = (Vec::new(), String::new());
        for part in &self.parts {
            match part {
                Content::Thinking { text } => reasoning.push_str(text),
                Content::ToolCall { .. } => {}
                said => Content::push(&mut content, said.clone()),
            }
        }
        Message {
            content,
            reasoning: (!reasoning.is_empty()).then_some(reasoning),
            tool_calls: self.calls(),
            ..Message::text(Role::Assistant, "")
        }
    }

    /// True if it ended before the model's own end.
    pub(super) fn is_cut(&self) -> bool {
        use FinishReason::{Cancelled, Length};
        matches!(self.finish_reason(), None | Some(Cancelled | Length))
    }

    /// Notes that the person stopped its calls.
    pub(super) fn stopped(&mut self) {
        self.stopped = true;
    }

    /// Why it ended.
    pub(super) fn finish_reason(&self) -> Option<FinishReason> {
        match self.stopped {
            true => Some(FinishReason::Cancelled),
            false => self.done.as_ref().map(|done| done.finish_reason),
        }
    }

    /// The rule behind it.
    pub(super) fn ended_by(&self) -> Option<&EndedBy> {
        self.done.as_ref().map(|done| &done.ended_by)
    }
}
