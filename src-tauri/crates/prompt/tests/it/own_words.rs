//! The text that templates of real models write for a turn with a thought and a tool call, read back by the parser that
//! the template leads to. `PONDER_TEMPLATES` names the folder.

use std::path::Path;

use crate::common::templates::{spelled, templates};
use prompt::{ChatProcessor, Piece, RenderRequest};
use protocol::{Message, Role, Thinking, ToolCall};
use serde_json::{json, Value};

const THOUGHT: &str = "Zyzzyva looks up.";

/// Templates whose text is not read back. In a turn that is over, Apriel's leaves the opening words out that its prompt
/// ends with; the call of Qwen 1.5's is no JSON, that of xinference's DeepSeek is Python's.
const NOT_READ: [&str; 3] = [
    "Apriel-1.6-15b-Thinker-fixed: thought",
    "deepseek-v3: call",
    "qwen1.5-chat: call",
];

fn tools() -> Vec<Value> {
    let properties = json!({"city": {"type": "string"}, "days": {"type": "integer"}});
    let parameters = json!({"type": "object", "properties": properties, "required": ["city"]});
    vec![
        json!({"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": parameters}}),
    ]
}

fn arguments() -> Value {
    json!({"city": "Oslo", "days": 3})
}

/// The reading of an answer that the template wrote.
#[derive(Default)]
struct Read {
    /// True if the template writes calls, and the thoughts of its last answer.
    writes: (bool, bool),
    call: bool,
    thought: bool,
    text: String,
}

fn read(processor: &ChatProcessor) -> Option<Read> {
    let question = Message::text(Role::User, "How is it in Oslo?");
    let mut answer = Message::text(Role::Assistant, "");
    answer.reasoning = Some(THOUGHT.into());
    answer.tool_calls = vec![ToolCall {
        // As Kimi's models name them; the others' templates take any.
        id: "functions.get_weather:0".into(),
        name: "get_weather".into(),
        arguments: arguments(),
    }];
    let tools = tools();
    let request = |messages: &[Message], add_generation_prompt| {
        let request = RenderRequest {
            messages,
            tools: &tools,
            thinking: Some(Thinking::On),
            add_generation_prompt,
            images: &[],
        };
        processor.prompt(&request).ok()
    };
    let asked = request(std::slice::from_ref(&question), true)?;
    let whole = request(&[question, answer], false)?;
    // A template may write the thought's opening both before the answer and in it, or only in one of the two.
    let common = asked.ids.iter().zip(&whole.ids).take_while(|(a, b)| a == b).count();
    let written = processor.decode(&whole.ids[common..]).ok()?;
    let mut prompt = asked;
    prompt.ids.truncate(common);
    prompt.text = processor.decode(&prompt.ids).ok()?;
    let mut parser = processor.parser(&prompt, true, &[]).with_tools(&tools);
    let mut pieces: Vec<Piece> = whole.ids[common..].iter().flat_map(|id| parser.push(*id)).collect();
    pieces.extend(parser.finish());
    let mut read = Read {
        writes: (written.contains("Oslo"), written.contains(THOUGHT)),
        ..Read::default()
    };
    let mut thought = String::new();
    for piece in pieces {
        match piece {
            Piece::ToolCall { name, arguments: found } => read.call |= name == "get_weather" && found == arguments(),
            Piece::Thinking(text) => thought.push_str(&text),
            Piece::Text(text) => read.text.push_str(&text),
            Piece::Notice(_) => {}
        }
    }
    read.thought = thought.trim() == THOUGHT;
    Some(read)
}

#[test]
fn what_templates_write_is_read() {
    let Some(folder) = std::env::var_os("PONDER_TEMPLATES") else {
        println!("skipped: PONDER_TEMPLATES names no folder of templates; `./dev test` does");
        return;
    };
    let (mut calls, mut thoughts, mut missed) = ((0, 0), (0, 0), Vec::new());
    for path in templates(Path::new(&folder)) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        let (processor, _) = crate::common::byte_speaker(&spelled(&source), &source);
        let Some(read) = read(&processor) else { continue };
        if read.writes.0 {
            calls = (calls.0 + u32::from(read.call), calls.1 + 1);
            if !read.call {
                missed.push((format!("{name}: call"), read.text.clone()));
            }
        }
        if read.writes.1 {
            thoughts = (thoughts.0 + u32::from(read.thought), thoughts.1 + 1);
            if !read.thought {
                missed.push((format!("{name}: thought"), read.text));
            }
        }
    }
    println!(
        "report: templates that write calls: {}, read: {}; that write thoughts: {}, read: {}",
        calls.1, calls.0, thoughts.1, thoughts.0
    );
    missed.sort();
    assert_eq!(
        missed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        NOT_READ,
        "{missed:#?}"
    );
}
