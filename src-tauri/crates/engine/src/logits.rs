//! The logits of a model, for comparing engines.

use protocol::{FolderSource, KvBits};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::sequence::ids_tensor;
use crate::worker::Worker;

/// Logits after the last of `tokens`, or after each of them if `all`; read in chunks of `chunk`, with keys and values of full
/// attention in `kv_bits`.
pub fn logits(
    worker: &mut Worker,
    source: &FolderSource,
    tokens: &[u32],
    all: bool,
    chunk: Option<usize>,
    kv_bits: Option<KvBits>,
) -> Result<Vec<Vec<f32>>> {
    let loaded = worker.ensure_loaded(source)?;
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
    let mut caches: Vec<Cache> = model.caches().into_iter().map(|cache| cache.quantized(kv_bits)).collect();
    let mut rows = Vec::new();
    for part in tokens.chunks(chunk.unwrap_or(tokens.len())) {
        let states = model.forward(&crate::models::Input::text(&ids_tensor(part)), &mut [&mut caches])?;
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
