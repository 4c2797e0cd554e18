use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use clap::Args;
use cli::output;
use protocol::{Engine, EngineEvent, JobHandle, Message, Priority, Request, Role, Sampling, Stage, Thinking};
use serde_json::json;

use super::numbers::{at_least_one, at_least_two};
use crate::subject::{load, SubjectArgs};

/// Programs whose prompts are read beside the chat.
const PROGRAMS: usize = 4;

/// Tokens that are words in every tokenizer; answers are drawn from them.
const WORDS: Range<u32> = 1000..1064;

/// `ponder-bench gaps`.
#[derive(Args)]
pub struct GapsArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Words of each program's prompt; one is a token or some
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_one())]
    prompt_tokens: usize,
    /// Tokens of the chat's answer that are measured alone
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_two())]
    generate: usize,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Milliseconds between the tokens of an answer.
struct Gaps(Vec<f64>);

impl Gaps {
    fn percentile(&self, percent: usize) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get(last * percent / 100).copied().unwrap_or(0.0)
    }

    fn json(&self) -> serde_json::Value {
        json!({"tokens": self.0.len(), "p50_ms": self.percentile(50), "p95_ms": self.percentile(95), "max_ms": self.percentile(100)})
    }
}

/// Measures how long a person waits for the next token of a chat, alone and while programs' long prompts are read.
///
/// # Errors
/// When the model cannot be loaded or an answer fails.
pub async fn run(args: GapsArgs) -> Result<()> {
    let (engine, model) = args.subject.open().await?;
    load(&engine, &model).await?;
    let request = |words: usize, salt: usize, priority| {
        // No two prompts begin alike, so that none waits for another's prefix.
        let text: Vec<String> = (0..words)
            .map(|word| (10_000 + (word * 7919 + salt * 104_729) % 89_989).to_string())
            .collect();
        Request {
            thinking: Some(Thinking::Off),
            // Models of random weights have more tokens than their tokenizers have words, so that most would say
            // nothing.
            sampling: Sampling {
                temperature: Some(1.0),
                seed: Some(salt as u64),
                logit_bias: WORDS.map(|token| (token, 100.0)).collect(),
                ..Sampling::default()
            },
            // Log probabilities come with every token, even if its text is not complete.
            top_logprobs: Some(0),
            priority,
            ..Request::new(model.clone(), vec![Message::text(Role::User, text.join(" "))])
        }
    };
    let chat = |salt| request(20, salt, Priority::Chat);
    let program = |salt| Request {
        max_tokens: Some(2),
        ..request(args.prompt_tokens, salt, Priority::Api)
    };
    let programs = |salt: usize| -> Vec<JobHandle> {
        (salt..salt + PROGRAMS)
            .map(|salt| engine.generate(program(salt)))
            .collect()
    };
    // Kernels are compiled and speeds known before anything is measured.
    let prompt_tokens = end(&mut engine.generate(program(1))).await?;
    let first_alone = first_token(engine.generate(chat(2))).await?;

    let ask = || engine.generate(chat(3));
    let alone = gaps(ask, |tokens| tokens < args.generate).await?;
    let mut readers = programs(10);
    let start = Instant::now();
    let reading = tokio::spawn(async move {
        for reader in &mut readers {
            end(reader).await?;
        }
        anyhow::Ok(start.elapsed())
    });
    let beside = gaps(ask, |_| !reading.is_finished()).await?;
    let prompts_read = reading.await??;

    let mut readers = programs(20);
    while !matches!(
        readers[0].events.recv().await,
        Some(EngineEvent::Progress {
            stage: Stage::Prefill,
            ..
        }) | None
    ) {}
    let first_beside = first_token(engine.generate(chat(4))).await?;
    for reader in &mut readers {
        end(reader).await?;
    }

    if args.json {
        return Ok(output::line(&json!({
            "model": model.reference, "prompt_tokens": prompt_tokens, "programs": PROGRAMS, "alone": alone.json(), "beside": beside.json(),
            "prompts_read_ms": ms(prompts_read), "first_token_ms": ms(first_alone), "first_token_beside_ms": ms(first_beside),
        }))?);
    }
    let row = |name: &str, gaps: &Gaps| {
        format!(
            "{name:<22}{:>8}{:>8.1}{:>8.1}{:>8.1}\n",
            gaps.0.len(),
            gaps.percentile(50),
            gaps.percentile(95),
            gaps.percentile(100)
        )
    };
    Ok(output::text(&format!(
        "{}: ms between the tokens of a chat's answer\n{:<22}{:>8}{:>8}{:>8}{:>8}\n{}{}a chat's first token {:.0} ms alone, {:.0} ms beside them; {PROGRAMS} prompts of {prompt_tokens} tokens read \
         beside a chat in {:.0} ms\n",
        model.reference,
        "",
        "tokens",
        "p50",
        "p95",
        "max",
        row("alone", &alone),
        row("beside four prompts", &beside),
        ms(first_alone),
        ms(first_beside),
        ms(prompts_read)
    ))?)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Waits for one more token of an answer; false at its end.
async fn next_token(job: &mut JobHandle) -> Result<bool> {
    loop {
        match job.events.recv().await {
            Some(EngineEvent::Logprobs(_)) => return Ok(true),
            Some(EngineEvent::Failed(error)) => return Err(error.into()),
            Some(EngineEvent::Done(_)) => return Ok(false),
            Some(_) => {}
            None => bail!("the engine is gone"),
        }
    }
}

/// How long the first token of an answer takes, which is then cancelled.
async fn first_token(mut job: JobHandle) -> Result<Duration> {
    let asked = Instant::now();
    let came = next_token(&mut job).await?;
    let waited = asked.elapsed();
    if came {
        job.cancel.cancel();
        end(&mut job).await?;
    }
    Ok(waited)
}

/// Waits for the end; the tokens of its prompt.
async fn end(job: &mut JobHandle) -> Result<u32> {
    loop {
        match job.events.recv().await {
            Some(EngineEvent::Failed(error)) => return Err(error.into()),
            Some(EngineEvent::Done(done)) => return Ok(done.usage.map_or(0, |usage| usage.prompt_tokens)),
            None => bail!("the engine is gone"),
            Some(_) => {}
        }
    }
}

/// The gaps between the tokens of an answer, sorted, while `more` wants more than there are. After its end it is asked
/// for again.
async fn gaps(ask: impl Fn() -> JobHandle, mut more: impl FnMut(usize) -> bool) -> Result<Gaps> {
    let mut gaps = Vec::new();
    while more(gaps.len()) {
        let mut answer = ask();
        if !next_token(&mut answer).await? {
            bail!("the model answers nothing");
        }
        let mut last = Instant::now();
        let mut ended = false;
        while !ended && more(gaps.len()) {
            ended = !next_token(&mut answer).await?;
            gaps.push(ms(last.elapsed()));
            last = Instant::now();
        }
        if !ended {
            answer.cancel.cancel();
            end(&mut answer).await?;
        }
    }
    gaps.sort_by(f64::total_cmp);
    Ok(Gaps(gaps))
}
