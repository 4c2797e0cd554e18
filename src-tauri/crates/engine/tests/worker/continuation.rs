//! Answers that are continued from any place, as if they had not been cut.

use engine::MlxEngine;
use protocol::{AnswerPrefix, EndedBy, ErrorCode, LocalEngine, NoticeCode, Request, Sampling, Thinking};

use crate::common::question;
use crate::thoughts::{ask, assert_same, codes, from, go_on_everywhere, with_budget, CLOSE, SUM};

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
                assert_same(
                    &ask(&engine, from(&request, &all[..cut], false)).await,
                    &whole,
                    "a stop text",
                );
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
            assert_eq!(
                (&heard.text, &heard.thinking),
                (&whole.text, &whole.thinking),
                "cut at {cut}"
            );
            assert_eq!(
                (codes(&heard), &heard.tokens),
                (vec![NoticeCode::ThinkingEnded], &whole.tokens)
            );
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
