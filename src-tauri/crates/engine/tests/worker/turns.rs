//! A chat reads only what is new: the next turn, another answer, an edited question, another branch; and it says the
//! same as an engine that reads everything.

use std::time::Duration;

use crate::common::{hear, pebble, Heard};
use engine::MlxEngine;
use protocol::{Engine, LocalEngine, Message, Request, Role, Sampling, Thinking, Usage};

/// Twelve questions with answers of different lengths; the whole is longer than three sliding windows.
const QUESTIONS: [&str; 12] = [
    "My name is Yara.",
    "What is 347 + 589?",
    "What is the capital of France?",
    "Sort these words: pear, apple, fig.",
    "What is 12 * 11?",
    "How many letters r are in strawberry?",
    "Spell the word river.",
    "What is 81 + 19?",
    "Tell me a story.",
    "What is 5 + 7?",
    "What is the capital of Japan?",
    "What is my name?",
];

fn request(messages: &[Message]) -> Request {
    Request {
        thinking: Some(Thinking::On),
        sampling: Sampling::greedy(),
        ..Request::new(pebble(), messages.to_vec())
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn answer_of(heard: &Heard) -> Message {
    Message {
        reasoning: Some(heard.thinking.clone()),
        ..Message::text(Role::Assistant, heard.text.clone())
    }
}

async fn ask(engine: &MlxEngine, messages: &[Message]) -> (Heard, Usage) {
    let heard = hear(engine.generate(request(messages))).await;
    let usage = heard.done().usage.unwrap();
    assert_eq!(
        usage.cached_tokens + usage.prefilled_tokens,
        usage.prompt_tokens,
        "{usage:?}"
    );
    (heard, usage)
}

async fn read_ahead(engine: &MlxEngine, messages: &[Message]) {
    engine.prefetch(request(messages));
    let ended = tokio::time::timeout(Duration::from_secs(300), engine.prefetched()).await;
    ended.expect("reading ahead ends");
}

/// A loaded engine that has read nothing.
async fn fresh() -> MlxEngine {
    let engine = MlxEngine::start();
    let mut events = engine.load(pebble());
    while events.recv().await.is_some() {}
    engine
}

/// A loaded engine that keeps nothing of what it has read.
async fn without_prefix_cache() -> MlxEngine {
    let engine = fresh().await;
    engine.set_prefix_cache_budget(0).unwrap();
    engine
}

/// The course of a chat: for each turn the prompt's length, the tokens read, and those of the answer.
async fn chat(engine: &MlxEngine, ahead: bool) -> (Vec<Message>, Vec<(Usage, Heard)>) {
    let (mut messages, mut turns) = (Vec::new(), Vec::new());
    for question in QUESTIONS {
        messages.push(user(question));
        let (heard, usage) = ask(engine, &messages).await;
        messages.push(answer_of(&heard));
        turns.push((usage, heard));
        if ahead {
            read_ahead(engine, &messages).await;
        }
    }
    (messages, turns)
}

/// Tokens of a question in addition to its words: the markers of the turn and the beginning of the answer.
const MARKS: u32 = 8;

#[tokio::test]
async fn a_turn_reads_the_new_message_and_without_time_the_last_answer_too() {
    let (_, warm) = chat(&fresh().await, true).await;
    let (_, plain) = chat(&fresh().await, false).await;
    let (_, cold) = chat(&without_prefix_cache().await, false).await;
    let words = |text: &str| text.len() as u32;
    for (turn, ((warm_usage, warm), (usage, heard))) in warm.iter().zip(&plain).enumerate() {
        let (cold_usage, cold) = &cold[turn];
        assert_eq!(
            (cold_usage.cached_tokens, cold_usage.prefilled_tokens),
            (0, cold_usage.prompt_tokens)
        );
        assert_eq!(
            (&warm.text, &warm.thinking),
            (&cold.text, &cold.thinking),
            "turn {turn} with reading ahead"
        );
        assert_eq!(
            (&heard.text, &heard.thinking),
            (&cold.text, &cold.thinking),
            "turn {turn} without"
        );
        println!(
            "turn {turn}: prompt {}, read {} with reading ahead, {} without",
            usage.prompt_tokens, warm_usage.prefilled_tokens, usage.prefilled_tokens
        );
        if turn == 0 {
            continue;
        }
        let question = words(QUESTIONS[turn]) / 2 + MARKS;
        assert!(warm_usage.prefilled_tokens <= question, "turn {turn}: {warm_usage:?}");
        let last = plain[turn - 1].1.text.len() as u32 + MARKS;
        assert!(usage.prefilled_tokens <= question + last, "turn {turn}: {usage:?}");
    }
    assert!(plain.last().unwrap().1.text.contains("Yara"));
    let (read, all) = warm.iter().fold((0, 0), |(read, all), (usage, _)| {
        (read + usage.prefilled_tokens, all + usage.prompt_tokens)
    });
    println!("report: turns of a 12-turn chat read {read} of {all} tokens");
}
