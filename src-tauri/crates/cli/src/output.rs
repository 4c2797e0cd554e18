//! What the command prints, for people and as JSON lines.

use std::io::{self, Write};
use std::process::ExitCode;

use protocol::{Channel, EngineEvent, Stage, Stop};
use serde_json::{json, Value};

/// Prints a failure and gives the exit code.
pub fn fail(error: &anyhow::Error, json: bool) -> ExitCode {
    let code = error
        .downcast_ref::<protocol::Error>()
        .map_or(json!("failed"), |error| json!(error.code));
    let message = format!("{error:#}");
    if json {
        // A closed pipe leaves nobody to tell.
        let _ = line(&json!({"type": "error", "code": code, "message": message}));
    }
    eprintln!("ponder: {}", message.replace('\n', " "));
    ExitCode::FAILURE
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

/// The JSON line of an engine event; `None` for events that the command line does not show.
pub fn event_json(event: &EngineEvent) -> Option<Value> {
    Some(match event {
        EngineEvent::Progress { stage, done, total } => {
            let stage = match stage {
                Stage::Load => "load",
                Stage::Prefill => "prefill",
            };
            json!({"type": "progress", "stage": stage, "done": done, "total": total})
        }
        EngineEvent::Delta {
            channel: Channel::Thinking,
            text,
            ..
        } => json!({"type": "thinking", "text": text}),
        EngineEvent::Delta {
            channel: Channel::Text,
            text,
            ..
        } => json!({"type": "text", "text": text}),
        EngineEvent::ToolCall { call, .. } => json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}),
        EngineEvent::Notice(notice) => json!({"type": "notice", "code": notice.code, "message": notice.message}),
        EngineEvent::Done(done) => {
            json!({"type": "done", "stop": stop_word(done.stop), "ended_by": done.ended_by, "usage": done.usage, "timing": done.timing})
        }
        EngineEvent::Started { .. } | EngineEvent::Resumed { .. } | EngineEvent::Failed(_) => return None,
    })
}

fn stop_word(stop: Stop) -> &'static str {
    match stop {
        Stop::Stop => "stop",
        Stop::Length => "length",
        Stop::ToolCalls => "tool_calls",
        Stop::Cancelled => "cancelled",
    }
}

/// Whether answers may be coloured.
pub fn is_terminal() -> bool {
    use std::io::IsTerminal;
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The text in the soft colour of thoughts and side remarks, where the terminal has colours.
pub fn soft(text: &str) -> String {
    if is_terminal() {
        format!("\x1b[2m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
