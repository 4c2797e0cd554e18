use std::sync::Arc;

use anyhow::{bail, Result};
use clap::Args;
use cli::{app, output};
use engine::{Drafting, EngineOptions, MlxEngine};
use protocol::{Engine, EngineEvent, FolderSource, MemoryGuard, Message, Request, Role, Sampling, Thinking};
use serde_json::json;

use super::median::median;
use super::noisy_copy::noisy_copy;
use super::numbers::{at_least_one, at_least_two};
use crate::subject::{load, SubjectArgs};

/// Messages with long responses.
const MESSAGES: [&str; 4] = [
    "Tell me a long story about a lighthouse and a storm.",
    "Explain step by step how bread is baked, and why each step matters.",
    "Write a Python class for a queue with a maximum length, with tests.",
    "Compare trains and planes for journeys of 500 km in a table, then in words.",
];

/// `ponder-bench draft`.
#[derive(Args)]
pub struct DraftArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Model that drafts
    #[arg(long, value_name = "MODEL", required_unless_present = "noise")]
    draft_model: Option<String>,
    /// Draft with a copy of the model, of which one number in N is changed
    #[arg(long, value_name = "N", conflicts_with = "draft_model", value_parser = at_least_one())]
    noise: Option<usize>,
    /// Draft even where the measured times say that it does not pay
    #[arg(long)]
    always: bool,
    /// Temperature of the responses
    #[arg(long, value_name = "T", default_value = "0")]
    temperature: f32,
    /// Tokens of a response
    #[arg(long, value_name = "N", default_value = "128", value_parser = at_least_two())]
    generate: usize,
    /// Repetitions of each message
    #[arg(long, value_name = "N", default_value = "3", value_parser = at_least_one())]
    repeat: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// The models of a measurement fit into memory, or it fails.
#[derive(Debug)]
struct Plenty;

impl MemoryGuard for Plenty {
    fn before_load(&self, _: &FolderSource, _: &str, _: u64, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn before_chunk(&self, _: u64, _: &str, _: u64) -> protocol::Result<()> {
        Ok(())
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

/// The figures of one response.
struct Response {
    tokens: Vec<u32>,
    rate: f64,
    drafted: u32,
    accepted: u32,
    steps: u32,
}

/// Prints the speed of responses without and with a draft model by turns, and how much of the drafts was right.
///
/// # Errors
/// When a model cannot be loaded, or a response fails.
pub async fn run(args: DraftArgs) -> Result<()> {
    let (_, model) = args.subject.open().await?;
    let folder = tempfile::tempdir()?;
    let draft_model = match (&args.draft_model, args.noise) {
        (Some(named), _) => app::model(Some(named)).await?,
        (None, every) => noisy_copy(&model, folder.path(), every.unwrap_or(1))?,
    };
    let engine = MlxEngine::with_options(EngineOptions {
        memory_guard: Some(Arc::new(Plenty)),
        prompt_lookup: Drafting::Off,
        draft_model: if args.always { Drafting::Always } else { Drafting::Auto },
        ..EngineOptions::default()
    });
    load(&engine, &model).await?;
    let (mut plain, mut drafted, mut same) = (Vec::new(), Vec::new(), 0);
    for index in 0..MESSAGES.len() * args.repeat {
        let request = |draft_model: Option<&FolderSource>| Request {
            draft_model: draft_model.cloned(),
            thinking: Some(Thinking::Off),
            max_tokens: Some(args.generate as u32),
            sampling: Sampling {
                temperature: Some(args.temperature),
                seed: Some(index as u64),
                ..Sampling::default()
            },
            ..Request::new(
                model.clone(),
                vec![Message::text(Role::User, MESSAGES[index % MESSAGES.len()])],
            )
        };
        let (without, with) = (
            answer(&engine, request(None)).await?,
            answer(&engine, request(Some(&draft_model))).await?,
        );
        same += usize::from(without.tokens == with.tokens);
        plain.push(without);
        drafted.push(with);
    }
    let sum = |of: fn(&Response) -> u32| drafted.iter().map(of).sum::<u32>();
    let rate = |all: &[Response]| median(all.iter().map(|response| response.rate).collect()).unwrap_or_default();
    let (proposed, accepted, steps) = (sum(|r| r.drafted), sum(|r| r.accepted), sum(|r| r.steps));
    let per_step = f64::from(steps + accepted) / f64::from(steps.max(1));
    let (without, with) = (rate(&plain), rate(&drafted));
    if args.json {
        return Ok(output::line(&json!({
            "model": model.reference, "draft_model": draft_model.reference, "generate": args.generate,
            "temperature": args.temperature, "responses": drafted.len(), "same": same, "without": without, "with": with,
            "ratio": with / without, "drafted": proposed, "accepted": accepted, "tokens_per_step": per_step,
        }))?);
    }
    output::text(&format!(
        "{} drafted by {}: {} responses of {} tokens, medians by turns\n\
         tokens/s without {without:.1}, with {with:.1}, ratio {:.2}\n\
         {accepted} of {proposed} drafted tokens kept, {per_step:.2} tokens per step; {same} responses are the same\n",
        model.reference,
        draft_model.reference,
        drafted.len(),
        args.generate,
        with / without
    ))?;
    Ok(())
}

async fn answer(engine: &MlxEngine, request: Request) -> Result<Response> {
    let mut job = engine.generate(request);
    let mut tokens = Vec::new();
    loop {
        match job.events.recv().await {
            Some(EngineEvent::Failed(error)) => return Err(error.into()),
            None => bail!("the engine is gone"),
            Some(EngineEvent::Notice(notice)) => eprintln!("{}", notice.message),
            Some(EngineEvent::Delta { tokens: more, .. }) => tokens.extend(more),
            Some(EngineEvent::Done(done)) => {
                tokens.extend(done.tokens);
                let usage = done.usage.and_then(|usage| usage.speculation).unwrap_or_default();
                return Ok(Response {
                    rate: done.timing.decode_tokens_per_second,
                    steps: match usage.decode_steps {
                        0 => tokens.len() as u32,
                        steps => steps,
                    },
                    drafted: usage.draft_tokens,
                    accepted: usage.accepted_draft_tokens,
                    tokens,
                });
            }
            Some(_) => {}
        }
    }
}
