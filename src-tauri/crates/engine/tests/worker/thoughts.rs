//! A thought that is ended for Pebble, and answers that are continued from any place.

use std::path::Path;

use crate::common::files::{copy_words, edit_config};
use crate::common::{hear, pebble_dir, question, source, Heard};
use engine::MlxEngine;
use protocol::{
    AnswerPrefix, Content, EndedBy, Engine, EngineEvent, FinishReason, NoticeCode, Request, Sampling, Thinking,
};

pub(crate) const SUM: &str = "What is 347 + 589?";
/// How a thought is ended for Pebble: by a line end and its closing marker, or by that alone.
pub(crate) const CLOSE: u32 = 101;

pub(crate) async fn ask(engine: &MlxEngine, request: Request) -> Heard {
    hear(engine.generate(request)).await
}

pub(crate) fn with_budget(budget: u32) -> Request {
    Request {
        thinking_budget: Some(budget),
        ..question(SUM, Thinking::On)
    }
}

/// The same request, its answer begun with these tokens.
pub(crate) fn from(request: &Request, tokens: &[u32], thinking_ended: bool) -> Request {
    let begun = AnswerPrefix::Tokens {
        tokens: tokens.to_vec(),
        model_revision: None,
        thinking_ended,
    };
    Request {
        answer_prefix: Some(begun),
        ..request.clone()
    }
}

pub(crate) fn codes(heard: &Heard) -> Vec<NoticeCode> {
    heard.notices.iter().map(|notice| notice.code).collect()
}

/// The calls without their ids, which are random.
pub(crate) fn calls(heard: &Heard) -> Vec<(&str, &serde_json::Value)> {
    heard
        .calls
        .iter()
        .map(|call| (call.name.as_str(), &call.arguments))
        .collect()
}

/// Asserts that a continued answer is the unbroken one.
pub(crate) fn assert_same(heard: &Heard, whole: &Heard, at: &str) {
    assert_eq!((&heard.text, &heard.thinking), (&whole.text, &whole.thinking), "{at}");
    assert_eq!((&heard.tokens, calls(heard)), (&whole.tokens, calls(whole)), "{at}");
    let (done, expected) = (heard.done(), whole.done());
    assert_eq!(
        (done.finish_reason, &done.ended_by),
        (expected.finish_reason, &expected.ended_by),
        "{at}"
    );
    let counts = |done: &protocol::Done| {
        (
            done.usage.unwrap().prompt_tokens,
            done.usage.unwrap().completion_tokens,
            done.usage.unwrap().thinking_tokens.unwrap(),
        )
    };
    assert_eq!(counts(done), counts(expected), "{at}");
    assert_eq!(codes(heard), codes(whole), "{at}");
}

/// The places of an answer: all of them if there is time, otherwise some, and those next to markers and ends.
pub(crate) fn places(tokens: &[u32]) -> Vec<usize> {
    let full = std::env::var_os("PONDER_FULL").is_some();
    let steers = |place: &usize| {
        tokens[place.saturating_sub(2)..(place + 2).min(tokens.len())]
            .iter()
            .any(|id| matches!(id, 46..=52 | 100 | 101))
    };
    (0..=tokens.len())
        .filter(|place| {
            full || tokens.len() < 24 || place % 16 == 4 || *place == 0 || *place == tokens.len() || steers(place)
        })
        .collect()
}

/// Goes on from the places of an answer; `ended` is the place from which on its thought had been ended for the model.
pub(crate) async fn go_on_everywhere(
    engine: &MlxEngine,
    request: &Request,
    whole: &Heard,
    ended: Option<usize>,
) -> usize {
    let places = places(&whole.tokens);
    for cut in places.iter().copied() {
        let begun = from(request, &whole.tokens[..cut], ended.is_some_and(|ended| cut > ended));
        assert_same(
            &ask(engine, begun).await,
            whole,
            &format!("cut at {cut} of {}", whole.tokens.len()),
        );
    }
    places.len()
}

#[tokio::test]
async fn a_budget_holds_to_the_token() {
    let engine = MlxEngine::start();
    let whole = ask(&engine, question(SUM, Thinking::On)).await;
    let natural = whole.done().usage.unwrap().thinking_tokens.unwrap();
    assert!(
        natural > 20,
        "the thought of {natural} tokens is longer than the budgets"
    );
    for budget in [0, 1, 2, 5, 19, 20, natural - 1] {
        let heard = ask(&engine, with_budget(budget)).await;
        let done = heard.done();
        assert_eq!(done.usage.unwrap().thinking_tokens.unwrap(), budget);
        // The last of them is the line end before the marker.
        let shorter = budget + 1 == natural || heard.thinking.len() < whole.thinking.len();
        assert!(whole.thinking.starts_with(&heard.thinking) && shorter, "{heard:?}");
        assert!(
            !heard.text.is_empty() && done.finish_reason == FinishReason::Stop,
            "{heard:?}"
        );
        assert_eq!(codes(&heard), [NoticeCode::ThinkingEnded]);
        assert!(
            heard.notices[0].message.contains(&budget.to_string()),
            "{:?}",
            heard.notices
        );
        assert_eq!(heard.tokens.len(), done.usage.unwrap().completion_tokens as usize);
        let words = heard.tokens.iter().position(|id| *id == CLOSE).unwrap();
        assert_eq!(
            heard.tokens[..words - 2],
            whole.tokens[..words - 2],
            "the thought is the unbroken run's"
        );
        println!(
            "report: thinking: budget {budget}: {:?} after {:?}",
            heard.text, heard.thinking
        );
    }
    // A model that ends its thought in time is left alone.
    for budget in [natural + 1, 1000] {
        assert_same(&ask(&engine, with_budget(budget)).await, &whole, "a large budget");
    }
}

#[tokio::test]
async fn the_limit_of_tokens_holds_where_a_thought_is_ended() {
    let engine = MlxEngine::start();
    for limit in 1..=12 {
        let request = Request {
            max_tokens: Some(limit),
            ..with_budget(5)
        };
        let heard = ask(&engine, request).await;
        assert_eq!(heard.tokens.len(), limit as usize);
        assert_eq!(heard.done().ended_by, EndedBy::TokenLimit);
        assert!(heard.done().usage.unwrap().thinking_tokens.unwrap() <= 5);
    }
}

#[tokio::test]
async fn the_answer_follows_at_once_when_it_is_asked_for() {
    let engine = MlxEngine::start();
    let whole = ask(&engine, question(SUM, Thinking::On)).await;
    // Asked before it begins.
    let job = engine.generate(question(SUM, Thinking::On));
    job.end_thinking.answer_now();
    let heard = hear(job).await;
    assert_eq!(
        (
            heard.thinking.as_str(),
            heard.done().usage.unwrap().thinking_tokens.unwrap()
        ),
        ("", 0)
    );
    assert!(!heard.text.is_empty());

    let mut most = 0;
    for press in [1, 2, 4, 8, 16] {
        let mut job = engine.generate(question(SUM, Thinking::On));
        let (mut heard, mut pressed) = (Heard::default(), None);
        while let Some(event) = job.events.recv().await {
            if let EngineEvent::Delta {
                content: Content::Thinking { text },
                thinking_tokens: Some(thinking_tokens),
                ..
            } = &event
            {
                heard.thinking.push_str(text);
                // The first text after the press was generated before it or during it.
                if job.end_thinking.is_asked() {
                    pressed.get_or_insert(*thinking_tokens);
                } else if *thinking_tokens >= press {
                    job.end_thinking.answer_now();
                }
            }
            if let EngineEvent::Delta {
                content: Content::Text { text },
                ..
            } = &event
            {
                heard.text.push_str(text);
            }
            if let EngineEvent::Notice(notice) = &event {
                heard.notices.push(notice.clone());
            }
            if let EngineEvent::Done(done) = event {
                most = most.max(pressed.map_or(0, |pressed| done.usage.unwrap().thinking_tokens.unwrap() - pressed));
            }
        }
        assert!(whole.thinking.starts_with(&heard.thinking), "{heard:?}");
        if heard.thinking.len() < whole.thinking.len() {
            assert_eq!(codes(&heard), [NoticeCode::ThinkingEnded]);
            assert_eq!(heard.notices[0].message, "You ended the thought here.");
        }
        assert!(!heard.text.is_empty());
    }
    println!("report: thinking: at most {most} thought tokens after the first that was heard after Answer now");
    assert!(most <= 2);
}

#[tokio::test]
async fn answer_now_in_the_answer_changes_nothing() {
    let engine = MlxEngine::start();
    let whole = ask(&engine, question(SUM, Thinking::On)).await;
    let mut job = engine.generate(question(SUM, Thinking::On));
    let mut text = String::new();
    while let Some(event) = job.events.recv().await {
        match event {
            EngineEvent::Delta {
                content: Content::Text { text: piece },
                ..
            } => {
                text.push_str(&piece);
                job.end_thinking.answer_now();
            }
            EngineEvent::Done(done) => assert_eq!(
                done.usage.unwrap().completion_tokens,
                whole.done().usage.unwrap().completion_tokens
            ),
            _ => {}
        }
    }
    assert_eq!(text, whole.text);
}

#[tokio::test]
async fn the_context_is_told_from_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    copy_pebble(folder.path());
    edit_config(folder.path(), |config| {
        config["text_config"]["max_position_embeddings"] = 64.into()
    });
    let engine = MlxEngine::start();
    let filler: Vec<u32> = (0..64 - 28 - 3).map(|at| 300 + (at * 7919) % 3000).collect();
    let request = Request {
        model: source(folder.path()).into(),
        sampling: Sampling {
            // No end before the context's.
            logit_bias: [(1, -1e4), (50, -1e4), (106, -1e4)].into(),
            ..Sampling::greedy()
        },
        ..from(&question(SUM, Thinking::On), &filler, false)
    };
    let full = ask(&engine, request.clone()).await;
    assert_eq!(
        (full.done().finish_reason, &full.done().ended_by),
        (FinishReason::Length, &EndedBy::Context)
    );
    assert_eq!(full.tokens.len(), filler.len() + 3);
    for (most, rule) in [(2, EndedBy::TokenLimit), (3, EndedBy::Context), (9, EndedBy::Context)] {
        let max_tokens = Some(most);
        let heard = ask(
            &engine,
            Request {
                max_tokens,
                ..request.clone()
            },
        )
        .await;
        assert_eq!(heard.done().ended_by, rule);
    }
}

fn copy_pebble(folder: &Path) {
    copy_words(&pebble_dir(), folder);
    for name in ["model.safetensors", "model.safetensors.index.json"] {
        std::fs::copy(pebble_dir().join(name), folder.join(name)).unwrap();
    }
}

/// The same weights with thoughts marked by `<think>`, without a label and with blank lines after the end.
#[tokio::test]
async fn another_format_is_ended_and_goes_on_alike() {
    let folder = tempfile::tempdir().unwrap();
    copy_pebble(folder.path());
    for name in ["tokenizer.json", "chat_template.jinja", "tokenizer_config.json"] {
        let path = folder.path().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(
            path,
            text.replace("<|channel>", "<think>").replace("<channel|>", "</think>"),
        )
        .unwrap();
    }
    let engine = MlxEngine::start();
    let request = Request {
        model: source(folder.path()).into(),
        ..question(SUM, Thinking::On)
    };
    let whole = ask(&engine, request.clone()).await;
    assert!(whole.thinking.starts_with("thought"), "{whole:?}");
    go_on_everywhere(&engine, &request, &whole, None).await;
    for budget in [0, 7] {
        let request = Request {
            thinking_budget: Some(budget),
            ..request.clone()
        };
        let heard = ask(&engine, request.clone()).await;
        assert_eq!(heard.done().usage.unwrap().thinking_tokens.unwrap(), budget);
        assert!(
            whole.thinking.starts_with(&heard.thinking) && !heard.text.is_empty(),
            "{heard:?}"
        );
        let ended = heard.tokens.iter().position(|id| *id == 100).unwrap() + 1 + budget as usize;
        go_on_everywhere(&engine, &request, &heard, Some(ended)).await;
    }
}
