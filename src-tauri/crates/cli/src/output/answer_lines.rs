use std::time::{Duration, Instant};

use protocol::{Content, EngineEvent, Notice};
use serde_json::{json, Value};

/// The time between two lines of progress. A load reports every tensor, which is thousands a second.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The JSON lines of an answer, from its events.
#[derive(Default)]
pub struct AnswerLines {
    tokens: Vec<u32>,
    model_revision: Option<String>,
    /// The thought was ended for the model.
    thinking_ended: bool,
    /// The time of the last line of progress.
    progress: Option<Instant>,
}

impl AnswerLines {
    /// The lines of an event that came `now`; none for events that the command line does not show. Progress is shown at
    /// most ten times a second, and when a stage is complete.
    pub fn lines(&mut self, event: &EngineEvent, now: Instant) -> Vec<Value> {
        match event {
            EngineEvent::Progress { stage, done, total } => {
                let soon = |last| now.duration_since(last) < PROGRESS_INTERVAL;
                if done < total && self.progress.is_some_and(soon) {
                    return Vec::new();
                }
                self.progress = Some(now);
                vec![json!({"type": "progress", "stage": stage, "done": done, "total": total})]
            }
            EngineEvent::Waiting { models } => vec![json!({"type": "waiting", "models": models})],
            EngineEvent::Started { model_revision, .. } => {
                self.model_revision = model_revision.clone();
                Vec::new()
            }
            EngineEvent::Continued { parts, notices, tokens } => {
                self.tokens.extend(tokens);
                let parts = parts.iter().filter_map(content_line);
                parts.chain(notices.iter().map(notice_line)).collect()
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
                    "stop": done.finish_reason,
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
        Content::Data { .. } | Content::Image { .. } | Content::File { .. } | Content::Passages { .. } => None,
    }
}

fn notice_line(notice: &Notice) -> Value {
    let mut line = json!({"type": "notice", "code": notice.code, "message": notice.message});
    if !notice.arguments.is_empty() {
        line["arguments"] = json!(notice.arguments);
    }
    line
}

#[cfg(test)]
mod tests {
    use protocol::Stage;

    use super::*;

    #[test]
    fn progress_is_told_ten_times_a_second_and_when_a_stage_is_complete() {
        let (mut answer, start) = (AnswerLines::default(), Instant::now());
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
