//! Speed and memory of a model, for comparing versions and engines.

use std::time::Instant;

use checkpoint::check_folder;
use mlx::memory;
use mlx::memory::clear_after_chunk;
use mlx::ops::ids_tensor;
use protocol::{FolderSource, Sampling};

use crate::backend::prefill_chunk;
use crate::error::{Error, Result};
use crate::kernels::begin;
use crate::schedule::command::ModelAccess;
use crate::sequence::drafts::LENGTHS;
use crate::sequence::sampler::{Sampler, SamplerConfig};
use crate::sequence::{decode_step, verify, GenerationTimes, Sequence, SequenceState, Stepping, Tokens};

/// The result of [`crate::MlxEngine::bench`] for one length of prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchFigures {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Milliseconds to load the model.
    pub load_ms: f64,
    /// Prompt tokens read per second.
    pub prefill_tokens_per_second: f64,
    /// Milliseconds from the start of prefill to the first token.
    pub first_token_ms: f64,
    /// Tokens generated per second after the first.
    pub decode_tokens_per_second: f64,
    /// The most memory that MLX held, in bytes: while loading and reading for the first prompt, while reading for the
    /// others.
    pub peak_bytes: u64,
    /// The parts of a token's time, in milliseconds: building the graph of the step, submitting it, waiting for the
    /// device.
    pub step_ms: [f64; 3],
    /// True if the steps were recorded ones.
    pub recorded: bool,
}

/// Reloads the model; for each length reads that many made-up tokens and generates `generate` more, whatever they are.
pub fn bench(
    worker: &mut dyn ModelAccess,
    source: &FolderSource,
    prompts: &[usize],
    generate: usize,
    sampling: &Sampling,
) -> Result<Vec<BenchFigures>> {
    let longest = prompts.iter().copied().max().unwrap_or(0);
    check(source, longest, generate)?;
    if prompts.contains(&0) {
        return Err(nothing_to_measure());
    }
    worker.unload_all();
    let loaded = worker.ensure_loaded(source)?;
    let (model, load_ms) = (loaded.stepping(), loaded.info.load_ms);
    let mut all = Vec::new();
    for (index, length) in prompts.iter().enumerate() {
        if index > 0 {
            memory::reset_peak()?;
        }
        let prompt = bench_prompt(*length, model.model.vocabulary());
        // GPUs compile their kernels in the first run.
        measure(model, &prompt, 2, sampling)?;
        let timing = measure(model, &prompt, generate, sampling)?.timing(load_ms);
        let (step_ms, recorded) = steps(model, &prompt[..prompt.len().min(32)], generate.min(64), sampling)?;
        all.push(BenchFigures {
            prompt_tokens: *length,
            load_ms,
            prefill_tokens_per_second: timing.prefill_tokens_per_second,
            first_token_ms: timing.first_token_ms,
            decode_tokens_per_second: timing.decode_tokens_per_second,
            peak_bytes: memory::figures()?.peak,
            step_ms,
            recorded,
        });
    }
    Ok(all)
}

/// The result of [`crate::MlxEngine::bench_batch`] for one number of sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchFigures {
    /// How many decoded together.
    pub sequences: usize,
    /// Tokens that all of them generated per second, after the first step.
    pub tokens_per_second: f64,
}

/// Decodes `generate` tokens of each number of sequences together, after prompts of `prompt` tokens. No two prompts are
/// the same: equal ones would send all sequences to the same experts.
pub fn bench_batch(
    worker: &mut dyn ModelAccess,
    source: &FolderSource,
    sizes: &[usize],
    (prompt, generate): (usize, usize),
    sampling: &Sampling,
) -> Result<Vec<BatchFigures>> {
    check(source, prompt, generate)?;
    if sizes.contains(&0) || generate < 2 {
        return Err(nothing_to_measure());
    }
    let loaded = worker.ensure_loaded(source)?;
    let model = loaded.stepping();
    let most = sizes.iter().copied().max().unwrap_or(0);
    let all: Vec<Vec<u32>> = (0..most)
        .map(|sequence| sequence_prompt(sequence, prompt, model.model.vocabulary()))
        .collect();
    let measure = |count: usize, tokens: usize| -> Result<f64> {
        let prompts = &all[..count];
        let read = |ids: &Vec<u32>| read(model, ids, sampling);
        let mut sequences = prompts.iter().map(read).collect::<Result<Vec<_>>>()?;
        let mut together: Vec<&mut Sequence> = sequences.iter_mut().collect();
        let last: Vec<u32> = prompts.iter().map(|ids| ids[prompt - 1]).collect();
        let mut start = None;
        decode(model, &last, &mut together, tokens, || {
            start.get_or_insert_with(Instant::now);
        })?;
        let seconds = start.map_or(0.0, |start| start.elapsed().as_secs_f64());
        Ok(((tokens - 1) * count) as f64 / seconds)
    };
    let figures = |count: &usize| {
        measure(*count, 2)?;
        Ok(BatchFigures {
            sequences: *count,
            tokens_per_second: measure(*count, generate)?,
        })
    };
    sizes.iter().map(figures).collect()
}

/// The result of [`crate::MlxEngine::bench_lookup`] for one length of drafts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LookupFigures {
    /// Tokens of each draft.
    pub draft_tokens: usize,
    /// Tokens per second in single steps.
    pub without: f64,
    /// Tokens per second if every draft is right to its end, as in a verbatim repetition.
    pub with: f64,
}

/// Lets one sequence generate `generate` tokens after a prompt of `prompt` tokens, in single steps and with drafts.
pub fn bench_lookup(
    worker: &mut dyn ModelAccess,
    source: &FolderSource,
    prompt: usize,
    generate: usize,
) -> Result<Vec<LookupFigures>> {
    check(source, prompt, generate)?;
    let longest = LENGTHS.into_iter().max().unwrap_or(0);
    if generate < 2 * (longest + 1) {
        return Err(nothing_to_measure());
    }
    let loaded = worker.ensure_loaded(source)?;
    let model = loaded.stepping();
    let ids = bench_prompt(prompt, model.model.vocabulary());
    let stepped = |tokens: usize| -> Result<(Vec<u32>, f64)> {
        let (mut sequence, mut text) = (read(model, &ids, &Sampling::greedy())?, vec![ids[prompt - 1]]);
        let start = Instant::now();
        let mut pending = step(model, &Tokens::Computed(ids_tensor(&text)), &mut [&mut sequence])?;
        while text.len() < tokens {
            let next = step(model, &pending, &mut [&mut sequence])?;
            text.extend(std::mem::replace(&mut pending, next).to_u32()?);
        }
        text.extend(pending.to_u32()?);
        Ok((text, tokens as f64 / start.elapsed().as_secs_f64()))
    };
    let drafted = |text: &[u32], length: usize| -> Result<f64> {
        let mut sequence = read(model, &ids, &Sampling::greedy())?;
        let (start, mut known) = (Instant::now(), 0);
        while known + length + 1 < text.len() {
            let mut verified = verify(model.model, &mut sequence, text[known..=known + length].to_vec())?;
            // Right is what single steps gave, whatever a rounding makes of it here.
            (0..=length).try_for_each(|row| verified.choose(&mut sequence, row).map(drop))?;
            verified.keep(model.model, &mut sequence, length + 1)?;
            known += length + 1;
        }
        Ok(known as f64 / start.elapsed().as_secs_f64())
    };
    // GPUs compile their kernels in the first run.
    stepped(2)?;
    let (text, without) = stepped(generate)?;
    let figures = |draft_tokens: usize| {
        drafted(&text[..2 * draft_tokens + 3], draft_tokens)?;
        let with = drafted(&text, draft_tokens)?;
        Ok(LookupFigures {
            draft_tokens,
            without,
            with,
        })
    };
    LENGTHS.into_iter().map(figures).collect()
}

fn check(source: &FolderSource, prompt: usize, generate: usize) -> Result<()> {
    if prompt == 0 || generate == 0 {
        return Err(nothing_to_measure());
    }
    let context = check_folder(&source.path)?.context;
    let wanted = prompt.saturating_add(generate);
    if wanted > context as usize {
        return Err(Error::ContextFull {
            prompt: wanted,
            context,
        });
    }
    Ok(())
}

fn nothing_to_measure() -> Error {
    Error::BadRequest("a measurement needs at least one prompt token and one generated token".into())
}

/// A sequence that has read all but the last of these.
fn read(stepping: Stepping<'_>, prompt: &[u32], sampling: &Sampling) -> Result<Sequence> {
    let (model, vocabulary) = (stepping.model, stepping.model.vocabulary());
    let config = SamplerConfig::new(sampling, &Sampling::default(), vocabulary)?;
    let sampler = Sampler::new(config, prompt, &[], vocabulary)?;
    let mut sequence = Sequence::new(SequenceState::new(model, None), sampler);
    for chunk in prompt[..prompt.len() - 1].chunks(prefill_chunk()) {
        sequence.state.read(stepping, chunk)?;
        clear_after_chunk()?;
    }
    Ok(sequence)
}

/// Begins to compute the tokens that follow `input`.
fn step(model: Stepping<'_>, input: &Tokens, sequences: &mut [&mut Sequence]) -> Result<Tokens> {
    let decoded = decode_step(model, input, sequences)?;
    begin(decoded.tensors())?;
    Ok(decoded.tokens)
}

/// The times of reading a prompt and of generating `tokens` tokens.
fn measure(model: Stepping<'_>, prompt: &[u32], tokens: usize, sampling: &Sampling) -> Result<GenerationTimes> {
    let (start, mut times) = (Instant::now(), GenerationTimes::default());
    let mut sequence = read(model, prompt, sampling)?;
    times.prefilled = prompt.len();
    decode(model, &prompt[prompt.len() - 1..], &mut [&mut sequence], tokens, || {
        times.record(start.elapsed().as_secs_f64());
    })?;
    Ok(times)
}

/// Lets each sequence generate `tokens` tokens after its last one; `made` is called after each step.
fn decode(
    model: Stepping<'_>,
    last: &[u32],
    sequences: &mut [&mut Sequence],
    tokens: usize,
    mut made: impl FnMut(),
) -> Result<()> {
    let mut pending = step(model, &Tokens::Computed(ids_tensor(last)), sequences)?;
    for left in (0..tokens).rev() {
        let next = (left > 0).then(|| step(model, &pending, sequences)).transpose()?;
        pending.to_u32()?;
        made();
        let Some(next) = next else { break };
        pending = next;
    }
    Ok(())
}

/// Mean milliseconds of the parts of a step: building its graph, submitting it, waiting; and true if it is recorded.
fn steps(model: Stepping<'_>, prompt: &[u32], count: usize, sampling: &Sampling) -> Result<([f64; 3], bool)> {
    let mut sequence = read(model, prompt, sampling)?;
    let mut pending = step(
        model,
        &Tokens::Computed(ids_tensor(&prompt[prompt.len() - 1..])),
        &mut [&mut sequence],
    )?;
    let mut spent = [0.0; 3];
    for _ in 0..count {
        let start = Instant::now();
        let decoded = decode_step(model, &pending, &mut [&mut sequence])?;
        let built = Instant::now();
        begin(decoded.tensors())?;
        let submitted = Instant::now();
        pending.to_u32()?;
        let done = Instant::now();
        let parts = [built - start, submitted - built, done - submitted];
        for (sum, part) in spent.iter_mut().zip(parts) {
            *sum += part.as_secs_f64() * 1000.0 / count as f64;
        }
        pending = decoded.tokens;
    }
    Ok((spent, pending.computed().is_none()))
}

/// The tokens a measurement reads: spread over the vocabulary, the same every time; `tests/oracle/bench.py` makes the
/// same.
pub fn bench_prompt(length: usize, vocabulary: u32) -> Vec<u32> {
    sequence_prompt(0, length, vocabulary)
}

/// The tokens that one of several sequences reads; `tests/oracle/batch.py` makes the same.
fn sequence_prompt(sequence: usize, length: usize, vocabulary: u32) -> Vec<u32> {
    let first = sequence as u64 * 104_729 + 13;
    (0..length as u64)
        .map(|index| ((index * 7919 + first) % u64::from(vocabulary)) as u32)
        .collect()
}
