//! Normalizes a client's conversation for chat templates: instructions first, tool results in the order of their calls.

use std::collections::HashMap;

use protocol::{Content, Message, Role};

use crate::http::error_body::Refusal;
use crate::http::ids::engine_call_id;

/// The separator of joined texts.
const APART: &str = "\n\n";

/// The maximum number of messages. Templates go through all of them several times, on the engine's own thread.
const MOST_MESSAGES: usize = 10_000;

/// Refuses a conversation of too many messages, in the field `name`.
pub(crate) fn check_count(name: &str, messages: &[Message]) -> Result<(), Refusal> {
    let count = messages.len();
    if count <= MOST_MESSAGES {
        return Ok(());
    }
    let reason = format!("this conversation has {count} messages, and at most {MOST_MESSAGES} are read; send fewer");
    Err(Refusal::field(name, reason))
}

/// The conversation as templates accept it. Leading instructions become one system message; later ones join the
/// neighboring user message in place, because moving them to the front would change the start of the prompt, which is
/// cached. Tool results are sorted by their calls and get the tool's name.
pub(crate) fn normalise(messages: Vec<Message>) -> Vec<Message> {
    let mut conversation: Vec<Message> = Vec::with_capacity(messages.len());
    // Instructions before the next user message.
    let mut waiting: Vec<Content> = Vec::new();
    for mut message in messages {
        use_engine_ids(&mut message);
        match (message.role, conversation.last_mut()) {
            (Role::System, None) => conversation.push(message),
            (Role::System, Some(last))
                if last.role == Role::System || (last.role == Role::User && waiting.is_empty()) =>
            {
                join(&mut last.content, message.content);
            }
            (Role::System, Some(_)) => join(&mut waiting, message.content),
            (Role::User, _) => {
                let mut content = std::mem::take(&mut waiting);
                join(&mut content, message.content);
                conversation.push(Message { content, ..message });
            }
            (Role::Assistant | Role::Tool, _) => {
                flush(&mut conversation, &mut waiting);
                if message.role == Role::Tool || !is_empty(&message) {
                    conversation.push(message);
                }
            }
        }
    }
    flush(&mut conversation, &mut waiting);
    order_results(&mut conversation);
    conversation
}

/// True if consecutive messages of one role can be merged.
pub(crate) fn has_neighbours(messages: &[Message]) -> bool {
    messages.windows(2).any(|pair| {
        let (last, message) = (&pair[0], &pair[1]);
        let calls = last.role == Role::Assistant && !last.tool_calls.is_empty();
        last.role == message.role && matches!(last.role, Role::User | Role::Assistant) && !calls
    })
}

/// The conversation with consecutive messages of one role merged, for templates that require alternating roles; `None`
/// if there are none.
pub(crate) fn merge_neighbours(messages: &[Message]) -> Option<Vec<Message>> {
    let mut merged: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match merged.last_mut() {
            Some(last) if last.role == message.role && message.role == Role::User => {
                join(&mut last.content, message.content.clone())
            }
            Some(last)
                if last.role == message.role && message.role == Role::Assistant && last.tool_calls.is_empty() =>
            {
                join(&mut last.content, message.content.clone());
                last.tool_calls.clone_from(&message.tool_calls);
                last.reasoning = last.reasoning.take().or_else(|| message.reasoning.clone());
            }
            _ => merged.push(message.clone()),
        }
    }
    (merged.len() < messages.len()).then_some(merged)
}

/// A message of these parts.
pub(crate) fn message(role: Role, content: Vec<Content>) -> Message {
    Message {
        content,
        ..Message::text(role, "")
    }
}

/// Parts of a message as one text, each on a line of its own.
pub(crate) fn lines<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut all = String::new();
    for text in texts {
        let text = text.as_ref();
        if text.is_empty() {
            continue;
        }
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(text);
    }
    all
}

/// Moves these texts to the parts, each on a line of its own.
pub(crate) fn flush_texts<T: AsRef<str>>(content: &mut Vec<Content>, texts: &mut Vec<T>) {
    let text = lines(texts.drain(..));
    if !text.is_empty() {
        content.push(Content::text(text));
    }
}

fn use_engine_ids(message: &mut Message) {
    for call in &mut message.tool_calls {
        call.id = engine_call_id(&call.id).to_owned();
    }
    if let Some(id) = &mut message.tool_call_id {
        *id = engine_call_id(id).to_owned();
    }
}

fn is_empty(message: &Message) -> bool {
    message.content.is_empty() && message.tool_calls.is_empty() && message.reasoning.is_none()
}

/// Adds parts after others, with a blank line between.
pub(crate) fn join(content: &mut Vec<Content>, more: Vec<Content>) {
    if !content.is_empty() && !more.is_empty() {
        Content::push(content, Content::text(APART));
    }
    more.into_iter().for_each(|part| Content::push(content, part));
}

/// Turns instructions without a following user message into one of their own.
fn flush(conversation: &mut Vec<Message>, waiting: &mut Vec<Content>) {
    if !waiting.is_empty() {
        conversation.push(message(Role::User, std::mem::take(waiting)));
    }
}

fn order_results(conversation: &mut [Message]) {
    let mut calls: HashMap<String, (usize, String)> = HashMap::new();
    let mut at = 0;
    while at < conversation.len() {
        if conversation[at].role != Role::Tool {
            let new = conversation[at].tool_calls.iter().enumerate();
            calls.extend(new.map(|(place, call)| (call.id.clone(), (place, call.name.clone()))));
            at += 1;
            continue;
        }
        let results = conversation[at..]
            .iter()
            .take_while(|message| message.role == Role::Tool);
        let results = results.count();
        let run = &mut conversation[at..at + results];
        let call = |message: &Message| message.tool_call_id.as_ref().and_then(|id| calls.get(id));
        for message in run.iter_mut() {
            let called = call(message).map(|(_, name)| name.clone());
            message.name = message.name.take().or(called);
        }
        run.sort_by_key(|message| call(message).map_or(usize::MAX, |(place, _)| *place));
        at += results;
    }
}

#[cfg(test)]
mod tests {
    use protocol::ToolCall;
    use serde_json::json;

    use super::*;

    fn calls(ids: &[&str]) -> Message {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: format!("tool_{id}"),
            arguments: json!({}),
        };
        Message {
            content: Vec::new(),
            tool_calls: ids.iter().map(call).collect(),
            ..Message::text(Role::Assistant, "")
        }
    }

    fn result(id: &str) -> Message {
        Message {
            tool_call_id: Some(id.into()),
            ..Message::text(Role::Tool, format!("result {id}"))
        }
    }

    fn said(messages: Vec<Message>) -> Vec<(Role, String)> {
        let text = |message: &Message| (message.role, message.text_with_placeholders());
        normalise(messages).iter().map(text).collect()
    }

    fn text(role: Role, text: &str) -> Message {
        Message::text(role, text)
    }

    #[test]
    fn leading_instructions_are_one_and_later_ones_join_the_question_beside_them() {
        use Role::{Assistant, System, User};
        // Codex: two instructions first. Claude Code: one after the question. pydantic-ai: one before the second question.
        let conversation = vec![
            text(System, "a"),
            text(System, "b"),
            text(User, "q"),
            text(System, "c"),
            text(Assistant, "r"),
            text(System, "d"),
            text(User, "s"),
        ];
        let expected: Vec<(Role, String)> = [(System, "a\n\nb"), (User, "q\n\nc"), (Assistant, "r"), (User, "d\n\ns")]
            .map(|(role, text)| (role, text.into()))
            .into();
        assert_eq!(said(conversation), expected);
    }

    #[test]
    fn instructions_without_a_question_are_one() {
        use Role::{Assistant, System, User};
        let conversation = vec![
            text(User, "q"),
            calls(&["1"]),
            result("1"),
            text(System, "now"),
            text(Assistant, "r"),
            text(System, "e"),
        ];
        let roles: Vec<Role> = said(conversation).into_iter().map(|(role, _)| role).collect();
        assert_eq!(roles, [User, Assistant, Role::Tool, User, Assistant, User]);
    }

    #[test]
    fn results_stand_in_the_order_of_the_calls_and_know_their_names() {
        let messages = normalise(vec![
            text(Role::User, "q"),
            calls(&["call_aaaaaaaaa", "toolu_bbbbbbbbb", "call_2"]),
            result("call_2"),
            result("lost"),
            result("toolu_bbbbbbbbb"),
            result("call_aaaaaaaaa"),
        ]);
        let ids: Vec<_> = messages[2..]
            .iter()
            .map(|message| message.tool_call_id.as_deref().unwrap())
            .collect();
        assert_eq!(ids, ["aaaaaaaaa", "bbbbbbbbb", "call_2", "lost"]);
        assert_eq!(messages[1].tool_calls[0].id, "aaaaaaaaa");
        let names: Vec<_> = messages[2..].iter().map(|message| message.name.as_deref()).collect();
        assert_eq!(
            names,
            [
                Some("tool_call_aaaaaaaaa"),
                Some("tool_toolu_bbbbbbbbb"),
                Some("tool_call_2"),
                None
            ]
        );
    }

    #[test]
    fn neighbours_of_one_role_are_merged_if_there_are_any() {
        let title = [text(Role::System, "s"), text(Role::User, "a"), text(Role::User, "b")];
        let merged = merge_neighbours(&title).unwrap();
        assert_eq!(
            (merged.len(), merged[1].text_with_placeholders().as_str()),
            (2, "a\n\nb")
        );
        assert_eq!(merge_neighbours(&merged), None);
        assert!(has_neighbours(&title) && !has_neighbours(&merged));
        let (called, answered) = (calls(&["1"]), text(Role::Assistant, "a"));
        for pair in [
            [called.clone(), answered.clone()],
            [answered.clone(), called],
            [answered.clone(), answered],
        ] {
            assert_eq!(has_neighbours(&pair), merge_neighbours(&pair).is_some(), "{pair:?}");
        }
    }

    #[test]
    fn a_conversation_has_an_end() {
        let messages = vec![text(Role::User, "q"); MOST_MESSAGES + 1];
        assert_eq!(check_count("messages", &messages[1..]), Ok(()));
        let refusal = check_count("messages", &messages).unwrap_err();
        assert_eq!(refusal.param.as_deref(), Some("messages"));
        assert!(refusal.message.contains("10001 messages") && refusal.message.contains("at most 10000"));
    }

    #[test]
    fn an_empty_answer_is_none_and_parts_are_lines() {
        let empty = Message {
            content: Vec::new(),
            ..Message::text(Role::Assistant, "")
        };
        assert_eq!(said(vec![text(Role::User, "q"), empty, text(Role::User, "r")]).len(), 2);
        assert_eq!(lines(["a\n", "", "b", "c"]), "a\nb\nc");
    }
}
