//! Speed and memory of a model, for comparing versions and engines.

use std::time::Instant;

use checkpoint::check_folder;
use protocol::FolderSource;

use crate::error::{Error, Result};
use crate::generate::{generate as run, ids_tensor, GenerationObserver, GenerationPlan, GenerationTimes, Sequence, SequenceState};
use crate::memory;
use crate::sampler::{Sampler, SamplerConfig};
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
    /// Where a token's time goes, in milliseconds: building the graph of the step, submitting it, waiting for the device.
    pub step_ms: [f64; 3],
}

/// Reloads the model; for each length reads so many made-up tokens and generates `generate` more, whatever they are.
pub fn bench(worker: &mut Worker, source: &FolderSource, prompts: &[usize], generate: usize) -> Result<Vec<BenchFigures>> {
    let longest = prompts.iter().copied().max().unwrap_or(0);
    if prompts.contains(&0) || longest == 0 || generate == 0 {
        return Err(Error::BadRequest(
            "a measurement needs at least one prompt token and one generated token".into(),
        ));
    }
    let context = check_folder(&source.path)?.context;
    let wanted = longest.saturating_add(generate);
    if wanted > context as usize {
        return Err(Error::ContextFull { prompt: wanted, context });
    }
    worker.unload();
    let load_ms = worker.ensure_loaded(source, &mut |_, _| Ok(()))?;
    let model = &worker.loaded().expect("just loaded").model;
    let vocabulary = model.vocabulary();
    let greedy = SamplerConfig::new(&protocol::Sampling::greedy(), &protocol::Sampling::default(), vocabulary)?;
    let mut all = Vec::new();
    for (index, length) in prompts.iter().enumerate() {
        if index > 0 {
            memory::reset_peak()?;
        }
        let prompt = bench_prompt(*length, vocabulary);
        let sequence = || -> Result<Sequence<'_>> {
            let sampler = Sampler::new(greedy.clone(), &prompt, &[], vocabulary)?;
            Ok(Sequence::new(model, SequenceState::new(model, None), sampler))
        };
        let measure = |tokens: usize| -> Result<GenerationTimes> {
            let plan = GenerationPlan {
                prompt: &prompt,
                boundaries: &[],
                limit: tokens,
            };
            Ok(run(&mut sequence()?, &plan, &mut NoObserver)?.1)
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

/// Mean milliseconds of the parts of a step: building its graph, submitting it, waiting.
fn steps(mut sequence: Sequence<'_>, prompt: &[u32], count: usize) -> Result<[f64; 3]> {
    sequence.prefill(prompt)?;
    let mut pending = sequence.step(&ids_tensor(&[prompt[0]]))?;
    let mut spent = [0.0; 3];
    for _ in 0..count {
        let start = Instant::now();
        let next = sequence.build_step(&pending)?;
        let built = Instant::now();
        async_eval([&next])?;
        let submitted = Instant::now();
        pending.item_u32()?;
        let done = Instant::now();
        for (sum, part) in spent.iter_mut().zip([built - start, submitted - built, done - submitted]) {
            *sum += part.as_secs_f64() * 1000.0 / count as f64;
        }
        pending = next;
    }
    Ok(spent)
}

/// Observes nothing, for a run that is measured.
struct NoObserver;

impl GenerationObserver for NoObserver {
    fn cancelled(&self) -> bool {
        false
    }

    fn on_prefill(&self, _read: usize) {}

    fn on_boundary(&mut self, _state: &mut SequenceState) -> Result<()> {
        Ok(())
    }

    fn on_token(&mut self, _id: u32) -> bool {
        true
    }

    fn forced_tokens(&mut self, _room: usize) -> Vec<u32> {
        Vec::new()
    }
}

/// The tokens a measurement reads: spread over the vocabulary, the same every time; `tests/oracle/bench.py` makes the same.
pub fn bench_prompt(length: usize, vocabulary: u32) -> Vec<u32> {
    (0..length as u64)
        .map(|index| ((index * 7919 + 13) % u64::from(vocabulary)) as u32)
        .collect()
}
