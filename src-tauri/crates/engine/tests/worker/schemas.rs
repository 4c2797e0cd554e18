//! Answers that follow JSON schemas, and calls that are required: Pebble and random models, alone and in a batch, with
//! and without a thought.

#[path = "../../../constraint/tests/schemas/mod.rs"]
mod random_schemas;

use std::time::{Duration, Instant};

use crate::common::oracle::{computed, seed};
use crate::common::{hear, pebble, question, source, Heard};
use engine::{Drafting, EngineOptions, MlxEngine};
use futures::future::join_all;
use protocol::{
    AnswerPrefix, Engine, EngineEvent, ErrorCode, FinishReason, FolderSource, JobHandle, LocalEngine, Message,
    Priority, Request, Role, Sampling, Thinking,
};
use random_schemas::{fault, Random};
use serde_json::{json, Value};

const SUM: &str = "What is 347 + 589?";

fn sum() -> Value {
    json!({"type": "object", "properties": {"sum": {"type": "integer"}, "sure": {"type": "boolean"}}, "required": ["sum", "sure"],
        "additionalProperties": false})
}

fn under(schema: Value, request: Request) -> Request {
    Request {
        schema: Some(schema),
        ..request
    }
}

/// The answer as JSON; what is wrong with it is a failure.
fn parsed(heard: &Heard) -> Value {
    assert_eq!(heard.done().finish_reason, FinishReason::Stop, "{heard:?}");
    serde_json::from_str(&heard.text).unwrap_or_else(|error| panic!("{error}: {heard:?}"))
}

#[tokio::test]
async fn an_answer_follows_its_schema_after_a_thought_and_without_one() {
    let engine = MlxEngine::start();
    for thinking in [Thinking::Off, Thinking::On] {
        let free = hear(engine.generate(question(SUM, thinking))).await;
        let heard = hear(engine.generate(under(sum(), question(SUM, thinking)))).await;
        let value = parsed(&heard);
        assert_eq!(
            fault(
                &sum(),
                &json!({"type": "object", "properties": {"sum": {"type": "integer", "minimum": -1e9, "maximum": 1e9},
            "sure": {"type": "boolean"}}, "required": ["sum", "sure"]}),
                &value
            ),
            None
        );
        // The grammar sleeps through the thought.
        assert_eq!(heard.thinking, free.thinking);
        assert_eq!(
            heard.tokens.len(),
            heard.done().usage.unwrap().completion_tokens as usize
        );
    }
}

/// Much work for the compiler of grammars, twice as much with each level: it merges two copies of the next one.
fn slow(levels: usize) -> Value {
    let level = |next: usize| {
        let next = json!({"$ref": format!("#/$defs/{next}"), "type": "object"});
        json!({"type": "object", "properties": {"a": next, "b": next}})
    };
    let mut all: serde_json::Map<String, Value> = (0..levels).map(|n| (n.to_string(), level(n + 1))).collect();
    all.insert(levels.to_string(), json!({"type": "integer"}));
    json!({"$defs": all, "$ref": "#/$defs/0"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_keeps_its_pace_while_the_schema_of_another_is_compiled() {
    let engine = MlxEngine::start();
    // One that is compiled in the end, and one that is given up.
    for levels in [12, 14] {
        let count = || {
            engine.generate(Request {
                max_tokens: Some(3000),
                ..question("Count from 1 to 500.", Thinking::Off)
            })
        };
        let mut chat = count();
        while !matches!(chat.events.recv().await, Some(EngineEvent::Delta { .. })) {}
        let begun = Instant::now();
        let mut limited = engine.generate(Request {
            priority: Priority::Api,
            ..under(slow(levels), question(SUM, Thinking::Off))
        });
        let (mut last, mut longest, mut heard) = (Instant::now(), Duration::ZERO, 0);
        let first = loop {
            tokio::select! {
                event = limited.events.recv() => match event {
                    Some(EngineEvent::Delta { .. } | EngineEvent::Failed(_)) => break event,
                    Some(_) => {}
                    None => panic!("the job ends without a word"),
                },
                event = chat.events.recv() => {
                    assert!(!matches!(event, None | Some(EngineEvent::Failed(_))), "{event:?}");
                    // A quick computer has counted before the schema is compiled.
                    if matches!(event, Some(EngineEvent::Done(_))) {
                        chat = count();
                    }
                    heard += 1;
                    longest = longest.max(last.elapsed());
                    last = Instant::now();
                }
            }
        };
        let whole = begun.elapsed();
        longest = longest.max(last.elapsed());
        chat.cancel.cancel();
        println!("report: the longest gap between two tokens is {longest:?} while a schema is compiled for {whole:?}");
        assert_eq!(matches!(first, Some(EngineEvent::Failed(_))), levels == 14, "{first:?}");
        // A worker that compiles would let a few come before the one that waited, and none meanwhile.
        assert!(heard > 10, "{heard} pieces, {longest:?} of {whole:?}");
    }
}

#[tokio::test]
async fn what_is_spelled_in_a_schema_s_answer_is_text() {
    let engine = MlxEngine::start();
    let words = "<think>no</think> <tool_call>{\"name\": \"x\"}</tool_call>";
    let heard = hear(engine.generate(under(json!({"const": words}), question("Hi", Thinking::On)))).await;
    assert_eq!(parsed(&heard), words);
    assert!(heard.calls.is_empty());
}

#[tokio::test]
async fn a_call_is_still_possible_beside_a_schema() {
    let tool = json!({"type": "function", "function": {"name": "get_weather", "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}});
    let request = Request {
        tools: vec![tool],
        ..under(sum(), question("What is the weather in Oslo?", Thinking::Off))
    };
    let heard = hear(MlxEngine::start().generate(request)).await;
    assert_eq!(
        (heard.done().finish_reason, heard.calls.len()),
        (FinishReason::ToolCalls, 1),
        "{heard:?}"
    );
    assert_eq!(heard.calls[0].arguments, json!({"city": "Oslo"}));
}

fn tools() -> Vec<Value> {
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "description": "", "parameters": parameters}});
    vec![tool("set_alarm", alarm()), tool("add_task", task())]
}

fn alarm() -> Value {
    json!({"type": "object", "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}, "label": {"enum": ["work", "home"]}},
        "required": ["hour", "label"], "additionalProperties": false})
}

fn task() -> Value {
    json!({"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 8}, "minItems": 1,
        "maxItems": 2}, "done": {"type": "boolean"}}, "required": ["words"], "additionalProperties": false})
}

fn judge(heard: &Heard) {
    assert_eq!(heard.done().finish_reason, FinishReason::ToolCalls, "{heard:?}");
    assert_eq!(heard.text.trim(), "");
    for call in &heard.calls {
        let schema = if call.name == "set_alarm" { alarm() } else { task() };
        assert_eq!(fault(&schema, &schema, &call.arguments), None, "{heard:?}");
    }
}

#[tokio::test]
async fn a_required_call_is_made_and_follows_its_tool_whatever_was_asked() {
    let (engine, mut otherwise) = (MlxEngine::start(), 0);
    for thinking in [Thinking::Off, Thinking::On] {
        for text in ["Tell me a story.", "What is 2 + 3?"] {
            let free = Request {
                tools: tools(),
                max_tokens: Some(600),
                ..question(text, thinking)
            };
            let required = Request {
                call_required: true,
                // The answer's schema has nothing to say of a call.
                schema: Some(sum()),
                ..free.clone()
            };
            judge(&hear(engine.generate(required)).await);
            otherwise += usize::from(hear(engine.generate(free)).await.calls.is_empty());
        }
    }
    println!("report: {otherwise} of 4 questions are answered without a call if none is required");
    assert!(otherwise > 0);
}

/// Pebble's weights behind Hermes' markers and template: a model that has never seen what it has to write.
fn hermes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(crate::common::pebble_dir()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let file = folder.path().join("tokenizer.json");
    let mut tokenizer = std::fs::read_to_string(&file).unwrap();
    for (from, to) in [
        ("<|tool_call>", "<tool_call>"),
        ("<tool_call|>", "</tool_call>"),
        ("<|channel>", "<think>"),
        ("<channel|>", "</think>"),
    ] {
        tokenizer = tokenizer.replace(from, to);
    }
    std::fs::write(file, tokenizer).unwrap();
    let template = r#"{% for m in messages %}<|turn>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<turn|>
{% endfor %}{% if add_generation_prompt %}<|turn>model
{% endif %}"#;
    std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    folder
}

#[tokio::test]
async fn calls_in_hermes_form_are_required_of_a_model_that_never_saw_it() {
    let (engine, folder) = (MlxEngine::start(), hermes());
    let jobs: Vec<JobHandle> = (0..8)
        .map(|seed| {
            engine.generate(Request {
                tools: tools(),
                call_required: true,
                thinking: Some(Thinking::Off),
                max_tokens: Some(300),
                sampling: Sampling {
                    temperature: Some(1.0),
                    seed: Some(seed),
                    ..Sampling::default()
                },
                priority: Priority::Api,
                ..Request::new(
                    source(folder.path()),
                    vec![Message::text(Role::User, "Wake me at seven.")],
                )
            })
        })
        .collect();
    let (mut whole, mut cut) = (0, 0);
    for heard in join_all(jobs.into_iter().map(hear)).await {
        if heard.done().finish_reason == FinishReason::Length {
            cut += 1;
        } else {
            judge(&heard);
            whole += 1;
        }
    }
    println!("report: calls in Hermes' form by Pebble's weights: {whole} whole, {cut} cut at their length");
    assert!(whole > 0);
}

#[tokio::test]
async fn a_call_whose_tool_cannot_be_honoured_is_required_in_words_alone() {
    let engine = MlxEngine::start();
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"not": {}}}}}});
    let request = |call_required| Request {
        tools: vec![tool.clone()],
        call_required,
        ..question("What is 2 + 3?", Thinking::Off)
    };
    let required = hear(engine.generate(request(true))).await;
    assert_eq!(required.tokens, hear(engine.generate(request(false))).await.tokens);
    required.done();
}

#[tokio::test]
async fn what_was_begun_goes_on_only_if_it_follows_the_schema() {
    let engine = MlxEngine::start();
    let begun = |text: &str| Request {
        answer_prefix: Some(AnswerPrefix::Text {
            thinking: None,
            text: Some(text.into()),
        }),
        ..under(sum(), question(SUM, Thinking::Off))
    };
    let heard = hear(engine.generate(begun("{\"sum\": 12"))).await;
    assert!(heard.text.starts_with("{\"sum\": 12"), "{heard:?}");
    parsed(&heard);
    let refused = hear(engine.generate(begun("The sum is"))).await;
    assert_eq!(refused.error().code, ErrorCode::BadRequest);
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_before_a_model_is_loaded() {
    let engine = MlxEngine::start();
    let missing = source(std::path::Path::new("/nowhere"));
    let ask = |schema: Value| {
        under(
            schema,
            Request::new(missing.clone(), vec![Message::text(Role::User, "Hi")]),
        )
    };
    let refused = hear(engine.generate(ask(json!({"type": "array", "uniqueItems": true})))).await;
    assert_eq!(refused.error().code, ErrorCode::BadRequest);
    assert!(refused.error().message.contains("uniqueItems"));
    let stops = Request {
        stop: vec!["a".into()],
        ..ask(json!({}))
    };
    assert!(hear(engine.generate(stops))
        .await
        .error()
        .message
        .contains("stop texts"));
}

#[tokio::test]
async fn answers_under_schemas_and_free_ones_share_a_batch() {
    let engine = MlxEngine::start();
    let mut events = engine.load(pebble());
    while events.recv().await.is_some() {}
    engine.set_prefix_cache_budget(0).unwrap();
    let seeded = |schema: Option<Value>, seed| Request {
        schema,
        sampling: Sampling {
            temperature: Some(1.2),
            seed: Some(seed),
            repetition_penalty: Some(1.1),
            ..Sampling::default()
        },
        thinking_budget: Some(12),
        max_tokens: Some(80),
        priority: Priority::Api,
        ..question(SUM, Thinking::On)
    };
    let requests: Vec<Request> = (0..6).map(|index| seeded((index % 2 == 0).then(sum), index)).collect();
    let mut alone = Vec::new();
    for request in &requests {
        alone.push(hear(engine.generate(request.clone())).await);
    }
    let jobs: Vec<JobHandle> = requests.into_iter().map(|request| engine.generate(request)).collect();
    let together = join_all(jobs.into_iter().map(hear)).await;
    for (alone, together) in alone.iter().zip(&together) {
        assert_eq!((&alone.tokens, &alone.text), (&together.tokens, &together.text));
    }
}

#[tokio::test]
async fn what_is_drafted_under_a_schema_follows_it() {
    let engine = |prompt_lookup| {
        MlxEngine::with_options(EngineOptions {
            prompt_lookup,
            ..EngineOptions::default()
        })
    };
    let (plain, drafting) = (engine(Drafting::Off), engine(Drafting::Always));
    let words = json!({"type": "array", "items": {"const": "seven times seven"}, "minItems": 4, "maxItems": 4});
    let any = json!({"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 6});
    let drawn = Sampling {
        temperature: Some(1.2),
        seed: Some(5),
        repetition_penalty: Some(1.1),
        ..Sampling::default()
    };
    for (schema, sampling) in [(&words, Sampling::greedy()), (&any, Sampling::greedy()), (&any, drawn)] {
        let request = Request {
            sampling,
            max_tokens: Some(100),
            ..under(schema.clone(), question("Write it again and again.", Thinking::Off))
        };
        let expected = hear(plain.generate(request.clone())).await;
        let heard = hear(drafting.generate(request)).await;
        assert_eq!(heard.tokens, expected.tokens, "{schema}");
        assert_eq!(expected.done().usage.unwrap().speculation, None);
        let speculation = heard.done().usage.unwrap().speculation.unwrap_or_default();
        println!("report: prompt lookup under a schema: {speculation:?}");
        assert!(
            *schema != words || speculation.accepted_draft_tokens > 10,
            "{speculation:?}"
        );
    }
    let heard = hear(drafting.generate(under(words, question("Write it again and again.", Thinking::Off)))).await;
    assert_eq!(parsed(&heard), json!(vec!["seven times seven"; 4]));
}

#[tokio::test]
async fn an_answer_begun_anew_after_a_failed_step_still_follows_its_schema() {
    let engine = crate::common::engine_without_prefixes().await;
    let request = || Request {
        sampling: Sampling {
            temperature: Some(1.0),
            seed: Some(5),
            ..Sampling::default()
        },
        priority: Priority::Api,
        ..under(sum(), question(SUM, Thinking::On))
    };
    let alone = hear(engine.generate(request())).await;
    let failing = engine.panicking_job(crate::common::story(200), 6);
    let beside = engine.generate(request());
    assert_eq!(hear(failing).await.error().code, ErrorCode::Engine);
    let heard = hear(beside).await;
    assert_eq!(parsed(&heard), parsed(&alone));
    assert_eq!(heard.tokens, alone.tokens);
}

/// The random models of the oracle, each with a way of speaking of its own.
fn random_models() -> Vec<FolderSource> {
    let Some(families) = computed("families") else {
        return Vec::new();
    };
    let names = ["qwen3", "gemma4-e2b", "llama-llama3", "lfm2", "qwen3.5"];
    names.iter().map(|name| source(&families.join(name))).collect()
}

#[tokio::test]
async fn answers_under_random_schemas_parse_and_validate() {
    let (engine, mut random) = (MlxEngine::start(), Random::new(seed()));
    let answers = if std::env::var_os("PONDER_FULL").is_some() {
        200
    } else {
        20
    };
    let models: Vec<FolderSource> = std::iter::once(pebble()).chain(random_models()).collect();
    let (mut whole, mut cut) = (0, 0);
    for (index, model) in models.iter().enumerate() {
        let share = answers / models.len() + usize::from(index < answers % models.len());
        let schemas: Vec<Value> = (0..share).map(|_| random_schemas::random(&mut random)).collect();
        let jobs = schemas.iter().enumerate().map(|(at, schema)| {
            let sampling = match at % 2 {
                0 => Sampling::greedy(),
                _ => Sampling {
                    temperature: Some(1.0),
                    seed: Some(at as u64),
                    ..Sampling::default()
                },
            };
            engine.generate(Request {
                schema: Some(schema.clone()),
                thinking: Some(Thinking::Off),
                max_tokens: Some(400),
                sampling,
                priority: Priority::Chat,
                ..Request::new(model.clone(), vec![Message::text(Role::User, "Tell me of a city.")])
            })
        });
        let jobs: Vec<JobHandle> = jobs.collect();
        for (schema, heard) in schemas.iter().zip(join_all(jobs.into_iter().map(hear)).await) {
            if heard.done().finish_reason == FinishReason::Length {
                cut += 1;
                continue;
            }
            assert_eq!(fault(schema, schema, &parsed(&heard)), None, "{}", model.reference);
            whole += 1;
        }
    }
    println!(
        "report: answers under random schemas by {} models: {whole} parse and validate, {cut} cut at their length",
        models.len()
    );
    assert!(whole * 2 > answers, "{whole} of {answers}");
}
