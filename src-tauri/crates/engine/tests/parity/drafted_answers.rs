//! Whole answers with drafts by a smaller model or from what repeats itself: the greedy ones are those without, and the
//! drawn ones follow the distribution of those without. `PONDER_FULL` asks for all of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::files::{copy_words, read_entries, write_entries};
use crate::common::oracle::{python, seed, Written};
use crate::common::{hear, source, Heard, Plenty};
use engine::{Drafting, EngineOptions, MlxEngine};
use protocol::{Engine, LocalEngine, Message, NoticeCode, Request, Role, Sampling, SpeculationUsage, Thinking};
use serde_json::{json, Value};
use tempfile::TempDir;

/// Full attention, sliding windows, recurrent layers, and sinks beside windows; all of them in 32 bit floats.
const FAMILIES: [&str; 4] = ["qwen3", "gemma3-text", "qwen3.5", "gpt-oss"];

/// Greedy answers are longer than a sliding window.
const ANSWER: u32 = 40;

/// Tokens of a drawn answer whose distribution is looked at.
const PLACES: usize = 10;

/// Deviations from the mean of a chi-square distribution that chance does not reach: in one of 30 million.
const UNLIKELY: f64 = 5.4;

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
    {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is defined and \
    enable_thinking is false %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}{% endif %}";

fn full() -> bool {
    std::env::var_os("PONDER_FULL").is_some()
}

/// A copy of a tiny model that can be told to think, a part of whose numbers is changed by `wrong` bits.
fn copy(from: &Path, wrong: u8) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_words(from, folder.path());
    let read = |name: &str| -> Value { serde_json::from_slice(&fs::read(from.join(name)).unwrap()).unwrap() };
    let (mut tokenizer, mut config) = (read("tokenizer.json"), read("tokenizer_config.json"));
    let added = tokenizer["added_tokens"].as_array_mut().unwrap();
    for content in ["<think>", "</think>"] {
        let last = added.last().unwrap().clone();
        let id = last["id"].as_u64().unwrap() + 1;
        let token = json!({"id": id, "content": content});
        let filled = last.as_object().unwrap().iter().chain(token.as_object().unwrap());
        added.push(filled.map(|(name, value)| (name.clone(), value.clone())).collect());
    }
    config["chat_template"] = TEMPLATE.into();
    fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    let mut entries = read_entries(&from.join("model.safetensors"));
    let matrices = entries
        .iter_mut()
        .filter(|entry| entry.dtype == "F32" && entry.shape.len() > 1);
    let numbers = matrices.flat_map(|entry| entry.data.chunks_exact_mut(4));
    let changed = numbers.step_by(3).map(|number| number[2] ^= wrong).count();
    assert!(changed > 1000, "{changed} numbers");
    write_entries(&folder.path().join("model.safetensors"), &entries);
    folder
}

/// A family's model, and one that says mostly the same.
struct Pair {
    model: TempDir,
    noisy: TempDir,
}

/// The families, if there is a Python that writes them.
fn pairs() -> Option<Vec<(&'static str, Pair)>> {
    let written = Written::new(&python()?, seed(), &FAMILIES, true);
    let pair = |name| {
        let folder = written.model(name);
        // By a 64th of its value.
        let pair = Pair {
            model: copy(&folder, 0),
            noisy: copy(&folder, 0x02),
        };
        (name, pair)
    };
    Some(FAMILIES.map(pair).into())
}

/// Engines without drafts, with those of a model, and with those that are looked up.
struct Engines {
    plain: MlxEngine,
    by_model: MlxEngine,
    looked_up: MlxEngine,
}

impl Engines {
    fn new() -> Self {
        let engine = |prompt_lookup, draft_model| {
            let engine = MlxEngine::with_options(EngineOptions {
                prompt_lookup,
                draft_model,
                memory_guard: Some(Arc::new(Plenty)),
                ..EngineOptions::default()
            });
            engine.compute_exactly().unwrap();
            engine
        };
        Self {
            plain: engine(Drafting::Off, Drafting::Off),
            by_model: engine(Drafting::Off, Drafting::Always),
            looked_up: engine(Drafting::Always, Drafting::Off),
        }
    }

    async fn unload(&self) {
        for engine in [&self.plain, &self.by_model, &self.looked_up] {
            engine.unload_all().await.unwrap();
        }
    }
}

/// The origin of drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Model,
    Lookup,
}

async fn ask(engine: &MlxEngine, request: &Request) -> Heard {
    let heard = hear(engine.generate(request.clone())).await;
    assert!(
        heard
            .notices
            .iter()
            .all(|notice| notice.code != NoticeCode::DraftModelUnused),
        "{:?}",
        heard.notices
    );
    heard
}

async fn ask_drafted(engines: &Engines, by: By, request: &Request, noisy: &Path) -> Heard {
    match by {
        By::Lookup => ask(&engines.looked_up, request).await,
        By::Model => {
            let draft_model = Some(source(noisy));
            ask(
                &engines.by_model,
                &Request {
                    draft_model,
                    ..request.clone()
                },
            )
            .await
        }
    }
}

fn said(heard: &Heard) -> (&str, &str, &[u32], Option<u32>) {
    let usage = heard.done().usage.unwrap();
    (&heard.text, &heard.thinking, &heard.tokens, usage.thinking_tokens)
}

fn add(sum: &mut SpeculationUsage, heard: &Heard) {
    let usage = heard.done().usage.unwrap().speculation.unwrap_or_default();
    sum.draft_tokens += usage.draft_tokens;
    sum.accepted_draft_tokens += usage.accepted_draft_tokens;
    sum.decode_steps += usage.decode_steps;
}

/// The next number of a fixed sequence, below `end`.
fn number(state: &mut u64, end: usize) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % end
}

/// Question `index`: of one to some dozens of words, every other one with turns before it, a quarter each with a schema
/// and with a budget of thinking.
fn question(model: &Path, index: usize) -> (&'static str, Request) {
    const WORDS: [&str; 12] = [
        "sea", "stone", "the", "of", "seven", "42", "and", "river", "tells", "red", "is", "nine?",
    ];
    let mut state = 7 + index as u64;
    let mut text = || -> String {
        let words = 1 + number(&mut state, 40);
        (0..words)
            .map(|_| WORDS[number(&mut state, WORDS.len())])
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut messages = vec![Message::text(Role::User, text())];
    if index % 2 == 1 {
        messages.extend([
            Message::text(Role::Assistant, text()),
            Message::text(Role::User, text()),
        ]);
    }
    let request = Request {
        max_tokens: Some(ANSWER),
        sampling: Sampling::greedy(),
        thinking: Some(Thinking::Off),
        ..Request::new(source(model), messages)
    };
    match index / 2 % 4 {
        0 => {
            let schema = json!({"type": "string", "maxLength": 60});
            (
                "schema",
                Request {
                    schema: Some(schema),
                    ..request
                },
            )
        }
        1 => {
            let budget = Some(1 + index as u32 % 23);
            (
                "budget",
                Request {
                    thinking: Some(Thinking::On),
                    thinking_budget: budget,
                    ..request
                },
            )
        }
        _ => ("plain", request),
    }
}

#[tokio::test]
async fn greedy_answers_of_four_families_are_the_same_with_and_without_drafts() {
    let Some(pairs) = pairs() else { return };
    let (engines, prompts) = (Engines::new(), if full() { 200 } else { 8 });
    for (name, pair) in &pairs {
        let mut sums = BTreeMap::<_, SpeculationUsage>::new();
        for index in 0..prompts {
            let (kind, request) = question(pair.model.path(), index);
            let expected = ask(&engines.plain, &request).await;
            for by in [By::Model, By::Lookup] {
                let heard = ask_drafted(&engines, by, &request, pair.noisy.path()).await;
                assert_eq!(said(&heard), said(&expected), "{name}, {by:?}, {kind}, prompt {index}");
                add(sums.entry((by, kind)).or_default(), &heard);
            }
        }
        engines.unload().await;
        let mut of_all = BTreeMap::<_, [u32; 2]>::new();
        for ((by, kind), sum) in sums {
            println!(
                "report: drafted answers: {name}, {by:?}, {kind}: {} of {} draft tokens accepted in {} steps",
                sum.accepted_draft_tokens, sum.draft_tokens, sum.decode_steps
            );
            let of_all = of_all.entry(by).or_default();
            of_all[0] += sum.accepted_draft_tokens;
            of_all[1] += sum.draft_tokens - sum.accepted_draft_tokens;
        }
        for (by, [accepted, wrong]) in of_all {
            // Random models may never say what stands in a text; drawn answers of few letters do.
            let right = accepted > 0 || by == By::Lookup;
            assert!(right && (wrong > 0 || !full()), "{name}, {by:?}: {accepted}, {wrong}");
        }
    }
}

/// By place in the answer and by token, how often it came without drafts and with them.
#[derive(Default)]
struct Counts(BTreeMap<(usize, Option<u32>), [f64; 2]>);

impl Counts {
    /// Counts an answer, which has an end where it is shorter than others.
    fn add(&mut self, tokens: &[u32], drafted: bool) {
        for place in 0..PLACES {
            let token = tokens.get(place).copied();
            self.0.entry((place, token)).or_default()[usize::from(drafted)] += 1.0;
        }
    }

    /// The chi-square statistic of whether both have one distribution, at the place where it is the most unusual one, as
    /// deviations of a normal distribution (Wilson and Hilferty, 1931). Both counted as many answers.
    fn deviations(&self) -> f64 {
        /// A token that came less often is counted with the others like it.
        const LEAST: f64 = 10.0;
        let at = |place: usize| {
            let (mut sum, mut cells, mut rare) = (0.0, 0.0, [0.0; 2]);
            let mut cell = |[a, b]: [f64; 2]| {
                if a + b > 0.0 {
                    sum += (a - b) * (a - b) / (a + b);
                    cells += 1.0;
                }
            };
            for ((_, _), counts) in self.0.range((place, None)..(place + 1, None)) {
                match counts[0] + counts[1] >= LEAST {
                    true => cell(*counts),
                    false => (0..2).for_each(|side| rare[side] += counts[side]),
                }
            }
            cell(rare);
            let freedom: f64 = cells - 1.0;
            let spread = 2.0 / (9.0 * freedom);
            match freedom > 0.0 {
                true => ((sum / freedom).cbrt() - (1.0 - spread)) / spread.sqrt(),
                false => f64::NEG_INFINITY,
            }
        };
        (0..PLACES).map(at).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Questions whose answers are drawn, and what drafts them.
fn drawn(model: &Path) -> [(&'static str, By, Request); 4] {
    let warm = Sampling {
        temperature: Some(1.0),
        ..Sampling::neutral()
    };
    let asked = Request {
        max_tokens: Some(PLACES as u32),
        sampling: Sampling {
            top_p: Some(0.95),
            ..warm.clone()
        },
        thinking: Some(Thinking::Off),
        ..Request::new(source(model), vec![Message::text(Role::User, "Tell me of the sea.")])
    };
    let letters = json!({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 6, "maxItems": 6});
    // Answers of few letters soon repeat themselves.
    let few = Sampling {
        logit_bias: (64..67).map(|token| (token, 30.0)).collect(),
        ..warm.clone()
    };
    [
        ("drawn", By::Model, asked.clone()),
        (
            "budget",
            By::Model,
            Request {
                thinking: Some(Thinking::On),
                thinking_budget: Some(6),
                ..asked.clone()
            },
        ),
        (
            "letters",
            By::Lookup,
            Request {
                sampling: few,
                max_tokens: Some(30),
                ..asked.clone()
            },
        ),
        (
            "schema",
            By::Lookup,
            Request {
                sampling: warm,
                schema: Some(letters),
                max_tokens: Some(40),
                ..asked
            },
        ),
    ]
}

fn seeded(request: &Request, seed: u64) -> Request {
    Request {
        sampling: Sampling {
            seed: Some(seed),
            ..request.sampling.clone()
        },
        ..request.clone()
    }
}

/// The last tokens of an answer, which are the ones that were drafted where something repeats itself.
fn last(heard: &Heard, by: By) -> &[u32] {
    match by {
        By::Model => &heard.tokens,
        By::Lookup => &heard.tokens[heard.tokens.len().saturating_sub(PLACES)..],
    }
}

#[tokio::test]
async fn drafted_tokens_are_distributed_as_those_without_drafts() {
    let Some(pairs) = pairs() else { return };
    let (engines, answers) = (Engines::new(), if full() { 600 } else { 40 });
    for (index, (name, pair)) in pairs.iter().enumerate() {
        let kinds = drawn(pair.model.path()).into_iter().enumerate();
        // A kind of each family, or all of all.
        for (_, (kind, by, request)) in kinds.filter(|(kind, _)| full() || *kind == index) {
            let (mut counts, mut sum) = (Counts::default(), SpeculationUsage::default());
            for seed in 0..answers {
                let plain = ask(&engines.plain, &seeded(&request, seed)).await;
                counts.add(last(&plain, by), false);
                // Of seeds of their own: the same ones would give the same answers.
                let drafted = seeded(&request, seed + (1 << 32));
                let heard = ask_drafted(&engines, by, &drafted, pair.noisy.path()).await;
                counts.add(last(&heard, by), true);
                add(&mut sum, &heard);
            }
            let deviations = counts.deviations();
            println!(
                "report: drafted draws: {name}, {kind}: {answers} answers each, chi-square {deviations:.1} deviations above \
                 the mean at most; {} of {} draft tokens accepted",
                sum.accepted_draft_tokens, sum.draft_tokens
            );
            assert!(deviations < UNLIKELY, "{name}, {kind}: {deviations}");
            let wrong = sum.draft_tokens - sum.accepted_draft_tokens;
            assert!(sum.accepted_draft_tokens > 0 && wrong > 0, "{name}, {kind}: {sum:?}");
        }
        engines.unload().await;
    }
}

#[tokio::test]
async fn the_statistic_tells_a_temperature_from_a_little_lower_one() {
    let Some(pairs) = pairs() else { return };
    let (engines, (_, pair)) = (Engines::new(), &pairs[0]);
    let [(_, _, request), ..] = drawn(pair.model.path());
    let cooler = Sampling {
        temperature: Some(0.6),
        ..request.sampling.clone()
    };
    let cooler = Request {
        sampling: cooler,
        ..request.clone()
    };
    let (mut same, mut other) = (Counts::default(), Counts::default());
    for seed in 0..if full() { 1000 } else { 150 } {
        let tokens = ask(&engines.plain, &seeded(&request, seed)).await.tokens;
        same.add(&tokens, false);
        other.add(&tokens, false);
        same.add(
            &ask(&engines.plain, &seeded(&request, seed + (1 << 32))).await.tokens,
            true,
        );
        other.add(
            &ask(&engines.plain, &seeded(&cooler, seed + (1 << 32))).await.tokens,
            true,
        );
    }
    let (same, other) = (same.deviations(), other.deviations());
    println!("report: drafted draws: {same:.1} deviations of the same temperature, {other:.1} of another");
    assert!(same < UNLIKELY && other > UNLIKELY, "{same}, {other}");
}
