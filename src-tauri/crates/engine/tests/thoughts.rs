//! A thought that is ended for Pebble, and answers that are continued from any place.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::files::{copy_words, edit_config};
use common::{hear, pebble_dir, question, source, Heard};
use engine::MlxEngine;
use protocol::{
    AnswerPrefix, Content, EndedBy, Engine, EngineEvent, ErrorCode, FinishReason, LocalEngine, NoticeCode, Request, Sampling, Thinking,
};

const SUM: &str = "What is 347 + 589?";
/// How a thought is ended for Pebble: by a line end and its closing marker, or by that alone.
const CLOSE: u32 = 101;

async fn ask(engine: &MlxEngine, request: Request) -> Heard {
    hear(engine.generate(request)).await
}

fn with_budget(budget: u32) -> Request {
    Request {
        thinking_budget: Some(budget),
        ..question(SUM, Thinking::On)
    }
}

/// The same request, its answer begun with these tokens.
fn from(request: &Request, tokens: &[u32], thinking_ended: bool) -> Request {
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

fn codes(heard: &Heard) -> Vec<NoticeCode> {
    heard.notices.iter().map(|notice| notice.code).collect()
}

/// The calls without their ids, which are random.
fn calls(heard: &Heard) -> Vec<(&str, &serde_json::Value)> {
    heard.calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect()
}

/// Asserts that a continued answer is the unbroken one.
fn assert_same(heard: &Heard, whole: &Heard, at: &str) {
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
fn places(tokens: &[u32]) -> Vec<usize> {
    let full = std::env::var_os("PONDER_FULL").is_some();
    let steers = |place: &usize| {
        tokens[place.saturating_sub(2)..(place + 2).min(tokens.len())]
            .iter()
            .any(|id| matches!(id, 46..=52 | 100 | 101))
    };
    (0..=tokens.len())
        .filter(|place| full || tokens.len() < 24 || place % 16 == 4 || *place == 0 || *place == tokens.len() || steers(place))
        .collect()
}

/// Goes on from the places of an answer; `ended` is the place from which on its thought had been ended for the model.
async fn go_on_everywhere(engine: &MlxEngine, request: &Request, whole: &Heard, ended: Option<usize>) -> usize {
    let places = places(&whole.tokens);
    for cut in places.iter().copied() {
        let begun = from(request, &whole.tokens[..cut], ended.is_some_and(|ended| cut > ended));
        assert_same(&ask(engine, begun).await, whole, &format!("cut at {cut} of {}", whole.tokens.len()));
    }
    places.len()
}

#[tokio::test]
async fn a_budget_holds_to_the_token() {
    let engine = MlxEngine::start();
    let whole = ask(&engine, question(SUM, Thinking::On)).await;
    let natural = whole.done().usage.unwrap().thinking_tokens.unwrap();
    assert!(natural > 20, "the thought of {natural} tokens is longer than the budgets");
    for budget in [0, 1, 2, 5, 19, 20, natural - 1] {
        let heard = ask(&engine, with_budget(budget)).await;
        let done = heard.done();
        assert_eq!(done.usage.unwrap().thinking_tokens.unwrap(), budget);
        // The last of them is the line end before the marker.
        let shorter = budget + 1 == natural || heard.thinking.len() < whole.thinking.len();
        assert!(whole.thinking.starts_with(&heard.thinking) && shorter, "{heard:?}");
        assert!(!heard.text.is_empty() && done.finish_reason == FinishReason::Stop, "{heard:?}");
        assert_eq!(codes(&heard), [NoticeCode::ThinkingEnded]);
        assert!(heard.notices[0].message.contains(&budget.to_string()), "{:?}", heard.notices);
        assert_eq!(heard.tokens.len(), done.usage.unwrap().completion_tokens as usize);
        let words = heard.tokens.iter().position(|id| *id == CLOSE).unwrap();
        assert_eq!(
            heard.tokens[..words - 2],
            whole.tokens[..words - 2],
            "the thought is the unbroken run's"
        );
        println!("report: thinking: budget {budget}: {:?} after {:?}", heard.text, heard.thinking);
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
        (heard.thinking.as_str(), heard.done().usage.unwrap().thinking_tokens.unwrap()),
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
                // What comes first after the press was said before it, or during it.
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
            EngineEvent::Done(done) => assert_eq!(done.usage.unwrap().completion_tokens, whole.done().usage.unwrap().completion_tokens),
            _ => {}
        }
    }
    assert_eq!(text, whole.text);
}

#[tokio::test]
async fn an_answer_goes_on_from_every_place_as_if_it_had_not_been_cut() {
    let engine = MlxEngine::start();
    let tool = serde_json::json!({"type": "function", "function": {"name": "get_weather", "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}});
    let mut places = 0;
    for request in [
        question(SUM, Thinking::On),
        question("What is 347 * 58?", Thinking::Off),
        question("Show me a cat emoji.", Thinking::On),
        Request {
            tools: vec![tool],
            ..question("What is the weather in Oslo?", Thinking::Off)
        },
        Request {
            sampling: Sampling {
                temperature: Some(1.0),
                repetition_penalty: Some(1.1),
                seed: Some(7),
                ..Sampling::default()
            },
            max_tokens: Some(60),
            ..question("Tell me a story.", Thinking::On)
        },
        // A stop text that comes in several tokens.
        Request {
            stop: vec!["6**".into()],
            ..question(SUM, Thinking::On)
        },
    ] {
        let whole = ask(&engine, request.clone()).await;
        if matches!(whole.done().ended_by, EndedBy::StopText { .. }) {
            // The last token completes it, and nothing continues after that.
            let all = whole.tokens.clone();
            for cut in (0..all.len()).filter(|cut| cut + 8 > all.len()) {
                assert_same(&ask(&engine, from(&request, &all[..cut], false)).await, &whole, "a stop text");
            }
            let refused = ask(&engine, from(&request, &all, false)).await;
            assert_eq!(refused.error().code, ErrorCode::BadRequest);
            places += 8;
            continue;
        }
        if whole.done().ended_by == EndedBy::TokenLimit {
            // The continuation has the same limit again, so each place is compared with the same number of tokens less.
            let all = whole.tokens.clone();
            for cut in [1, 7, 30, 59] {
                let rest = Request {
                    max_tokens: Some(60 - cut as u32),
                    ..from(&request, &all[..cut], false)
                };
                assert_same(&ask(&engine, rest).await, &whole, "a seed");
                places += 1;
            }
            continue;
        }
        places += go_on_everywhere(&engine, &request, &whole, None).await;
    }
    println!("report: continue: the same answer from each of {places} places of 6 answers");
}

#[tokio::test]
async fn an_answer_goes_on_behind_a_thought_that_was_ended() {
    let engine = MlxEngine::start();
    let mut places = 0;
    for budget in [0, 5, 20] {
        let request = with_budget(budget);
        let whole = ask(&engine, request.clone()).await;
        let close = whole.tokens.iter().position(|id| *id == CLOSE).unwrap();
        let ids = whole.tokens[..close].to_vec();
        let opened = ids.iter().position(|id| *id == 100).unwrap();
        // The marker, the label's two tokens and the thought's.
        let ended = opened + 3 + budget as usize;
        assert!(ended == close || ended + 1 == close, "{:?}", whole.tokens);
        places += go_on_everywhere(&engine, &request, &whole, Some(ended)).await;

        // Whose thought somebody ended has no budget to tell from.
        let asked = Request {
            thinking_budget: None,
            ..request
        };
        for cut in (ended..=whole.tokens.len()).filter(|cut| cut - ended < 5) {
            let heard = ask(&engine, from(&asked, &whole.tokens[..cut], true)).await;
            assert_eq!((&heard.text, &heard.thinking), (&whole.text, &whole.thinking), "cut at {cut}");
            assert_eq!((codes(&heard), &heard.tokens), (vec![NoticeCode::ThinkingEnded], &whole.tokens));
            places += 1;
        }
    }
    println!("report: continue: the same answer from each of {places} places after thoughts that were ended");
}

#[tokio::test]
async fn what_was_read_is_not_read_again() {
    let engine = MlxEngine::start();
    let request = question("Tell me a story.", Thinking::On);
    let whole = ask(&engine, request.clone()).await;
    let half = Request {
        max_tokens: Some(20),
        ..request.clone()
    };
    let begun = ask(&engine, half).await;
    assert_eq!(begun.tokens, whole.tokens[..20]);
    let heard = ask(&engine, from(&request, &begun.tokens, false)).await;
    assert_same(&heard, &whole, "a story");
    let usage = heard.done().usage.unwrap();
    assert!(usage.prefilled_tokens <= 2, "{usage:?}");
    assert_eq!(usage.cached_tokens + usage.prefilled_tokens, usage.prompt_tokens + 20);
}

#[tokio::test]
async fn words_go_on_where_the_tokens_are_not_known() {
    let engine = MlxEngine::start();
    let request = question(SUM, Thinking::On);
    let whole = ask(&engine, request.clone()).await;
    let words = |thinking: Option<&str>, text: Option<&str>| Request {
        answer_prefix: Some(AnswerPrefix::Text {
            thinking: thinking.map(str::to_owned),
            text: text.map(str::to_owned),
        }),
        ..request.clone()
    };
    // At a line's end inside the thought, and after the whole thought.
    let line = whole.thinking.find('\n').unwrap_or(whole.thinking.len() / 2);
    let heard = ask(&engine, words(Some(&whole.thinking[..line]), None)).await;
    assert_eq!((&heard.thinking, &heard.text), (&whole.thinking, &whole.text));
    let heard = ask(&engine, words(Some(&whole.thinking), Some("347 +"))).await;
    assert_eq!((&heard.thinking, &heard.text), (&whole.thinking, &whole.text));
    let heard = ask(&engine, words(None, Some("347 +"))).await;
    assert!(
        heard.thinking.is_empty() && heard.text.starts_with("347 +") && heard.text.len() > 5,
        "{heard:?}"
    );
    assert_same(&ask(&engine, words(None, None)).await, &whole, "no words");
    // Words that spell markers are words.
    let heard = ask(&engine, words(None, Some("<channel|> <|channel>thought\n"))).await;
    assert!(heard.text.starts_with("<channel|> <|channel>thought\n"), "{heard:?}");
}

#[tokio::test]
async fn what_cannot_go_on_is_refused_with_its_reason() {
    let engine = MlxEngine::start();
    let request = question(SUM, Thinking::On);
    let refused = |tokens: Vec<u32>, revision: Option<&str>| Request {
        answer_prefix: Some(AnswerPrefix::Tokens {
            tokens,
            model_revision: revision.map(str::to_owned),
            thinking_ended: false,
        }),
        ..request.clone()
    };
    for (request, code, reason) in [
        (refused(vec![300], Some("another")), ErrorCode::BadRequest, "another"),
        (refused(vec![300, 4_000_000], None), ErrorCode::BadRequest, "4000000"),
        (refused(vec![300, 106], None), ErrorCode::BadRequest, "<turn|>"),
        (refused(vec![300; 5000], None), ErrorCode::ContextFull, "4096"),
        (refused(vec![300; 4096 - 28], None), ErrorCode::ContextFull, "4096"),
    ] {
        let heard = ask(&engine, request).await;
        let error = heard.error();
        assert!(error.code == code && error.message.contains(reason), "{error:?}");
        assert!(heard.tokens.is_empty() && heard.text.is_empty());
    }
    // The engine lives, and the right revision continues the answer.
    let whole = ask(&engine, request.clone()).await;
    let revision = engine.loaded().remove(0).revision;
    let heard = ask(&engine, refused(whole.tokens[..10].to_vec(), Some(&revision))).await;
    assert_same(&heard, &whole, "the same revision");
}

#[tokio::test]
async fn the_context_is_told_from_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    copy_pebble(folder.path());
    edit_config(folder.path(), |config| config["text_config"]["max_position_embeddings"] = 64.into());
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
        std::fs::write(path, text.replace("<|channel>", "<think>").replace("<channel|>", "</think>")).unwrap();
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
        assert!(whole.thinking.starts_with(&heard.thinking) && !heard.text.is_empty(), "{heard:?}");
        let ended = heard.tokens.iter().position(|id| *id == 100).unwrap() + 1 + budget as usize;
        go_on_everywhere(&engine, &request, &heard, Some(ended)).await;
    }
}
