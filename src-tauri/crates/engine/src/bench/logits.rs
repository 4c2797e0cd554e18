//! The logits of a model, for comparing engines.

use std::time::Duration;

use protocol::{FolderSource, KvBits};

use crate::error::{Error, Result};
use crate::schedule::command::ModelAccess;
use crate::sequence::{PromptImage, SequenceState};

/// How long is waited for an image before it is looked for again.
const PREPARING: Duration = Duration::from_millis(1);

/// Logits after the last of `tokens`, or after each of them if `all`; read in chunks of `chunk`, but no image is cut
/// whose tokens see each other, nor the first `prompt` tokens if they do; with keys and values of full attention in `kv_bits`.
pub fn logits(
    worker: &mut dyn ModelAccess,
    source: &FolderSource,
    (tokens, images, prompt): (&[u32], Vec<PromptImage>, usize),
    all: bool,
    chunk: Option<usize>,
    kv_bits: Option<KvBits>,
) -> Result<Vec<Vec<f32>>> {
    let loaded = worker.ensure_loaded(source)?;
    let (model, readable, vocabulary) = (loaded.model(), loaded.model().readable(), loaded.model().vocabulary());
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
    if let Some(token) = tokens.iter().find(|token| **token >= readable) {
        return Err(Error::BadRequest(format!(
            "{token} is no token of this model; they go from 0 to {}",
            readable - 1
        )));
    }
    let images = loaded.prompt_images(images, prompt)?;
    let mut state = SequenceState::new(model, kv_bits).with_images(images.clone());
    let (mut rows, mut from) = (Vec::new(), 0);
    while from < tokens.len() {
        let to = tokens.len().min(from.saturating_add(chunk.unwrap_or(tokens.len())));
        let to = images.as_ref().map_or(to, |images| images.chunk_end(from, to));
        if let Some(images) = &images {
            while let Some(index) = images.unencoded(from, to) {
                if !loaded.encode_image(images, index, &mut |_| Ok(()))? {
                    std::thread::sleep(PREPARING);
                }
            }
        }
        let part = state.chunk(to - from)?;
        let states = model.forward(&part.input(&model.ids(&tokens[from..to])?), &mut [state.caches()])?;
        state.advance_by(to - from);
        let length = (to - from) as i32;
        let wanted = if all {
            states
        } else {
            states.slice(0, length - 1, length)?
        };
        let flat = model.logits(&wanted)?.to_f32()?;
        if !all {
            rows.clear();
        }
        rows.extend(flat.chunks(vocabulary as usize).map(<[f32]>::to_vec));
        from = to;
    }
    Ok(rows)
}
