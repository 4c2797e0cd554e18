//! Answers that a smaller model drafts are those without it, whatever is asked of them and whatever the smaller model
//! says.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::files::{read_entries, write_entries};
use crate::common::{hear, pebble_dir, question, source, Plenty};
use crate::prompt_lookup::{ask, exam, kinds, said, speculation};
use engine::{Drafting, EngineOptions, MlxEngine};
use protocol::{
    Engine, FolderSource, LocalEngine, MemoryGuard, Message, NoticeCode, Priority, Request, Role, Sampling,
    SpeculationUsage, Thinking,
};
use serde_json::{json, Value};
use tempfile::TempDir;

/// An engine whose answers are drafted by their draft model alone, in every mode but `Off`.
fn engine(draft_model: Drafting) -> MlxEngine {
    guarded(draft_model, Arc::new(Plenty))
}

fn guarded(draft_model: Drafting, guard: Arc<dyn MemoryGuard>) -> MlxEngine {
    MlxEngine::with_options(EngineOptions {
        prompt_lookup: Drafting::Off,
        draft_model,
        memory_guard: Some(guard),
        ..EngineOptions::default()
    })
}

fn copy_of_pebble(into: &Path) {
    for entry in fs::read_dir(pebble_dir()).unwrap().flatten() {
        fs::copy(entry.path(), into.join(entry.file_name())).unwrap();
    }
}

/// A copy of Pebble, a part of whose weights is a little wrong: it says mostly the same.
fn noisy() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_of_pebble(folder.path());
    let path = folder.path().join("model.safetensors");
    let mut entries = read_entries(&path);
    let scales = entries
        .iter_mut()
        .filter(|entry| entry.name.ends_with(".scales") && !entry.name.contains("vision"));
    let numbers = scales.flat_map(|entry| entry.data.chunks_exact_mut(2));
    // By an eighth of its value.
    let changed = numbers.step_by(3).map(|number| number[0] ^= 0x10).count();
    assert!(changed > 1000, "{changed} numbers were changed");
    write_entries(&path, &entries);
    folder
}

fn drafted(request: &Request, by: &Path) -> Request {
    Request {
        draft_model: Some(source(by)),
        ..request.clone()
    }
}

#[tokio::test]
async fn answers_of_every_kind_are_the_same_with_and_without_a_draft_model() {
    let (plain, drafting, noisy) = (engine(Drafting::Off), engine(Drafting::Always), noisy());
    let mut by_kind = std::collections::BTreeMap::new();
    let exam = exam(if std::env::var_os("PONDER_FULL").is_some() {
        200
    } else {
        7
    });
    let exam = exam.into_iter().map(|request| ("exam", request));
    for (kind, request) in kinds().into_iter().chain(exam) {
        let expected = ask(&plain, &request).await;
        let heard = ask(&drafting, &drafted(&request, noisy.path())).await;
        assert_eq!(said(&heard), said(&expected), "{kind}: {request:?}");
        let usage = speculation(&heard);
        let sum: &mut SpeculationUsage = by_kind.entry(kind).or_default();
        sum.draft_tokens += usage.draft_tokens;
        sum.accepted_draft_tokens += usage.accepted_draft_tokens;
        sum.decode_steps += usage.decode_steps;
    }
    let mut wrong = 0;
    for (kind, sum) in by_kind {
        let tokens = sum.decode_steps + sum.accepted_draft_tokens;
        println!(
            "report: draft model: {kind}: {} of {} draft tokens accepted, {:.2} tokens per step",
            sum.accepted_draft_tokens,
            sum.draft_tokens,
            f64::from(tokens) / f64::from(sum.decode_steps.max(1))
        );
        // A bias makes the model repeat itself, and the draft model knows nothing of it.
        assert!(
            sum.accepted_draft_tokens > 0 || kind == "repetition",
            "{kind} accepts none"
        );
        wrong += sum.draft_tokens - sum.accepted_draft_tokens;
    }
    assert!(wrong > 100, "{wrong} draft tokens were wrong");
}

#[tokio::test]
async fn a_draft_model_works_together_with_schemas_and_budgets_of_thinking() {
    let (plain, drafting, noisy) = (engine(Drafting::Off), engine(Drafting::Always), noisy());
    // A schema leaves tokens that are about as likely, and a rounding would choose among them.
    let _ = [&plain, &drafting].map(|engine| engine.compute_exactly().unwrap());
    let schema = json!({
        "type": "object",
        "properties": {"sum": {"type": "integer"}, "steps": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
        "required": ["sum", "steps"]
    });
    let mut accepted = 0;
    for (seed, budget) in [(None, None), (None, Some(12)), (Some(3), None), (Some(4), Some(9))] {
        let request = Request {
            schema: Some(schema.clone()),
            thinking_budget: budget,
            max_tokens: Some(90),
            sampling: Sampling {
                temperature: Some(if seed.is_some() { 0.9 } else { 0.0 }),
                seed,
                ..Sampling::default()
            },
            ..question("What is 347 + 589?", Thinking::On)
        };
        let expected = ask(&plain, &request).await;
        let heard = ask(&drafting, &drafted(&request, noisy.path())).await;
        assert_eq!(said(&heard), said(&expected), "seed {seed:?}, budget {budget:?}");
        accepted += speculation(&heard).accepted_draft_tokens;
    }
    println!("report: draft model under a schema: {accepted} draft tokens accepted");
    assert!(accepted > 20);
}

#[tokio::test]
async fn turns_of_a_chat_go_on_from_what_both_models_have_read() {
    let (plain, drafting, noisy) = (engine(Drafting::Off), engine(Drafting::Always), noisy());
    let mut messages = Vec::new();
    for turn in 0..3 {
        messages.push(Message::text(Role::User, "Write the multiplication table of 7."));
        let request = Request {
            messages: messages.clone(),
            ..question("", Thinking::Off)
        };
        let expected = ask(&plain, &request).await;
        let heard = ask(&drafting, &drafted(&request, noisy.path())).await;
        assert_eq!(said(&heard), said(&expected), "turn {turn}");
        assert!(speculation(&heard).accepted_draft_tokens > 10, "turn {turn}");
        messages.push(Message::text(Role::Assistant, heard.text));
    }
    // One that drafts its own answers alone is of no use, and harms nothing.
    let request = question("Tell me a story.", Thinking::Off);
    let expected = ask(&plain, &request).await;
    let heard = ask(&drafting, &drafted(&request, &pebble_dir())).await;
    assert_eq!(said(&heard), said(&expected));
    drafting.unload_all().await.unwrap();
    assert_eq!(drafting.inspect().unwrap().living, 0);
}

#[tokio::test]
async fn answers_side_by_side_are_drafted_by_none() {
    let (plain, drafting, noisy) = (engine(Drafting::Off), engine(Drafting::Always), noisy());
    let request = Request {
        priority: Priority::Api,
        ..question("Write the multiplication table of 7.", Thinking::Off)
    };
    let expected = ask(&plain, &request).await;
    let jobs = [(); 3].map(|()| drafting.generate(drafted(&request, noisy.path())));
    for job in jobs {
        assert_eq!(said(&hear(job).await), said(&expected));
    }
    let failed = hear(drafting.panicking_job(drafted(&request, noisy.path()), 12)).await;
    assert!(failed.ends[0].is_err());
    assert_eq!(
        said(&ask(&drafting, &drafted(&request, noisy.path())).await),
        said(&expected)
    );
}

/// A guard that has room for Pebble alone.
#[derive(Debug)]
struct ForPebble;

impl MemoryGuard for ForPebble {
    fn before_load(&self, model: &FolderSource, _: &str, _: u64, _: u64) -> protocol::Result<()> {
        match model.path == pebble_dir() {
            true => Ok(()),
            false => Err(protocol::Error::new(
                protocol::ErrorCode::MemoryShort,
                "there is no room",
            )),
        }
    }

    fn before_chunk(&self, _: u64, _: &str, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

#[tokio::test]
async fn a_draft_model_that_cannot_be_used_is_told_and_the_answer_is_given() {
    let (drafting, noisy) = (engine(Drafting::Always), noisy());
    let request = question("What is 347 + 589?", Thinking::Off);
    let expected = ask(&drafting, &request).await;
    let told = |heard: &crate::common::Heard| {
        let notices: Vec<_> = heard.notices.iter().map(|notice| notice.code).collect();
        assert_eq!(notices, [NoticeCode::DraftModelUnused]);
        assert_eq!((&heard.tokens, &heard.text), (&expected.tokens, &expected.text));
        heard.notices[0].message.clone()
    };
    let gone = ask(&drafting, &drafted(&request, &PathBuf::from("/nowhere"))).await;
    assert!(told(&gone).contains("/nowhere"), "{}", told(&gone));

    let other_tokens = tempfile::tempdir().unwrap();
    copy_of_pebble(other_tokens.path());
    let path = other_tokens.path().join("tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let words = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    let (first, second) = (
        words.keys().nth(300).unwrap().clone(),
        words.keys().nth(301).unwrap().clone(),
    );
    let id = words[&first].take();
    words[&first] = std::mem::replace(&mut words[&second], id);
    fs::write(&path, tokenizer.to_string()).unwrap();
    let other = ask(&drafting, &drafted(&request, other_tokens.path())).await;
    assert!(told(&other).contains("other tokens"), "{}", told(&other));

    let short = guarded(Drafting::Always, Arc::new(ForPebble));
    let crowded = ask(&short, &drafted(&request, noisy.path())).await;
    assert!(told(&crowded).contains("there is no room"), "{}", told(&crowded));

    fs::write(noisy.path().join("model.safetensors"), b"broken").unwrap();
    let broken = ask(&drafting, &drafted(&request, noisy.path())).await;
    assert!(told(&broken).contains("model.safetensors"), "{}", told(&broken));
    drafting.unload_all().await.unwrap();
    assert_eq!(drafting.inspect().unwrap().living, 0);
}
