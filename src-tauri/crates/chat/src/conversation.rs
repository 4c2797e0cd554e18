//! From a stored branch to the messages that a model is given.

use protocol::{AnswerState, Content, ErrorCode, Message, PartKind, Role, StoredMessage};

/// The messages of a branch, instructions first.
///
/// An answer that says nothing (it failed or was stopped before its first word) is left out, and the questions around it
/// become one message, because most templates refuse two questions in a row. A question that did not fit the context is
/// left out together with its failed answer: otherwise no later question would fit either.
pub(crate) fn conversation(system_prompt: &str, branch: &[StoredMessage]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    if !system_prompt.trim().is_empty() {
        messages.push(Message::text(Role::System, system_prompt));
    }
    for (index, stored) in branch.iter().enumerate() {
        if says_nothing(stored) || branch.get(index + 1).is_some_and(did_not_fit) {
            continue;
        }
        match messages.last_mut() {
            Some(last) if last.role == Role::User && stored.role == Role::User => {
                last.content = vec![Content::Text {
                    text: format!("{}\n\n{}", last.plain_text(), stored.text()),
                }];
            }
            _ => messages.push(message(stored)),
        }
    }
    messages
}

fn says_nothing(stored: &StoredMessage) -> bool {
    stored.role == Role::Assistant
        && !stored.parts.iter().any(|part| match &part.kind {
            PartKind::Text { text } => !text.trim().is_empty(),
            PartKind::ToolCall { .. } => true,
            PartKind::Thinking { .. } => false,
        })
}

fn did_not_fit(answer: &StoredMessage) -> bool {
    let full = answer.error.as_ref().is_some_and(|error| error.code == ErrorCode::ContextFull);
    answer.state == AnswerState::Failed && full && says_nothing(answer)
}

fn message(stored: &StoredMessage) -> Message {
    let mut message = Message::text(stored.role, stored.text());
    let mut reasoning = String::new();
    for part in &stored.parts {
        match &part.kind {
            PartKind::Thinking { text } => reasoning.push_str(text),
            PartKind::ToolCall { call } => message.tool_calls.push(call.clone()),
            PartKind::Text { .. } => {}
        }
    }
    message.reasoning = (!reasoning.is_empty()).then_some(reasoning);
    message
}

#[cfg(test)]
mod tests {
    use protocol::{Error, Part};

    use super::*;

    fn stored(role: Role, state: AnswerState, parts: Vec<PartKind>) -> StoredMessage {
        StoredMessage {
            id: String::new(),
            chat: String::new(),
            parent: None,
            role,
            state,
            parts: parts
                .into_iter()
                .map(|kind| Part {
                    kind,
                    started_at: 0,
                    ended_at: 0,
                })
                .collect(),
            siblings: vec![],
            created_at: 0,
            finished_at: None,
            model: None,
            model_revision: None,
            template_hash: None,
            settings: None,
            thinking_ended: false,
            thinking_tokens: None,
            finish_reason: None,
            ended_by: None,
            error: None,
            notices: vec![],
            usage: None,
            timing: None,
            continuable: false,
        }
    }

    fn text(text: &str) -> PartKind {
        PartKind::Text { text: text.into() }
    }

    fn question(words: &str) -> StoredMessage {
        stored(Role::User, AnswerState::Complete, vec![text(words)])
    }

    fn said(messages: &[Message]) -> Vec<(Role, String)> {
        messages.iter().map(|message| (message.role, message.plain_text())).collect()
    }

    #[test]
    fn instructions_come_first_and_reasoning_stays_apart() {
        let thought = PartKind::Thinking { text: "hm".into() };
        let branch = [
            question("a"),
            stored(Role::Assistant, AnswerState::Stopped, vec![thought, text("b")]),
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
        let thought = PartKind::Thinking { text: "hm".into() };
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
    fn a_question_that_did_not_fit_is_left_out() {
        let mut failed = stored(Role::Assistant, AnswerState::Failed, vec![]);
        failed.error = Some(Error::new(ErrorCode::ContextFull, "too long"));
        let branch = [
            question("a"),
            stored(Role::Assistant, AnswerState::Complete, vec![text("b")]),
            question("a whole book"),
            failed,
            question("c"),
        ];
        assert_eq!(
            said(&conversation("", &branch)),
            [(Role::User, "a".into()), (Role::Assistant, "b".into()), (Role::User, "c".into())]
        );
    }

    #[test]
    fn the_words_of_a_failed_answer_are_kept() {
        let mut failed = stored(Role::Assistant, AnswerState::Failed, vec![text("The first")]);
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
}
