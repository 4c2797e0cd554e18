//! Accounting of memory: the weights as they lie in memory, the keys and values of a context, and what reading that
//! context needs besides.
//!
//! Each kind of layer implements [`MixerCost`] or [`FeedForwardCost`] next to its config, and each family of models
//! sums its layers up as a [`ModelCost`]. [`cache`] counts caches, [`weights`] weights, and [`prefill`] replays the
//! allocations of a prompt's chunk on its way through the layers. `engine/tests/budgets/estimate.rs` compares the sums
//! with what MLX measured.

mod attend;
mod attention;
mod cache;
mod feed_forward;
mod layer;
mod model;
mod part;
mod prefill;
mod storage;
mod vision;
mod weights;
mod workload;

pub(crate) use attention::{AttentionCost, HeadNorms, IndexCost, Keys, ScoreShape};
pub(crate) use cache::CacheFormat;
pub use cache::{CACHE_STEP, KV_GROUP_SIZES};
pub use feed_forward::dequantises_experts;
pub(crate) use feed_forward::{ActivationCost, DenseCost, ExpertsCost, LatentCost, PlainCost};
pub(crate) use layer::{FeedForwardCost, LayerCost, MixerCost, NoMixer};
pub(crate) use model::{LayerInputs, ModelCost};
pub(crate) use part::Part;
pub(crate) use prefill::Prefill;
pub use prefill::{dequantises_rows, MAX_BYTES_AHEAD};
pub(crate) use storage::{Packing, Storage};
pub(crate) use vision::VisionCost;
pub use vision::MAX_VISION_SCORES;
pub use workload::{Backend, MemoryEstimate, Workload};
