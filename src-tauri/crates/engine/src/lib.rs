//! Answers conversations with models on MLX: worker, loader, layers, models, caches, sampling.
//!
//! One thread owns everything MLX, from load to drop; [`MlxEngine`] is the handle that any thread may hold. Messages to
//! and from that thread carry text, numbers and events, never an array: [`mlx::tensor::Tensor`] cannot be sent.

mod answer;
mod backend;
#[cfg(feature = "bench")]
mod bench;
mod cache;
mod error;
mod handle;
mod kernels;
mod layers;
mod loaded;
mod models;
mod options;
mod pool;
mod products;
mod quantize;
mod schedule;
mod sequence;
mod state;
mod weights;

#[cfg(feature = "bench")]
pub use bench::speed::{bench_prompt, BatchFigures, BenchFigures, LookupFigures};
#[cfg(feature = "test-support")]
pub use bench::test_support;
pub use error::Error;
pub use handle::MlxEngine;
pub use mlx::memory::trim_heap;
pub use options::{Drafting, EngineOptions};
pub use quantize::{recipe, size_of_copy, Mode, Perplexity, QuantizeProgress, Quantized, Recipe};
#[cfg(feature = "bench")]
pub use sequence::{ImageViews, PromptImage};
