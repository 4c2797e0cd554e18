//! Views and changes of a running engine for tests. Compiled only with the feature `test-support`, which this crate's
//! own dev-dependencies enable: the app and the command line are built without it.

use mlx::ops::ids_tensor;
use mlx::parameters::Parameters;
use mlx::{device, memory, quantized, tensor};
use protocol::{FolderSource, JobHandle, KvBits, Request, Sampling};

use crate::error;
use crate::handle::MlxEngine;
use crate::kernels::kernels;
use crate::sequence::drafts::{DraftSequence, HeadSequence};
use crate::sequence::sampler::{Sampler, SamplerConfig};
use crate::sequence::{decode_step, next_logits, verify, PromptImage, Sequence, SequenceState, Tokens};

/// A count of everything that the worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspection {
    /// Tensors of the loaded models.
    pub tensors: usize,
    /// How many of them are still to be computed.
    pub unevaluated: usize,
    /// Tensors of the prefix caches.
    pub prefix_cache_tensors: usize,
    /// Their bytes.
    pub prefix_cache_bytes: u64,
    /// All handles of the worker's thread.
    pub living: i64,
    /// How many images the vision encoders of the loaded models have encoded.
    pub encoded_images: usize,
    /// How many decode steps were taken between the layers of vision encoders.
    pub steps_between_layers: usize,
    /// How many texts the loaded models have embedded.
    pub embedded_texts: usize,
    /// The number of preemptions in the loaded models, and how many of them dropped caches.
    pub preemptions: (usize, usize),
}

/// The tokens that one sequence decoded.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The tokens that it gave alone.
    pub alone: Vec<u32>,
    /// Those that it gave in a batch.
    pub together: Vec<u32>,
    /// The largest difference of a logit.
    pub apart: f32,
    rows: Rows,
}

/// Logits, which are too long for a message.
#[derive(Default)]
struct Rows(Vec<Vec<f32>>);

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.0.len())
    }
}

fn likeliest(row: &[f32]) -> u32 {
    let best = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b]));
    best.map_or(0, |best| best as u32)
}

impl MlxEngine {
    /// Counts what the worker holds.
    pub fn inspect(&self) -> protocol::Result<Inspection> {
        self.call(|worker| {
            let models = worker.loaded();
            let tensors: Vec<_> = models
                .iter()
                .flat_map(|loaded| {
                    let head = loaded.weights.head.iter().flat_map(Parameters::tensors);
                    let tower = loaded.weights.tower.iter().flat_map(Parameters::tensors);
                    loaded.model().tensors().into_iter().chain(head).chain(tower)
                })
                .collect();
            let available = tensors
                .iter()
                .map(|tensor| tensor.is_available())
                .collect::<mlx::Result<Vec<_>>>()?;
            Ok(Inspection {
                tensors: tensors.len(),
                unevaluated: available.iter().filter(|available| !**available).count(),
                prefix_cache_tensors: models.iter().map(|loaded| loaded.prefix_cache.borrow().tensors()).sum(),
                prefix_cache_bytes: models.iter().map(|loaded| loaded.prefix_cache.borrow().bytes()).sum(),
                living: tensor::live_tensors(),
                encoded_images: models.iter().map(|loaded| loaded.encoded_images.get()).sum(),
                steps_between_layers: models.iter().map(|loaded| loaded.steps_between_layers.get()).sum(),
                embedded_texts: models.iter().map(|loaded| loaded.embedded_texts.get()).sum(),
                preemptions: worker.preemptions(),
            })
        })
    }

    /// How many chunks prefetches have read so far.
    pub fn prefetched_chunks(&self) -> usize {
        self.shared().prefetched_chunks()
    }

    /// The number of times that the worker woke up without a command, because a model had been idle for its time.
    pub fn wakeups(&self) -> usize {
        self.shared().wakeups()
    }

    /// Limits the time that a token of a running answer of the loaded models waits, as far as work can be cut.
    pub fn set_gaps(&self, gap: std::time::Duration) -> protocol::Result<()> {
        self.call(move |worker| {
            worker.set_gaps(gap);
            Ok(())
        })
    }

    /// Limits the prefix cache of each loaded model to `bytes`.
    pub fn set_prefix_cache_budget(&self, bytes: u64) -> protocol::Result<()> {
        self.call(move |worker| {
            for loaded in worker.loaded() {
                loaded.prefix_cache.borrow_mut().set_budget(bytes);
            }
            Ok(())
        })
    }

    /// Loads and computes from now on as on a GPU, by MLX's CPU versions of the same operations.
    pub fn pretend_gpu(&self) -> protocol::Result<()> {
        self.call(|worker| {
            worker.unload_all();
            device::pretend_gpu();
            Ok(())
        })
    }

    /// Gives the pretended GPU `bytes` of memory, and MLX as much for all of the process; returns what it had.
    pub fn set_memory_limit(&self, bytes: u64) -> protocol::Result<u64> {
        self.call(move |_| Ok(memory::set_limit(bytes)?))
    }

    /// Computes from now on by kernels that lose nothing but the order of additions.
    pub fn compute_exactly(&self) -> protocol::Result<()> {
        self.call(|_| {
            kernels().compute_exactly();
            Ok(())
        })
    }

    /// Makes products of several rows with quantized matrices of `inputs` inputs wrong from now on, as MLX's are on
    /// some devices.
    pub fn inject_fault(&self, inputs: i32) -> protocol::Result<()> {
        self.call(move |_| {
            quantized::inject_fault(inputs);
            Ok(())
        })
    }

    /// How many operations the graph of one decode step has, after a prompt of some tokens.
    pub fn step_operations(&self, model: FolderSource) -> protocol::Result<u64> {
        self.call(move |worker| {
            let loaded = worker.ensure_loaded(&model)?;
            let model = loaded.model();
            let mut state = SequenceState::new(model, None);
            state.prefill(model, &[1, 2, 3, 4, 5])?;
            let config = SamplerConfig::new(
                &protocol::Sampling::greedy(),
                &protocol::Sampling::default(),
                model.vocabulary(),
            )?;
            let sampler = Sampler::new(config, &[1, 2, 3, 4, 5], &[], model.vocabulary())?;
            let mut sequence = Sequence::new(state, sampler);
            let input = Tokens::Computed(ids_tensor(&[6]));
            let before = tensor::operations();
            decode_step(loaded.stepping(), &input, &mut [&mut sequence])?;
            Ok(tensor::operations() - before)
        })
    }

    /// Greedy tokens that follow each prompt, decoded alone and together. The sequences join one by one, each two steps
    /// after the one before it, and leave when they have their tokens.
    pub fn decode_together(
        &self,
        model: FolderSource,
        prompts: Vec<Vec<u32>>,
        tokens: usize,
        kv_bits: Option<KvBits>,
    ) -> protocol::Result<Vec<Decoded>> {
        let without = prompts.into_iter().map(|prompt| (prompt, Vec::new())).collect();
        self.decode_images_together(model, without, tokens, kv_bits)
    }

    /// [`MlxEngine::decode_together`] with images among the tokens.
    pub fn decode_images_together(
        &self,
        model: FolderSource,
        prompts: Vec<(Vec<u32>, Vec<PromptImage>)>,
        tokens: usize,
        kv_bits: Option<KvBits>,
    ) -> protocol::Result<Vec<Decoded>> {
        self.call(move |worker| {
            let loaded = worker.ensure_loaded(&model)?;
            let model = loaded.model();
            let read = |(prompt, images): &(Vec<u32>, Vec<PromptImage>)| -> error::Result<SequenceState> {
                let images = loaded.prompt_images(images.clone(), prompt.len())?;
                if let Some(images) = &images {
                    for index in 0..images.len() {
                        loaded.encode_image(images, index, &mut |_| Ok(()))?;
                    }
                }
                let mut state = SequenceState::new(model, kv_bits).with_images(images);
                state.prefill(model, &prompt[..prompt.len() - 1])?;
                Ok(state)
            };
            let logits = |ids: &[u32], states: &mut [&mut SequenceState]| -> error::Result<Vec<Vec<f32>>> {
                let logits = next_logits(model, &ids_tensor(ids), states)?.to_f32()?;
                Ok(logits
                    .chunks(model.vocabulary() as usize)
                    .map(<[f32]>::to_vec)
                    .collect())
            };
            let mut all = Vec::new();
            for prompt in &prompts {
                let (mut state, mut input, mut decoded) =
                    (read(prompt)?, prompt.0[prompt.0.len() - 1], Decoded::default());
                for _ in 0..tokens {
                    let row = logits(&[input], &mut [&mut state])?.remove(0);
                    input = likeliest(&row);
                    decoded.alone.push(input);
                    decoded.rows.0.push(row);
                }
                all.push(decoded);
            }
            let mut states = prompts.iter().map(read).collect::<error::Result<Vec<_>>>()?;
            for step in 0..tokens + 2 * prompts.len() {
                let takes_part = |index: usize, decoded: &Decoded| step >= 2 * index && decoded.together.len() < tokens;
                let members: Vec<usize> = (0..prompts.len())
                    .filter(|index| takes_part(*index, &all[*index]))
                    .collect();
                if members.is_empty() {
                    continue;
                }
                // Each goes on with the token it had alone, so that one rounding does not change all that follows.
                let last = |index: &usize| match all[*index].together.len() {
                    0 => prompts[*index].0[prompts[*index].0.len() - 1],
                    made => all[*index].alone[made - 1],
                };
                let ids: Vec<u32> = members.iter().map(last).collect();
                let mut taking: Vec<&mut SequenceState> = states
                    .iter_mut()
                    .enumerate()
                    .filter(|(index, _)| members.contains(index))
                    .map(|(_, state)| state)
                    .collect();
                for (index, row) in members.iter().zip(logits(&ids, &mut taking)?) {
                    let decoded = &mut all[*index];
                    let alone = &decoded.rows.0[decoded.together.len()];
                    let apart = alone.iter().zip(&row).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    decoded.apart = decoded.apart.max(apart);
                    decoded.together.push(likeliest(&row));
                }
            }
            Ok(all)
        })
    }

    /// Tokens that follow a prompt: generated in single steps, then with drafts of which many hold a wrong token; and
    /// in how many passes the latter. A draft may also be given up before its end, as where an answer ends.
    pub fn decode_with_drafts(
        &self,
        model: FolderSource,
        prompt: Vec<u32>,
        tokens: usize,
        sampling: Sampling,
        kv_bits: Option<KvBits>,
    ) -> protocol::Result<(Vec<u32>, Vec<u32>, usize)> {
        const LONGEST: usize = 8;
        self.call(move |worker| {
            let loaded = worker.ensure_loaded(&model)?;
            let model = loaded.model();
            let config = SamplerConfig::new(&sampling, &Sampling::default(), model.vocabulary())?;
            let read = || -> error::Result<Sequence> {
                let mut state = SequenceState::new(model, kv_bits);
                state.prefill(model, &prompt[..prompt.len() - 1])?;
                let sampler = Sampler::new(config.clone(), &prompt, &[], model.vocabulary())?;
                Ok(Sequence::new(state, sampler))
            };
            let step = |made: &mut Vec<u32>, sequence: &mut Sequence| -> error::Result<()> {
                let input = Tokens::Computed(ids_tensor(&made[made.len() - 1..]));
                let decoded = decode_step(loaded.stepping(), &input, &mut [sequence])?;
                made.extend(decoded.tokens.to_u32()?);
                Ok(())
            };
            let last = prompt[prompt.len() - 1];
            let (mut stepped, mut sequence) = (vec![last], read()?);
            for _ in 0..tokens + LONGEST {
                step(&mut stepped, &mut sequence)?;
            }
            let (mut drafted, mut sequence, mut passes) = (vec![last], read()?, 0);
            while drafted.len() <= tokens {
                passes += 1;
                if passes % 5 == 0 {
                    step(&mut drafted, &mut sequence)?;
                    continue;
                }
                let (at, length) = (drafted.len() - 1, 1 + passes * 5 % LONGEST);
                let mut ids = stepped[at..=at + length].to_vec();
                ids[0] = drafted[at];
                if let Some(id) = ids.get_mut(1 + passes * 7 % (length + 2)) {
                    *id = (*id + 1) % model.vocabulary();
                }
                let mut verified = verify(model, &mut sequence, ids)?;
                let most = if passes % 3 == 0 {
                    length.div_ceil(2)
                } else {
                    length + 1
                };
                let mut kept = 0;
                while kept < most && (kept == 0 || verified.goes_on(kept - 1, drafted[drafted.len() - 1])) {
                    drafted.push(verified.choose(&mut sequence, kept)?);
                    kept += 1;
                }
                verified.keep(model, &mut sequence, kept)?;
            }
            Ok((stepped[1..=tokens].to_vec(), drafted[1..=tokens].to_vec(), passes))
        })
    }

    /// The most tokens in a row of which a model's own drafts of its greedy answer go wrong, after drafts that were
    /// taken back in part; 0 if they are all right.
    pub fn wrong_drafts_of_itself(
        &self,
        model: FolderSource,
        prompt: Vec<u32>,
        tokens: usize,
    ) -> protocol::Result<usize> {
        const LONGEST: usize = 7;
        self.call(move |worker| {
            let loaded = worker.ensure_loaded(&model)?;
            let (stepping, first) = (loaded.stepping(), prompt.len());
            let mut text = prompt;
            let mut whole = DraftSequence::new(stepping, SequenceState::new(stepping.model, None), Vec::new())?;
            text.extend(whole.draft(stepping, &text, tokens + LONGEST)?);
            let mut pieces = DraftSequence::new(stepping, SequenceState::new(stepping.model, None), Vec::new())?;
            let (mut known, mut wrong, mut pass) = (first, 0, 0);
            while known < first + tokens {
                let count = 1 + pass % LONGEST;
                let drafted = pieces.draft(stepping, &text[..known], count)?;
                let right = drafted.iter().zip(&text[known..]).take_while(|(a, b)| a == b).count();
                wrong = wrong.max(count - right);
                // As if the model had said something else after some of them.
                known += 1 + pass % count;
                let mut said = text[..known].to_vec();
                if pass % 2 == 0 {
                    said[known - 1] ^= 1;
                }
                pieces.settle(&said)?;
                pass += 1;
            }
            Ok(wrong)
        })
    }

    /// The `count` tokens that a head of a model drafts after the first `places` tokens of a text, which is read on from
    /// one place to the next.
    pub fn drafts_of_head(
        &self,
        model: FolderSource,
        head: FolderSource,
        text: Vec<u32>,
        places: Vec<usize>,
        count: usize,
    ) -> protocol::Result<Vec<Vec<u32>>> {
        self.call(move |worker| {
            let (loaded, drafts) = (worker.ensure_loaded(&model)?, worker.ensure_loaded(&head)?);
            let head = drafts.model().head().ok_or(error::Error::NoHead)?;
            let mut state = SequenceState::new(loaded.model(), None);
            state.keep_states(true);
            let (mut sequence, mut read) = (HeadSequence::new(head.caches(), 0), 0);
            let draft = |place: usize| {
                state.prefill(loaded.model(), &text[read..place])?;
                read = place;
                sequence.draft(head, loaded.model(), &mut state, &text[..=place], count)
            };
            places.into_iter().map(draft).collect()
        })
    }

    /// Encodes an image and gives up after `layers` layers of the vision encoder; returns whether that ended it, and
    /// how often the hook was called.
    pub fn cancel_image_encoding(
        &self,
        model: FolderSource,
        image: PromptImage,
        layers: usize,
    ) -> protocol::Result<(bool, usize)> {
        self.call(move |worker| {
            let loaded = worker.ensure_loaded(&model)?;
            let tokens = image.run.end;
            let (images, mut asked) = (loaded.images(vec![image], tokens)?, 0);
            let encoded = loaded.encode_image(&images, 0, &mut |_| {
                asked += 1;
                if asked > layers {
                    return Err(error::Error::Cancelled);
                }
                Ok(())
            });
            Ok((matches!(encoded, Err(error::Error::Cancelled)), asked))
        })
    }

    /// A job in which every step after its first `tokens` tokens panics.
    pub fn panicking_job(&self, request: Request, tokens: usize) -> JobHandle {
        self.job(request, |job| job.fails_after = Some(tokens))
    }
}
