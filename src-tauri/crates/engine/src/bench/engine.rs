//! Requests of benches and tests that no product makes.

use mlx::{blas, device, memory};
use prompt::ChatProcessor;
use protocol::{FolderSource, KvBits, Request, Sampling};

use crate::answer::images;
use crate::answer::request::{folder, read_prompt};
use crate::bench::logits::logits;
use crate::bench::speed::{self, BatchFigures, BenchFigures, LookupFigures};
use crate::error::{catch_panic, Error};
use crate::handle::MlxEngine;
use crate::sequence::PromptImage;

impl MlxEngine {
    /// Logits after the last of `tokens`, or after each of them if `all`, read in chunks of `chunk` tokens (by default
    /// all at once). Loads the model if it is not loaded. Blocks; not for async code.
    pub fn logits(
        &self,
        model: FolderSource,
        tokens: Vec<u32>,
        all: bool,
        chunk: Option<usize>,
    ) -> protocol::Result<Vec<Vec<f32>>> {
        self.kv_logits(model, tokens, all, chunk, None)
    }

    /// [`MlxEngine::logits`] with keys and values of full attention quantized to `kv_bits`.
    pub fn kv_logits(
        &self,
        model: FolderSource,
        tokens: Vec<u32>,
        all: bool,
        chunk: Option<usize>,
        kv_bits: Option<KvBits>,
    ) -> protocol::Result<Vec<Vec<f32>>> {
        let prompt = tokens.len();
        self.image_logits(model, (tokens, Vec::new(), prompt), all, chunk, kv_bits)
    }

    /// [`MlxEngine::kv_logits`] with images among the tokens, so many of which are the prompt.
    pub fn image_logits(
        &self,
        model: FolderSource,
        (tokens, images, prompt): (Vec<u32>, Vec<PromptImage>, usize),
        all: bool,
        chunk: Option<usize>,
        kv_bits: Option<KvBits>,
    ) -> protocol::Result<Vec<Vec<f32>>> {
        self.call(move |worker| logits(worker, &model, (&tokens, images, prompt), all, chunk, kv_bits))
    }

    /// [`MlxEngine::kv_logits`] after the prompt of a request, its images among it.
    pub fn prompt_logits(
        &self,
        mut request: Request,
        all: bool,
        chunk: Option<usize>,
    ) -> protocol::Result<Vec<Vec<f32>>> {
        let source = folder(&request)?.clone();
        let (images, _) = catch_panic(|| images::prepare(&mut request))?;
        let processor = ChatProcessor::open(&source.path).map_err(Error::from)?;
        let prompt = read_prompt(&processor, &request, &images.plans())?;
        let images = images.placed(&prompt.images);
        let length = prompt.ids.len();
        self.image_logits(source, (prompt.ids, images, length), all, chunk, request.kv_bits)
    }

    /// Loads the model anew and measures, for each length of prompt, reading it and generating `generate` tokens.
    /// Blocks; not for async code.
    pub fn bench(
        &self,
        model: FolderSource,
        prompts: Vec<usize>,
        generate: usize,
        sampling: Sampling,
    ) -> protocol::Result<Vec<BenchFigures>> {
        self.call(move |worker| speed::bench(worker, &model, &prompts, generate, &sampling))
    }

    /// Measures how fast each number of sequences decodes `generate` tokens together, after prompts of `prompt` tokens.
    /// Blocks; not for async code.
    pub fn bench_batch(
        &self,
        model: FolderSource,
        sizes: Vec<usize>,
        (prompt, generate): (usize, usize),
        sampling: Sampling,
    ) -> protocol::Result<Vec<BatchFigures>> {
        self.call(move |worker| speed::bench_batch(worker, &model, &sizes, (prompt, generate), &sampling))
    }

    /// Measures, for each length of drafts that prompt lookup makes, how fast one sequence generates `generate` tokens
    /// in single steps and with drafts that are right, after a prompt of `prompt` tokens. Blocks; not for async code.
    pub fn bench_lookup(
        &self,
        model: FolderSource,
        prompt: usize,
        generate: usize,
    ) -> protocol::Result<Vec<LookupFigures>> {
        self.call(move |worker| speed::bench_lookup(worker, &model, prompt, generate))
    }

    /// The most memory that MLX held since this was asked the last time, in bytes. Blocks; not for async code.
    pub fn take_peak(&self) -> protocol::Result<u64> {
        self.call(|_| {
            let peak = memory::figures()?.peak;
            memory::reset_peak()?;
            Ok(peak)
        })
    }

    /// The version of MLX. Blocks; not for async code.
    pub fn mlx_version(&self) -> protocol::Result<String> {
        self.call(|_| Ok(device::version()?))
    }

    /// The library that multiplies matrices on a CPU, its version and its number of threads. Blocks; not for async
    /// code.
    pub fn blas(&self) -> protocol::Result<String> {
        self.call(|_| Ok(blas::set_up().to_owned()))
    }

    /// True while something is being prefetched.
    pub fn prefetching(&self) -> bool {
        self.shared().prefetching()
    }

    /// Waits until nothing is being prefetched.
    pub async fn prefetched(&self) {
        self.shared().prefetched().await;
    }
}
