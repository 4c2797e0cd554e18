//! Verbs beside answering: logits for comparing engines, figures for comparing speeds.

use std::time::Instant;

use prompt::config::fitness_of_folder;
use protocol::{KvBits, ModelSource};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::generate::{ids_tensor, run, Listener, Plan, Reading, Sequence, Times};
use crate::memory;
use crate::sample::{Choice, Sampler};
use crate::tensor::async_eval;
use crate::worker::Worker;

/// What [`crate::MlxEngine::bench`] measured for one length of prompt.
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
    /// The most memory that MLX held, in bytes: while loading and reading for the first prompt, while reading for the others.
    pub peak_bytes: u64,
    /// Where a token's time goes, in milliseconds: describing the step, handing it to the device, waiting for the device.
    pub step_ms: [f64; 3],
}

/// Logits after the last of `tokens`, or after each where `all`; read in chunks of `chunk`, with keys and values of full
/// attention in `kv_bits`.
pub fn logits(
    worker: &mut Worker,
    source: &ModelSource,
    tokens: &[u32],
    all: bool,
    chunk: Option<usize>,
    kv_bits: Option<KvBits>,
) -> Result<Vec<Vec<f32>>> {
    worker.ensure(source, &mut |_, _| Ok(()))?;
    let loaded = worker.loaded().expect("just loaded");
    let (model, vocabulary) = (&loaded.model, loaded.model.vocabulary());
    if tokens.is_empty() || chunk == Some(0) {
        return Err(Error::BadRequest(
            "logits need at least one token and chunks of at least one".into(),
        ));
    }
    if tokens.len() > loaded.info.context as usize {
        return Err(Error::ContextFull {
            prompt: tokens.len(),
            context: loaded.info.context,
        });
    }
    if let Some(token) = tokens.iter().find(|token| **token >= vocabulary) {
        return Err(Error::BadRequest(format!(
            "{token} is no token of this model; they go from 0 to {}",
            vocabulary - 1
        )));
    }
    let mut caches: Vec<Cache> = model.caches().into_iter().map(|cache| cache.packed(kv_bits)).collect();
    let mut rows = Vec::new();
    for part in tokens.chunks(chunk.unwrap_or(tokens.len())) {
        let states = model.forward(&ids_tensor(part), &mut caches)?;
        let length = part.len() as i32;
        let wanted = if all { states } else { states.slice(0, length - 1, length)? };
        let flat = model.logits(&wanted)?.to_f32()?;
        if !all {
            rows.clear();
        }
        rows.extend(flat.chunks(vocabulary as usize).map(<[f32]>::to_vec));
    }
    Ok(rows)
}

/// Loads the model anew; for each length reads so many made-up tokens and generates `generate` more, whatever they are.
pub fn bench(worker: &mut Worker, source: &ModelSource, prompts: &[usize], generate: usize) -> Result<Vec<BenchFigures>> {
    let longest = prompts.iter().copied().max().unwrap_or(0);
    if prompts.contains(&0) || longest == 0 || generate == 0 {
        return Err(Error::BadRequest(
            "a measurement needs at least one prompt token and one generated token".into(),
        ));
    }
    let context = fitness_of_folder(&source.path)?.context;
    let wanted = longest.saturating_add(generate);
    if wanted > context as usize {
        return Err(Error::ContextFull { prompt: wanted, context });
    }
    worker.unload();
    let load_ms = worker.ensure(source, &mut |_, _| Ok(()))?;
    let model = &worker.loaded().expect("just loaded").model;
    let vocabulary = model.vocabulary();
    let greedy = Choice::new(&protocol::Sampling::greedy(), &protocol::Sampling::default(), vocabulary)?;
    let mut all = Vec::new();
    for (index, length) in prompts.iter().enumerate() {
        if index > 0 {
            memory::reset_peak()?;
        }
        let prompt = bench_prompt(*length, vocabulary);
        let sequence = || -> Result<Sequence<'_>> {
            let sampler = Sampler::new(greedy.clone(), &prompt, &[], vocabulary)?;
            Ok(Sequence::new(model, Reading::new(model, None), sampler))
        };
        let measure = |tokens: usize| -> Result<Times> {
            let plan = Plan {
                prompt: &prompt,
                boundaries: &[],
                limit: tokens,
            };
            Ok(run(&mut sequence()?, &plan, &mut Nobody)?.1)
        };
        // GPUs compile their kernels in the first run.
        measure(2)?;
        let timing = measure(generate)?.timing(load_ms);
        all.push(BenchFigures {
            prompt_tokens: *length,
            load_ms,
            prefill_tokens_per_second: timing.prefill_tokens_per_second,
            first_token_ms: timing.first_token_ms,
            decode_tokens_per_second: timing.decode_tokens_per_second,
            peak_bytes: memory::figures()?.peak,
            step_ms: steps(sequence()?, &prompt[..prompt.len().min(32)], generate.min(64))?,
        });
    }
    Ok(all)
}

/// Mean milliseconds of the parts of a step: describing it, handing it to the device, waiting.
fn steps(mut sequence: Sequence<'_>, prompt: &[u32], count: usize) -> Result<[f64; 3]> {
    sequence.read(prompt)?;
    let mut pending = sequence.step(&ids_tensor(&[prompt[0]]))?;
    let mut spent = [0.0; 3];
    for _ in 0..count {
        let start = Instant::now();
        let next = sequence.describe(&pending)?;
        let described = Instant::now();
        async_eval([&next])?;
        let begun = Instant::now();
        pending.item_u32()?;
        let done = Instant::now();
        for (sum, part) in spent.iter_mut().zip([described - start, begun - described, done - begun]) {
            *sum += part.as_secs_f64() * 1000.0 / count as f64;
        }
        pending = next;
    }
    Ok(spent)
}

/// Listens to a run that is measured.
struct Nobody;

impl Listener for Nobody {
    fn cancelled(&self) -> bool {
        false
    }

    fn progress(&self, _read: usize) {}

    fn boundary(&mut self, _reading: &mut Reading) -> Result<()> {
        Ok(())
    }

    fn token(&mut self, _id: u32) -> bool {
        true
    }

    fn said_for_it(&mut self, _room: usize) -> Vec<u32> {
        Vec::new()
    }
}

/// The tokens a measurement reads: spread over the vocabulary, the same every time; `tests/oracle/bench.py` makes the same.
pub fn bench_prompt(length: usize, vocabulary: u32) -> Vec<u32> {
    (0..length as u64)
        .map(|index| ((index * 7919 + 13) % u64::from(vocabulary)) as u32)
        .collect()
}
