//! From a stored branch to the messages that a model is given.

use std::collections::HashMap;

use api::{AnswerState, StoredMessage};
use history::NOT_RUN;
use protocol::{Content, ErrorCode, Message, Role, ToolCall};

use crate::request::results::Results;

/// Replaces a tool result that did not fit the context.
const TOO_LONG: &str = "The result of this tool was too long for the context, so it was left out.";

/// The messages of a branch, instructions first.
///
/// An answer that says nothing (it failed or was stopped before its first word) is left out, and the questions around
/// it become one message, because most templates refuse two questions in a row. A question that did not fit the context
/// is left out together with its failed answer: otherwise no later question would fit either. Results of tools that did
/// not fit are replaced by words that say so, and others are given as `results` says. A call without a result, as chats
/// of earlier versions have them, gets one that says so, because most templates refuse it otherwise.
pub(crate) fn conversation(system_prompt: &str, branch: &[StoredMessage], results: Results) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    if !system_prompt.trim().is_empty() {
        messages.push(Message::text(Role::System, system_prompt));
    }
    // The calls of the last answer that have no result yet, and the tool of every call.
    let mut open: Vec<ToolCall> = Vec::new();
    let mut tools: HashMap<&str, &str> = HashMap::new();
    for (stored, too_long) in branch.iter().zip(too_long(branch)) {
        if says_nothing(stored) || (too_long && stored.role != Role::Tool) {
            continue;
        }
        if stored.role == Role::Tool {
            open.retain(|call| Some(&call.id) != stored.tool_call_id.as_ref());
        } else {
            let not_run = |call: ToolCall| result(&call.id, Some(&call.name), vec![Content::text(NOT_RUN)]);
            messages.extend(open.drain(..).map(not_run));
        }
        match (stored.role, messages.last_mut()) {
            (Role::User, Some(last)) if last.role == Role::User => {
                let gap = Content::text("\n\n");
                for content in [gap].into_iter().chain(said(stored)) {
                    Content::push(&mut last.content, content);
                }
            }
            (Role::Tool, _) => {
                let call = stored.tool_call_id.as_deref().unwrap_or_default();
                let content = match too_long {
                    true => vec![Content::text(TOO_LONG)],
                    false => results.given(said(stored)),
                };
                messages.push(result(call, tools.get(call).copied(), content));
            }
            (Role::System | Role::User | Role::Assistant, _) => {
                let message = message(stored);
                tools.extend(calls(stored).map(|call| (call.id.as_str(), call.name.as_str())));
                open.clone_from(&message.tool_calls);
                messages.push(message);
            }
        }
    }
    messages
}

/// Adds a question at the end; with one that stands there already it becomes one message.
pub(crate) fn add_question(messages: &mut Vec<Message>, question: &[Content]) {
    if question.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some(last) if last.role == Role::User => Content::push(&mut last.content, Content::text("\n\n")),
        _ => messages.push(Message {
            content: Vec::new(),
            ..Message::text(Role::User, "")
        }),
    }
    if let Some(last) = messages.last_mut() {
        question
            .iter()
            .cloned()
            .for_each(|part| Content::push(&mut last.content, part));
    }
}

/// Puts files before the first question, where they stay as the conversation goes on, so that they are read once.
pub(crate) fn put_before_questions(messages: &mut [Message], files: &[Content]) {
    if let Some(first) = messages.iter_mut().find(|message| message.role == Role::User) {
        first.content.splice(..0, files.iter().cloned());
    }
}

/// The calls of a message.
pub(crate) fn calls(stored: &StoredMessage) -> impl Iterator<Item = &ToolCall> {
    stored.parts.iter().filter_map(|part| match &part.content {
        Content::ToolCall { call } => Some(call),
        _ => None,
    })
}

/// The content of a message without reasoning and calls.
fn said(stored: &StoredMessage) -> impl Iterator<Item = Content> + '_ {
    let is_said = |content: &&Content| !matches!(content, Content::Thinking { .. } | Content::ToolCall { .. });
    stored.parts.iter().map(|part| &part.content).filter(is_said).cloned()
}

fn says_nothing(stored: &StoredMessage) -> bool {
    stored.role == Role::Assistant
        && !stored.parts.iter().any(|part| match &part.content {
            Content::Text { text } => !text.trim().is_empty(),
            Content::ToolCall { .. }
            | Content::Data { .. }
            | Content::Image { .. }
            | Content::File { .. }
            | Content::Passages { .. } => true,
            Content::Thinking { .. } => false,
        })
}

/// Of each message of a branch whether it was too long for the answer to it; results of tools are answered together.
fn too_long(branch: &[StoredMessage]) -> Vec<bool> {
    let (mut before_next, mut before_answer) = (false, false);
    let mut too_long = vec![false; branch.len()];
    for (stored, too_long) in branch.iter().zip(&mut too_long).rev() {
        *too_long = match stored.role {
            Role::Tool => before_answer,
            Role::System | Role::User | Role::Assistant => before_next,
        };
        before_next = did_not_fit(stored);
        if stored.role != Role::Tool {
            before_answer = before_next;
        }
    }
    too_long
}

fn did_not_fit(answer: &StoredMessage) -> bool {
    let full = answer
        .error
        .as_ref()
        .is_some_and(|error| error.code == ErrorCode::ContextFull);
    answer.state == AnswerState::Failed && full && says_nothing(answer)
}

/// A message whose texts are one, so that it is the same whether an answer came in one piece or in several around a
/// call.
fn message(stored: &StoredMessage) -> Message {
    let mut content = Vec::new();
    said(stored).for_each(|part| Content::push(&mut content, part));
    let mut reasoning = String::new();
    for part in &stored.parts {
        if let Content::Thinking { text } = &part.content {
            reasoning.push_str(text);
        }
    }
    Message {
        content,
        reasoning: (!reasoning.is_empty()).then_some(reasoning),
        tool_calls: calls(stored).cloned().collect(),
        ..Message::text(stored.role, "")
    }
}

/// The result of a call.
fn result(call: &str, tool: Option<&str>, content: Vec<Content>) -> Message {
    Message {
        content,
        name: tool.map(str::to_owned),
        tool_call_id: Some(call.to_owned()),
        ..Message::text(Role::Tool, "")
    }
}

#[cfg(test)]
mod tests {
    use api::Part;
    use protocol::Error;

    use super::*;

    fn conversation(system_prompt: &str, branch: &[StoredMessage]) -> Vec<Message> {
        let results = Results {
            most: usize::MAX,
            images: true,
        };
        super::conversation(system_prompt, branch, results)
    }

    fn stored(role: Role, state: AnswerState, parts: Vec<Content>) -> StoredMessage {
        let parts = parts.into_iter().map(|content| Part {
            content,
            started_at: 0,
            ended_at: 0,
        });
        StoredMessage {
            state,
            parts: parts.collect(),
            ..StoredMessage::new(role)
        }
    }

    fn question(words: &str) -> StoredMessage {
        stored(Role::User, AnswerState::Complete, vec![Content::text(words)])
    }

    fn said(messages: &[Message]) -> Vec<(Role, String)> {
        messages
            .iter()
            .map(|message| (message.role, message.text_with_placeholders()))
            .collect()
    }

    #[test]
    fn instructions_come_first_and_reasoning_stays_apart() {
        let thought = Content::thinking("hm");
        let branch = [
            question("a"),
            stored(Role::Assistant, AnswerState::Stopped, vec![thought, Content::text("b")]),
            question("c"),
        ];
        let messages = conversation("Be brief.", &branch);
        let expected = [
            (Role::System, "Be brief.".into()),
            (Role::User, "a".into()),
            (Role::Assistant, "b".into()),
            (Role::User, "c".into()),
        ];
        assert_eq!(said(&messages), expected);
        assert_eq!(messages[2].reasoning.as_deref(), Some("hm"));
        assert_eq!(said(&conversation(" ", &branch[..1])), [(Role::User, "a".into())]);
    }

    #[test]
    fn an_answer_without_words_is_left_out_and_its_question_stays() {
        let thought = Content::thinking("hm");
        let branch = [
            question("My name is Yara."),
            stored(Role::Assistant, AnswerState::Stopped, vec![thought]),
            question("What is it?"),
        ];
        assert_eq!(
            said(&conversation("", &branch)),
            [(Role::User, "My name is Yara.\n\nWhat is it?".into())]
        );
    }

    #[test]
    fn two_hundred_thousand_results_are_read_in_one_pass() {
        let results = (0..200_000).map(|_| stored(Role::Tool, AnswerState::Complete, vec![Content::text("4 degrees")]));
        let mut branch: Vec<StoredMessage> = results.collect();
        branch.insert(0, question("a"));
        let begun = std::time::Instant::now();
        assert_eq!(conversation("", &branch).len(), 200_001);
        let took = begun.elapsed();
        println!("report: 200 000 results were read in {took:?}");
        // A pass for each would take many minutes.
        assert!(took < std::time::Duration::from_secs(120), "{took:?}");
    }

    #[test]
    fn a_question_that_did_not_fit_is_left_out() {
        let mut failed = stored(Role::Assistant, AnswerState::Failed, vec![]);
        failed.error = Some(Error::new(ErrorCode::ContextFull, "too long"));
        let branch = [
            question("a"),
            stored(Role::Assistant, AnswerState::Complete, vec![Content::text("b")]),
            question("a whole book"),
            failed,
            question("c"),
        ];
        assert_eq!(
            said(&conversation("", &branch)),
            [
                (Role::User, "a".into()),
                (Role::Assistant, "b".into()),
                (Role::User, "c".into())
            ]
        );
    }

    #[test]
    fn the_words_of_a_failed_answer_are_kept() {
        let mut failed = stored(Role::Assistant, AnswerState::Failed, vec![Content::text("The first")]);
        failed.error = Some(Error::new(ErrorCode::ContextFull, "full"));
        let messages = conversation("", &[question("a"), failed, question("go on")]);
        assert_eq!(
            said(&messages),
            [
                (Role::User, "a".into()),
                (Role::Assistant, "The first".into()),
                (Role::User, "go on".into())
            ]
        );
    }

    fn call(id: &str) -> Content {
        Content::ToolCall {
            call: ToolCall {
                id: id.into(),
                name: format!("tool_{id}"),
                arguments: serde_json::json!({}),
            },
        }
    }

    fn tool(id: &str, words: &str) -> StoredMessage {
        StoredMessage {
            tool_call_id: Some(id.into()),
            ..stored(Role::Tool, AnswerState::Complete, vec![Content::text(words)])
        }
    }

    #[test]
    fn a_turn_with_tools_is_one_message_for_each_generation_and_result() {
        let calls = stored(
            Role::Assistant,
            AnswerState::Complete,
            vec![Content::text("I look."), call("a"), call("b")],
        );
        let end = stored(Role::Assistant, AnswerState::Complete, vec![Content::text("Warm.")]);
        let messages = conversation("", &[question("q"), calls, tool("b", "2"), tool("a", "1"), end]);
        let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
        assert_eq!(
            roles,
            [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Assistant]
        );
        let results: Vec<_> = messages[2..4]
            .iter()
            .map(|message| {
                (
                    message.tool_call_id.as_deref(),
                    message.name.as_deref(),
                    message.text_with_placeholders(),
                )
            })
            .collect();
        assert_eq!(
            results,
            [
                (Some("b"), Some("tool_b"), "2".into()),
                (Some("a"), Some("tool_a"), "1".into())
            ]
        );
    }

    #[test]
    fn results_that_did_not_fit_are_replaced_by_words() {
        let calls = stored(Role::Assistant, AnswerState::Complete, vec![call("a"), call("b")]);
        let mut failed = stored(Role::Assistant, AnswerState::Failed, vec![]);
        failed.error = Some(Error::new(ErrorCode::ContextFull, "too long"));
        let branch = [
            question("q"),
            calls,
            tool("a", "a whole book"),
            tool("b", "1"),
            failed,
            question("next"),
        ];
        let messages = said(&conversation("", &branch));
        let expected = [
            (Role::User, "q".into()),
            (Role::Assistant, String::new()),
            (Role::Tool, TOO_LONG.into()),
            (Role::Tool, TOO_LONG.into()),
            (Role::User, "next".into()),
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn a_call_of_earlier_versions_without_a_result_gets_one() {
        let calls = stored(Role::Assistant, AnswerState::Complete, vec![call("a"), call("b")]);
        let branch = [question("q"), calls, tool("a", "1"), question("next")];
        let messages = conversation("", &branch);
        assert_eq!(messages.len(), 5);
        assert_eq!(
            (
                messages[3].tool_call_id.as_deref(),
                messages[3].text_with_placeholders().as_str()
            ),
            (Some("b"), NOT_RUN)
        );
        // At the end of what is known the result may still come.
        assert_eq!(conversation("", &branch[..3]).len(), 3);
    }

    #[test]
    fn an_image_in_a_question_reaches_the_request() {
        let image = Content::Image {
            attachment: "1".into(),
            media_type: "image/png".into(),
            width: 2,
            height: 2,
            alt: "a cat".into(),
        };
        let asked = stored(
            Role::User,
            AnswerState::Complete,
            vec![image.clone(), Content::text("What is it?")],
        );
        let messages = conversation("", &[question("Look."), asked]);
        assert_eq!(
            messages[0].content,
            [Content::text("Look.\n\n"), image, Content::text("What is it?")]
        );
    }
}
