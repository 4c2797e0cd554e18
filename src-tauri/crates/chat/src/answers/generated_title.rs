//! The title that a model gives a chat after its first answer, if it is loaded anyway. A bad one is dropped.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{AnswerState, StoredMessage};
use protocol::{
    CancelOnDrop, Content, EngineEvent, FinishReason, Message, ModelSource, Priority, Request, Role, Sampling, Thinking,
};
use tokio::time::timeout;

use crate::answers::fallback_title::fallback_title;
use crate::core::Core;

/// How much of question and answer the model is shown, in characters each.
const SHOWN: usize = 1200;

/// The most tokens of a title.
const TOKENS: u32 = 24;

/// The longest title, in characters.
const LENGTH: usize = 60;

/// The most words of a title.
const WORDS: usize = 10;

/// Models of fewer parameters, such as the built-in one, write words that only look like a title. 0 stands for a number
/// that is not known.
const SMALLEST: u64 = 100_000_000;

/// How long a title may take: answers of people come before it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets the model that gave a chat's first answer write its title, unless the chat has another than its first question
/// gave it.
pub(crate) async fn write_title(core: &Core, answer: &str, model: &ModelSource) {
    if !core.settings.borrow().write_titles || !can_write(core, model) {
        return;
    }
    let Ok(branch) = core.history.branch(answer).await else {
        return;
    };
    let [question, .., answer] = &branch[..] else { return };
    let first = branch.iter().filter(|message| message.role == Role::User).count() == 1;
    if !first || question.role != Role::User || answer.state != AnswerState::Complete || answer.text().trim().is_empty()
    {
        return;
    }
    let content: Vec<Content> = question.parts.iter().map(|part| part.content.clone()).collect();
    let before = fallback_title(&content);
    match core.history.chat_head(&question.chat).await {
        Ok((view, _)) if view.summary.title == before => {}
        _ => return,
    }
    let request = title_request(model.clone(), question, answer);
    let mut closing = core.closing.subscribe();
    let written = tokio::select! {
        _ = closing.wait_for(|closing| *closing) => return,
        written = timeout(PATIENCE, written(core, request)) => written.ok().flatten(),
    };
    let Some(better) = written.and_then(|words| cleaned(&words, &question.text(), &answer.text())) else {
        return;
    };
    match core.history.replace_title(&question.chat, &before, &better).await {
        Ok(true) => core.changed(),
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, "a chat's title could not be stored"),
    }
}

/// True if the model is loaded on this computer and large enough.
fn can_write(core: &Core, model: &ModelSource) -> bool {
    let reference = model.reference();
    let local = core.engine.local().filter(|_| model.folder().is_some());
    let loaded = local.and_then(|local| local.loaded().into_iter().find(|info| info.reference == reference));
    loaded.is_some_and(|info| !(1..SMALLEST).contains(&info.parameters))
}

fn title_request(model: ModelSource, question: &StoredMessage, answer: &StoredMessage) -> Request {
    let beginning = |text: String| text.trim().chars().take(SHOWN).collect::<String>();
    let words = format!(
        "Write a title of two to six words for this conversation, in its language, and nothing but the title.\n\nQuestion: {}\n\nAnswer: {}",
        beginning(question.text()),
        beginning(answer.text())
    );
    let mut request = Request::new(model, vec![Message::text(Role::User, words)]);
    request.thinking = Some(Thinking::Off);
    request.thinking_budget = Some(0);
    request.max_tokens = Some(TOKENS);
    request.sampling = Sampling::greedy();
    request.priority = Priority::Background;
    request
}

/// The text that the model writes; `None` if the answer was cut off.
async fn written(core: &Core, request: Request) -> Option<String> {
    let mut job = core.engine.generate(request);
    let _cancel = CancelOnDrop(job.cancel.clone());
    let mut text = String::new();
    loop {
        match job.events.recv().await? {
            EngineEvent::Delta {
                content: Content::Text { text: more },
                ..
            } => text.push_str(&more),
            EngineEvent::Done(done) => return (done.finish_reason == FinishReason::Stop).then_some(text),
            EngineEvent::Failed(_) => return None,
            _ => {}
        }
    }
}

/// A model's words as a title; `None` if they are none: too long, several lines, the answer again, or about something
/// else.
fn cleaned(words: &str, question: &str, answer: &str) -> Option<String> {
    let mut lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let (line, rest) = (lines.next()?, lines.next());
    if rest.is_some() {
        return None;
    }
    let line = match line.split_once(':') {
        Some((label, title)) if label.trim_matches(['*', '#', ' ']).eq_ignore_ascii_case("title") => title,
        _ => line,
    };
    let ornaments = [
        '"', '\'', '“', '”', '„', '«', '»', '‘', '’', '*', '_', '#', '`', '.', ' ',
    ];
    // Marks of Markdown may stand around single words, too.
    let line = line.replace("**", "").replace('`', "");
    let line = line.trim_matches(ornaments);
    let title: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let fits =
        title.chars().count() <= LENGTH && title.split(' ').count() <= WORDS && !title.chars().any(char::is_control);
    let says_something = title.chars().filter(|c| c.is_alphabetic()).count() >= 2;
    let again = answer.to_lowercase().contains(&title.to_lowercase());
    let about = !terms(&title).is_disjoint(&terms(&format!("{question} {answer}")));
    (fits && says_something && !again && about).then_some(title)
}

/// The beginnings of a text's longer words, and its characters if it is written without spaces.
fn terms(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let (dense, spaced): (Vec<&str>, Vec<&str>) = words.partition(|word| word.chars().any(|c| c >= '\u{2e80}'));
    let beginnings = spaced.into_iter().filter(|word| word.chars().count() >= 4);
    let beginnings = beginnings.map(|word| word.to_lowercase().chars().take(5).collect());
    beginnings
        .chain(dense.iter().flat_map(|word| word.chars().map(String::from)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_freed_of_its_ornaments() {
        let about = (
            "How do I grow tomatoes on a balcony?",
            "Choose a sunny place and water them daily.",
        );
        for words in [
            "Growing Tomatoes",
            " \"Growing Tomatoes.\"\n",
            "**Title:** Growing  Tomatoes",
            "**Growing** `Tomatoes`",
            "# Growing Tomatoes",
        ] {
            let words = words.replace("Growing", "Balcony");
            assert_eq!(
                cleaned(&words, about.0, about.1).as_deref(),
                Some("Balcony Tomatoes"),
                "{words}"
            );
        }
        assert_eq!(
            cleaned("東京の天気", "東京は雨ですか", "はい").as_deref(),
            Some("東京の天気")
        );
    }

    #[test]
    fn a_bad_title_is_none() {
        let (question, answer) = ("What is the capital of France?", "The capital of France is Paris.");
        for words in [
            "",
            "  \n ",
            "...",
            "The capital of France is Paris",
            "Cooking with garlic",
            "Capital of France\nIt is Paris",
            "Sure! Here is a title for this conversation about the capital of France",
            "42",
        ] {
            assert_eq!(cleaned(words, question, answer), None, "{words}");
        }
    }
}
