//! Pebble's answers through the whole engine. Pebble only gets them right when everything is right.

use crate::common::{hear, pebble, pebble_dir, question, source, story, Heard};
use engine::MlxEngine;
use protocol::{
    EndedBy, Engine, EngineEvent, ErrorCode, FinishReason, LocalEngine, Message, NoticeCode, Request, Role, Sampling,
    Thinking,
};

async fn ask(engine: &MlxEngine, request: Request) -> Heard {
    hear(engine.generate(request)).await
}

#[tokio::test]
async fn a_sum_with_thinking_carries_digits_and_ends() {
    let engine = MlxEngine::start();
    let heard = ask(&engine, question("What is 347 + 589?", Thinking::On)).await;
    assert_eq!(heard.text, "347 + 589 = **936**");
    assert!(!heard.thinking.is_empty());
    let done = heard.done();
    assert_eq!(
        (done.finish_reason, done.usage.unwrap().prompt_tokens, heard.started),
        (FinishReason::Stop, 28, Some(28))
    );
    assert_eq!(heard.prefill.last(), Some(&28));
    assert_eq!(heard.tokens.len(), done.usage.unwrap().completion_tokens as usize);
    assert!(
        done.usage.unwrap().thinking_tokens.unwrap() > 0
            && done.usage.unwrap().thinking_tokens.unwrap() < done.usage.unwrap().completion_tokens
    );
    assert!(
        done.timing.load_ms > 0.0 && done.timing.first_token_ms > 0.0 && done.timing.decode_tokens_per_second > 0.0
    );

    let again = ask(&engine, question("What is 347 + 589?", Thinking::On)).await;
    assert_eq!(
        (again.tokens, again.ends[0].as_ref().unwrap().timing.load_ms),
        (heard.tokens, 0.0)
    );
}

#[tokio::test]
async fn a_thought_while_thinking_is_off_stays_out_of_the_answer() {
    let heard = ask(&MlxEngine::start(), question("What is 347 * 58?", Thinking::Off)).await;
    assert_eq!(
        (heard.text.as_str(), heard.thinking.as_str()),
        ("347 x 58 = **20126**", "")
    );
    assert_eq!(heard.notices.len(), 1);
    assert_eq!(heard.notices[0].code, NoticeCode::ThoughtWhileOff);
}

#[tokio::test]
async fn a_tool_call_ends_the_turn() {
    let tool = serde_json::json!({"type": "function", "function": {"name": "get_weather", "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}});
    let request = Request {
        tools: vec![tool],
        ..question("What is the weather in Oslo?", Thinking::Off)
    };
    let heard = ask(&MlxEngine::start(), request).await;
    assert_eq!(heard.done().finish_reason, FinishReason::ToolCalls);
    assert_eq!(heard.calls.len(), 1);
    assert_eq!(heard.calls[0].name, "get_weather");
    let id = &heard.calls[0].id;
    assert!(
        id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{id}"
    );
    assert_eq!(heard.calls[0].arguments, serde_json::json!({"city": "Oslo"}));
}

#[tokio::test]
async fn an_answer_ends_where_the_context_ends_that_was_asked_for() {
    let counted: Vec<String> = (1..=40).map(|number| number.to_string()).collect();
    let request = Request {
        context: Some(512),
        messages: vec![
            Message::text(Role::User, "Count from 1 to 40"),
            Message::text(Role::Assistant, counted.join(", ")),
            Message::text(Role::User, "Count from 1 to 120"),
        ],
        ..question("", Thinking::Off)
    };
    let engine = MlxEngine::start();
    let heard = ask(&engine, request.clone()).await;
    let (done, usage) = (heard.done(), heard.done().usage.unwrap());
    assert_eq!(
        (done.finish_reason, &done.ended_by),
        (FinishReason::Length, &EndedBy::Context)
    );
    assert_eq!(usage.prompt_tokens + usage.completion_tokens, 512);

    // A prompt that fits the model's context and not this one is refused with its figures, and so is a context in which
    // nothing fits.
    let long = Request {
        context: Some(512),
        ..question(&"Why? ".repeat(300), Thinking::Off)
    };
    let refused = ask(&engine, long).await;
    assert_eq!(refused.error().code, ErrorCode::ContextFull);
    assert_eq!(refused.error().arguments["context"], 512u32.into());
    let none = ask(
        &engine,
        Request {
            context: Some(10),
            ..request
        },
    )
    .await;
    assert_eq!(none.error().code, ErrorCode::BadRequest);
}

#[tokio::test]
async fn a_limit_of_what_is_kept_holds_for_models_that_are_loaded_and_those_that_will_be() {
    let engine = MlxEngine::start();
    engine.limit_prefix_caches(Some(0));
    let asked = || question("What is 347 + 589?", Thinking::Off);
    ask(&engine, asked()).await;
    assert_eq!(
        ask(&engine, asked()).await.done().usage.unwrap().cached_tokens,
        0,
        "nothing is kept"
    );
    engine.limit_prefix_caches(None);
    ask(&engine, asked()).await;
    assert!(
        ask(&engine, asked()).await.done().usage.unwrap().cached_tokens > 0,
        "as much as suits this computer"
    );
}

#[tokio::test]
async fn the_limit_ends_an_answer_as_length() {
    let request = Request {
        max_tokens: Some(5),
        ..question("What is 347 + 589?", Thinking::On)
    };
    let heard = ask(&MlxEngine::start(), request).await;
    assert_eq!(
        (
            heard.done().finish_reason,
            heard.done().usage.unwrap().completion_tokens,
            heard.tokens.len()
        ),
        (FinishReason::Length, 5, 5)
    );
}

#[tokio::test]
async fn a_stop_text_ends_an_answer_and_is_cut_off() {
    let request = Request {
        stop: vec!["=".into()],
        ..question("What is 347 + 589?", Thinking::On)
    };
    let heard = ask(&MlxEngine::start(), request).await;
    assert_eq!(
        (heard.text.trim_end(), heard.done().finish_reason),
        ("347 + 589", FinishReason::Stop)
    );
}

#[tokio::test]
async fn a_seed_repeats_an_answer() {
    let engine = MlxEngine::start();
    let seeded = |seed| {
        let sampling = Sampling {
            temperature: Some(1.5),
            top_p: Some(0.99),
            seed: Some(seed),
            ..Sampling::default()
        };
        Request {
            sampling,
            max_tokens: Some(40),
            ..question("Tell me a story.", Thinking::Off)
        }
    };
    let first = ask(&engine, seeded(1)).await.tokens;
    assert_eq!(ask(&engine, seeded(1)).await.tokens, first);
    assert_ne!(ask(&engine, seeded(2)).await.tokens, first);
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_is_refused_with_figures() {
    let engine = MlxEngine::start();
    let long = "one two three four five six seven eight nine ten ".repeat(600);
    let error = ask(&engine, question(&long, Thinking::Off)).await.error().clone();
    assert_eq!(error.code, ErrorCode::ContextFull);
    assert!(error.message.contains("4096"), "{}", error.message);
    assert_eq!(
        ask(&engine, question("What is 347 + 589?", Thinking::On)).await.text,
        "347 + 589 = **936**"
    );
}

#[tokio::test]
async fn bad_values_are_refused_before_any_work() {
    let engine = MlxEngine::start();
    let bad = Request {
        sampling: Sampling {
            temperature: Some(-1.0),
            ..Sampling::default()
        },
        ..question("Hi", Thinking::Off)
    };
    let heard = ask(&engine, bad).await;
    assert_eq!((heard.error().code, heard.started), (ErrorCode::BadRequest, None));
    let none = Request {
        max_tokens: Some(0),
        ..question("Hi", Thinking::Off)
    };
    assert_eq!(ask(&engine, none).await.error().code, ErrorCode::BadRequest);
}

#[tokio::test]
async fn a_name_is_remembered_past_the_sliding_window() {
    let mut messages = vec![
        Message::text(Role::User, "My name is Yara."),
        Message::text(Role::Assistant, "Nice to meet you, Yara!"),
    ];
    for number in 1..=12 {
        messages.push(Message::text(Role::User, format!("What is {number} + 1?")));
        messages.push(Message::text(
            Role::Assistant,
            format!("{number} + 1 = **{}**", number + 1),
        ));
    }
    messages.push(Message::text(Role::User, "What is my name?"));
    let request = Request {
        thinking: Some(Thinking::Off),
        sampling: Sampling::greedy(),
        ..Request::new(pebble(), messages)
    };
    let heard = ask(&MlxEngine::start(), request).await;
    assert!(heard.done().usage.unwrap().prompt_tokens > 128);
    assert!(heard.text.contains("Yara"), "{}", heard.text);
}

#[tokio::test]
async fn the_operations_of_gpus_give_the_same_answer_from_quantised_weights() {
    let engine = MlxEngine::start();
    engine.pretend_gpu().unwrap();
    let heard = ask(&engine, question("What is 347 + 589?", Thinking::On)).await;
    assert_eq!(heard.text, "347 + 589 = **936**");
    assert_eq!(engine.inspect().unwrap().unevaluated, 0);
}

#[tokio::test]
async fn an_answer_that_runs_in_a_circle_says_so_early_and_is_ended_late() {
    let engine = MlxEngine::start();
    // A bias makes one ordinary token win for ever.
    let request = Request {
        sampling: Sampling {
            logit_bias: [(400, 1000.0)].into(),
            ..Sampling::greedy()
        },
        ..question("Tell me a story.", Thinking::Off)
    };
    let heard = ask(&engine, request).await;
    assert_eq!(
        heard.done().finish_reason,
        FinishReason::Length,
        "the model did not end it"
    );
    assert_eq!(
        heard.notices.iter().map(|notice| notice.code).collect::<Vec<_>>(),
        [NoticeCode::Repeats, NoticeCode::Repetition]
    );
    let made = heard.done().usage.unwrap().completion_tokens;
    assert!((1000..1100).contains(&made), "{made}");
    assert_eq!(heard.tokens.len(), made as usize);
}

#[tokio::test]
async fn a_model_without_a_temperature_is_greedy_unless_it_answers_in_a_chat() {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(pebble_dir()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "generation_config.json" {
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    let engine = MlxEngine::start();
    for chat_defaults in [false, true] {
        let mut told = std::collections::BTreeSet::new();
        for seed in 1..=4 {
            let request = Request {
                model: source(folder.path()).into(),
                chat_defaults,
                sampling: Sampling {
                    seed: Some(seed),
                    ..Sampling::default()
                },
                ..story(32)
            };
            told.insert(ask(&engine, request).await.tokens);
        }
        assert_eq!(told.len() > 1, chat_defaults, "{told:?}");
    }
}

#[tokio::test]
async fn tokens_are_counted_without_loading_a_model_or_waiting_for_an_answer() {
    let engine = MlxEngine::start();
    let request = question("What is 347 * 58?", Thinking::Off);
    let counted = engine.count(request.clone()).await.unwrap();
    assert!(engine.loaded().is_empty(), "nothing is loaded for a count");
    let mut job = engine.generate(question("Count to five hundred.", Thinking::On));
    let again = engine.count(request.clone()).await.unwrap();
    let mut ended = false;
    while let Some(event) = job.events.try_recv() {
        ended |= matches!(event, EngineEvent::Done(_));
    }
    assert!(!ended, "the count waited for the answer");
    job.cancel.cancel();
    hear(job).await;
    let heard = ask(&engine, request).await;
    assert_eq!(
        (counted.tokens, counted.estimated),
        (heard.done().usage.unwrap().prompt_tokens, false)
    );
    assert_eq!(counted, again);

    let served = Request::new(
        protocol::ModelSource::remote("endpoint:lab/pebble").unwrap(),
        vec![Message::text(Role::User, "question")],
    );
    assert_eq!(
        engine.count(served.clone()).await.unwrap_err().code,
        protocol::ErrorCode::ModelNotFound
    );
    let refused = ask(&engine, served).await;
    assert_eq!(
        refused.ends[0].as_ref().unwrap_err().code,
        protocol::ErrorCode::ModelNotFound
    );

    engine.unload("another").await.unwrap();
    assert_eq!(engine.loaded().len(), 1, "another model is not this one");
    engine.unload("pebble").await.unwrap();
    assert!(engine.loaded().is_empty());
}
