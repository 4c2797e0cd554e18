//! What the command prints, for people and as JSON lines.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use protocol::{Content, EngineEvent, FinishReason, Notice, Stage};
use serde_json::{json, Value};

/// Prints a failure and gives the exit code.
pub fn fail(error: &anyhow::Error, json: bool) -> ExitCode {
    let code = error
        .downcast_ref::<protocol::Error>()
        .map_or(json!("failed"), |error| json!(error.code));
    let message = words(error);
    if json {
        // A closed pipe leaves nobody to tell.
        let _ = line(&json!({"type": "error", "code": code, "message": message}));
    }
    eprintln!("ponder: {}", message.replace('\n', " "));
    ExitCode::FAILURE
}

/// An error and what caused it as one sentence. What the system says about files is said in words, without its numbers.
pub fn words(error: &anyhow::Error) -> String {
    let causes = error.chain().map(|cause| match cause.downcast_ref::<io::Error>() {
        Some(cause) => of_system(cause),
        None => without_numbers(&cause.to_string()),
    });
    causes.collect::<Vec<_>>().join(": ")
}

fn of_system(error: &io::Error) -> String {
    let sentence = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file",
        io::ErrorKind::PermissionDenied => "this is not allowed to you",
        io::ErrorKind::IsADirectory => "it is a folder",
        io::ErrorKind::NotADirectory => "a part of its path is no folder",
        io::ErrorKind::StorageFull => "the disk is full",
        io::ErrorKind::InvalidData if error.get_ref().is_none() => "it is no text",
        _ => return without_numbers(&error.to_string()),
    };
    sentence.to_owned()
}

/// The text without ` (os error 2)` after the system's words.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |said, part| {
        said + part.split_once(')').map_or(part, |(_, after)| after)
    })
}

/// Says what keeps nothing from going on.
pub fn warn(message: &str) {
    eprintln!("ponder: {message}");
}

/// Prints one JSON object as a line, at once.
///
/// # Errors
/// When standard output is closed.
pub fn line(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()
}

/// Prints text without a line end, at once.
///
/// # Errors
/// When standard output is closed.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The time between two lines of progress. A load reports every tensor, which is thousands a second.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// What an answer's JSON lines tell of it as a whole.
#[derive(Default)]
pub struct Answer {
    tokens: Vec<u32>,
    model_revision: Option<String>,
    /// Whether the thought was ended for the model.
    thinking_ended: bool,
    /// When progress was printed last.
    progress: Option<Instant>,
}

impl Answer {
    /// The JSON lines of an event that came `now`; none for events that the command line does not show. Progress is shown at
    /// most ten times a second, and when a stage is complete.
    pub fn lines(&mut self, event: &EngineEvent, now: Instant) -> Vec<Value> {
        match event {
            EngineEvent::Progress { stage, done, total } => {
                if done < total
                    && self
                        .progress
                        .is_some_and(|last| now.duration_since(last) < PROGRESS_INTERVAL)
                {
                    return Vec::new();
                }
                self.progress = Some(now);
                let stage = match stage {
                    Stage::Load => "load",
                    Stage::Kernels => "kernels",
                    Stage::EncodeImages => "encode_images",
                    Stage::Prefill => "prefill",
                };
                vec![json!({"type": "progress", "stage": stage, "done": done, "total": total})]
            }
            EngineEvent::Waiting { models } => vec![json!({"type": "waiting", "models": models})],
            EngineEvent::Started { model_revision, .. } => {
                self.model_revision = model_revision.clone();
                Vec::new()
            }
            EngineEvent::Continued { parts, notices, tokens } => {
                self.tokens.extend(tokens);
                parts
                    .iter()
                    .filter_map(content_line)
                    .chain(notices.iter().map(notice_line))
                    .collect()
            }
            EngineEvent::Delta { content, tokens, .. } => {
                self.tokens.extend(tokens);
                content_line(content).into_iter().collect()
            }
            EngineEvent::Notice(notice) => vec![notice_line(notice)],
            EngineEvent::Done(done) => {
                self.tokens.extend(&done.tokens);
                let mut line = json!({
                    "type": "done",
                    "stop": stop_word(done.finish_reason),
                    "ended_by": done.ended_by,
                    "usage": done.usage,
                    "timing": done.timing,
                    "model_revision": self.model_revision,
                    "tokens": self.tokens,
                });
                // `--continue` needs it: another thought of the answer is then not shown.
                if self.thinking_ended {
                    line["thinking_ended"] = true.into();
                }
                vec![line]
            }
            EngineEvent::ThinkingEnded => {
                self.thinking_ended = true;
                Vec::new()
            }
            EngineEvent::Logprobs(_) | EngineEvent::Failed(_) => Vec::new(),
        }
    }
}

/// The line of a piece of an answer; `None` for what no model writes.
fn content_line(content: &Content) -> Option<Value> {
    match content {
        Content::Thinking { text } => Some(json!({"type": "thinking", "text": text})),
        Content::Text { text } => Some(json!({"type": "text", "text": text})),
        Content::ToolCall { call } => {
            Some(json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}))
        }
        Content::Data { .. } | Content::Image { .. } | Content::File { .. } => None,
    }
}

fn notice_line(notice: &Notice) -> Value {
    let mut line = json!({"type": "notice", "code": notice.code, "message": notice.message});
    if !notice.arguments.is_empty() {
        line["arguments"] = json!(notice.arguments);
    }
    line
}

fn stop_word(stop: FinishReason) -> &'static str {
    match stop {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Cancelled => "cancelled",
    }
}

/// Whether answers may be coloured.
pub fn is_terminal() -> bool {
    use std::io::IsTerminal;
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The text in the soft colour of thoughts and side remarks, if the terminal has colours.
pub fn soft(text: &str) -> String {
    if is_terminal() {
        format!("\x1b[2m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_ten_times_a_second_and_when_a_stage_is_complete() {
        let (mut answer, start) = (Answer::default(), Instant::now());
        // A tensor each millisecond for a second, then a prompt of three chunks.
        let load = (1..=1000).map(|done| (Stage::Load, done, 1000));
        let prefill = (1..=3).map(|done| (Stage::Prefill, done, 3));
        let lines: Vec<Value> = load
            .chain(prefill)
            .enumerate()
            .flat_map(|(millisecond, (stage, done, total))| {
                answer.lines(
                    &EngineEvent::Progress { stage, done, total },
                    start + Duration::from_millis(millisecond as u64),
                )
            })
            .collect();
        let told: Vec<(&str, u64)> = lines
            .iter()
            .filter_map(|line| Some((line["stage"].as_str()?, line["done"].as_u64()?)))
            .collect();
        let load = [1, 101, 201, 301, 401, 501, 601, 701, 801, 901, 1000].map(|done| ("load", done));
        assert_eq!(told, [load.as_slice(), &[("prefill", 3)]].concat());
    }
}
