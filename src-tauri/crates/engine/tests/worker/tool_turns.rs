//! A turn of five calls reads no prompt twice: each step reads the last call and its result alone.

use engine::MlxEngine;
use protocol::{Content, Engine, Message, Request, Role, Sampling, Thinking};
use serde_json::json;

use crate::common::{hear, pebble};

/// Tokens that a template may write between a call and the next one beside the result: markers of roles.
const MARKS: u32 = 12;

fn calculator() -> serde_json::Value {
    json!({ "type": "function", "function": {
        "name": "calculate",
        "description": "Computes an expression exactly.",
        "parameters": { "type": "object", "properties": { "expression": { "type": "string" } }, "required": ["expression"] }
    } })
}

#[tokio::test]
async fn a_turn_of_five_calls_reads_only_what_is_new() {
    let engine = MlxEngine::start();
    let mut messages = vec![Message::text(Role::User, "What is 347 * 89? Use the tool.")];
    let mut before = None::<u32>;
    let (mut read, mut all) = (0, 0);
    for round in 0..5 {
        let request = Request {
            thinking: Some(Thinking::Off),
            sampling: Sampling::greedy(),
            tools: vec![calculator()],
            call_required: true,
            ..Request::new(pebble(), messages.clone())
        };
        let heard = hear(engine.generate(request)).await;
        let usage = heard.done().usage.unwrap();
        let [call] = &heard.calls[..] else {
            panic!("round {round}: one call was expected: {heard:?}")
        };
        println!(
            "round {round}: prompt {}, read {}, wrote {}",
            usage.prompt_tokens, usage.prefilled_tokens, usage.completion_tokens
        );
        if let Some(prompt) = before {
            // The call and its result. A template may write the call otherwise than the model did.
            let new = usage.prompt_tokens.saturating_sub(prompt) + MARKS;
            assert!(usage.prefilled_tokens <= new, "round {round}: {usage:?}, new: {new}");
        }
        before = Some(usage.prompt_tokens);
        (read, all) = (read + usage.prefilled_tokens, all + usage.prompt_tokens);
        messages.push(Message {
            tool_calls: vec![call.clone()],
            ..Message::text(Role::Assistant, heard.text.clone())
        });
        messages.push(Message {
            content: vec![Content::text(format!("result {round}: {}", 30_883 + round))],
            name: Some("calculate".into()),
            tool_call_id: Some(call.id.clone()),
            ..Message::text(Role::Tool, "")
        });
    }
    println!("report: a turn of five calls reads {read} of {all} tokens");
}
