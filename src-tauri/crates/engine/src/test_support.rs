//! What tests look at and change in a running engine. Compiled only with the feature `test-support`, which this room's own
//! dev-dependencies enable: the app and the command line are built without it.

use protocol::{JobHandle, Request};

use crate::parameters::Parameters;
use crate::{answer, error, tensor, MlxEngine};

/// What the worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspection {
    /// Tensors of the loaded model.
    pub tensors: usize,
    /// How many of them are still to be computed.
    pub unevaluated: usize,
    /// Tensors of the prefix cache.
    pub prefix_cache_tensors: usize,
    /// Their bytes.
    pub prefix_cache_bytes: u64,
    /// All handles of the worker's thread.
    pub living: i64,
}

impl MlxEngine {
    /// Counts what the worker holds.
    pub fn inspect(&self) -> protocol::Result<Inspection> {
        self.call(|worker| {
            let tensors = worker.loaded().map(|loaded| loaded.model.tensors()).unwrap_or_default();
            let available = tensors
                .iter()
                .map(|tensor| tensor.is_available())
                .collect::<error::Result<Vec<_>>>()?;
            Ok(Inspection {
                tensors: tensors.len(),
                unevaluated: available.iter().filter(|available| !**available).count(),
                prefix_cache_tensors: worker.loaded().map_or(0, |loaded| loaded.prefix_cache.borrow().tensors()),
                prefix_cache_bytes: worker.loaded().map_or(0, |loaded| loaded.prefix_cache.borrow().bytes()),
                living: tensor::live_tensors(),
            })
        })
    }

    /// Limits the prefix cache of the loaded model to `bytes`.
    pub fn set_prefix_cache_budget(&self, bytes: u64) -> protocol::Result<()> {
        self.call(move |worker| {
            if let Some(loaded) = worker.loaded() {
                loaded.prefix_cache.borrow_mut().set_budget(bytes);
            }
            Ok(())
        })
    }

    /// Loads and computes from now on as on a GPU, by MLX's CPU versions of the same operations.
    pub fn pretend_gpu(&self) -> protocol::Result<()> {
        self.call(|worker| {
            worker.unload();
            tensor::pretend_gpu();
            Ok(())
        })
    }

    /// A job that answers with one token and then panics.
    pub fn panicking_job(&self, request: Request) -> JobHandle {
        self.job(move |worker, job| {
            let load_ms = worker.ensure_loaded(crate::folder(&request)?, &mut |_, _| Ok(()))?;
            let loaded = worker.loaded().expect("just loaded");
            let prepared = answer::prepare(&loaded.files, &request)?;
            let one = Request {
                max_tokens: Some(1),
                ..request
            };
            answer::answer(loaded, &one, &prepared, load_ms, job)?;
            panic!("asked for by a test");
        })
    }
}
