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

/// The most tokens of a title: many alphabets take several for a word.
const TOKENS: u32 = 32;

/// The longest title, in characters.
const LENGTH: usize = 60;

/// The most words of a title.
const WORDS: usize = 10;

/// Models of fewer parameters, such as the built-in one, write words that only look like a title. 0 stands for a number
/// that is not known.
const SMALLEST: u64 = 100_000_000;

/// How long a title may take: answers of people come before it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Marks around a title, which are no part of it.
const ORNAMENTS: [char; 15] = [
    '"', '\'', '“', '”', '„', '«', '»', '‘', '’', '*', '_', '#', '`', '.', ' ',
];

/// Marks that end a sentence.
const SENTENCE_ENDS: [char; 6] = ['.', '!', '?', '。', '！', '？'];

/// Lets the model that gave a chat's first answer write its title, unless the chat has another than its first question
/// gave it, or is a temporary one, which shows none.
pub(crate) async fn write_title(core: &Core, answer: &str, model: &ModelSource) {
    if core.is_temporary() || !core.settings.borrow().write_titles || !can_write(core, model) {
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
    let loaded = model.folder().and_then(|_| core.loaded(&model.reference()));
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

/// The text that the model writes; of one that was cut off the lines that are whole.
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
            EngineEvent::Done(done) => {
                match done.finish_reason {
                    FinishReason::Stop => {}
                    FinishReason::Length => text.truncate(text.rfind('\n')?),
                    FinishReason::ToolCalls | FinishReason::Cancelled => return None,
                }
                return Some(text);
            }
            EngineEvent::Failed(_) => return None,
            _ => {}
        }
    }
}

/// A model's words as a title; `None` if they are none: too long, the answer again, or about something else.
fn cleaned(words: &str, question: &str, answer: &str) -> Option<String> {
    let title = plain(without_number(title_line(words)?));
    let fits =
        title.chars().count() <= LENGTH && title.split(' ').count() <= WORDS && !title.chars().any(char::is_control);
    let whole = !title.ends_with([',', ';']);
    let says_something = title.chars().filter(|c| c.is_alphabetic()).count() >= 2;
    let about = !terms(&title).is_disjoint(&terms(&format!("{question} {answer}")));
    (fits && whole && says_something && about && !repeats(&title, answer)).then_some(title)
}

/// The line of a model's words that is the title: the first, or what follows a label such as `Title:`, also on the next
/// line. More lines explain it.
fn title_line(words: &str) -> Option<&str> {
    let mut lines = words.lines().filter(|line| !plain(line).is_empty());
    let line = lines.next()?;
    match line.split_once(':') {
        Some((_, rest)) if plain(rest).is_empty() => lines.next(),
        Some((label, rest)) if is_label(label) => Some(rest),
        _ => Some(line),
    }
}

/// True for words such as `Title` and `Here is a title`, which end with that word; a title may have it elsewhere.
fn is_label(words: &str) -> bool {
    let words = plain(words).to_lowercase();
    words.split(' ').next_back() == Some("title")
}

/// The first of a list of titles, without its number. A title may begin with a number, such as 3.5.
fn without_number(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")) {
        Some(title) if rest.len() < line.len() => title,
        _ => line.strip_prefix("- ").unwrap_or(line),
    }
}

/// Words without marks of Markdown, which may stand around single ones, and without ornaments.
fn plain(text: &str) -> String {
    let text = text.replace("**", "").replace('`', "");
    let words = text.trim().trim_matches(ORNAMENTS);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True if a title is the whole answer, or a sentence of it. Words that an answer has as well make a good title.
fn repeats(title: &str, answer: &str) -> bool {
    let is_title = |text: &str| plain(text).to_lowercase() == title.to_lowercase();
    let mut sentences = answer.lines().flat_map(|line| line.split_inclusive(SENTENCE_ENDS));
    is_title(answer) || sentences.any(|sentence| sentence.ends_with(SENTENCE_ENDS) && is_title(sentence))
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
            "1. Growing Tomatoes\n2. Tomatoes on a Balcony",
            "Growing Tomatoes\n\nThis title says what the conversation is about.",
            "Sure! Here is a title:\n\n\"Growing Tomatoes\"",
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
    fn a_title_keeps_its_numbers_and_the_word_title() {
        let question = "Tell me about 3.5 mm audio jacks and title insurance of houses";
        for title in [
            "3.5 mm Audio Jacks",
            "Title Insurance: Houses",
            "Subtitles: Audio of Houses",
        ] {
            assert_eq!(cleaned(title, question, "").as_deref(), Some(title));
        }
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
            "Title:",
            "Sure! Here is a title for this conversation about the capital of France",
            "42",
            "Dear people of France,",
        ] {
            assert_eq!(cleaned(words, question, answer), None, "{words}");
        }
    }

    #[test]
    fn a_title_may_have_the_words_of_the_answer() {
        let question = "What is the capital of France?";
        for answer in [
            "The capital of France is Paris.",
            "# The Capital of France\n\nIt is Paris.",
            "**The Capital of France**: Paris. It has been so for long.",
        ] {
            let title = cleaned("\"The Capital of France\"", question, answer);
            assert_eq!(title.as_deref(), Some("The Capital of France"), "{answer}");
        }
    }
}
