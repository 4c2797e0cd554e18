//! How well a model predicts a text.

use prompt::ChatProcessor;
use protocol::FolderSource;

use crate::error::{Error, Result};
use crate::handle::MlxEngine;
use crate::schedule::command::ModelAccess;
use crate::sequence::SequenceState;

/// A plain text for comparing a model with its quantized copy.
const SAMPLE: &str = include_str!("sample.txt");

/// Tokens of the sample that are read together.
const SAMPLE_CHUNK: usize = 256;

/// How well a model predicts a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Perplexity {
    /// Between how many tokens it wavers, as it were.
    pub perplexity: f64,
    /// Tokens that were predicted.
    pub predictions: usize,
}

impl MlxEngine {
    /// The perplexity of a text's tokens in the way of llama.cpp's `llama-perplexity`: nothing is seen before a chunk,
    /// and each token of its second half is predicted from all tokens of the chunk before it. A rest that fills no
    /// chunk is left out. Other models are freed first. Blocks; not for async code.
    ///
    /// # Errors
    /// If the model cannot be loaded, for example because the memory guard refuses, or there is no whole chunk.
    pub fn perplexity(&self, model: FolderSource, tokens: Vec<u32>, chunk: usize) -> protocol::Result<Perplexity> {
        self.call(move |worker| perplexity(worker, &model, &tokens, chunk))
    }

    /// The perplexity of a text that is shipped, to compare a model with its quantized copy. Blocks; not for async code.
    ///
    /// # Errors
    /// As [`MlxEngine::perplexity`].
    pub fn sample_perplexity(&self, model: FolderSource) -> protocol::Result<f64> {
        let tokens = ChatProcessor::open(&model.path)?.encode(SAMPLE)?;
        Ok(self.perplexity(model, tokens, SAMPLE_CHUNK)?.perplexity)
    }
}

fn perplexity(worker: &mut dyn ModelAccess, source: &FolderSource, tokens: &[u32], chunk: usize) -> Result<Perplexity> {
    if chunk < 2 || tokens.len() < chunk {
        return Err(Error::BadRequest(format!(
            "the text has fewer than {} tokens",
            chunk.max(2)
        )));
    }
    worker.unload_all();
    let loaded = worker.ensure_loaded(source)?;
    let (model, readable) = (loaded.model(), loaded.model().readable());
    if let Some(token) = tokens.iter().find(|token| **token >= readable) {
        return Err(Error::BadRequest(format!("{token} is no token of this model")));
    }
    let (half, vocabulary) = (chunk / 2, model.vocabulary() as usize);
    let (mut sum, mut predictions) = (0.0, 0);
    for tokens in tokens.chunks_exact(chunk) {
        let mut state = SequenceState::new(model, None);
        let part = state.chunk(chunk)?;
        let states = model.forward(&part.input(&model.ids(tokens)?), &mut [state.caches()])?;
        state.advance_by(chunk);
        let logits = model
            .logits(&states.slice(0, half as i32, chunk as i32 - 1)?)?
            .to_f32()?;
        for (row, next) in logits.chunks(vocabulary).zip(&tokens[half + 1..]) {
            sum += surprise(row, *next as usize);
            predictions += 1;
        }
    }
    Ok(Perplexity {
        perplexity: (sum / predictions as f64).exp(),
        predictions,
    })
}

/// The negative logarithm of a token's probability.
fn surprise(logits: &[f32], token: usize) -> f64 {
    let most = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - most).exp()).sum();
    sum.ln() + most - f64::from(logits[token])
}
