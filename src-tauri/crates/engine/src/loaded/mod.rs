//! A model in memory: its files, its weights, and the copies of what it has read.

mod image_embedding_cache;
mod loaded_model;
mod model_files;
mod prefix_cache;
mod warm_up;

pub use image_embedding_cache::ImageEmbeddingCache;
pub use loaded_model::LoadedModel;
pub use model_files::{vision_support, ModelFiles, OpenFiles};
pub use prefix_cache::PrefixCache;
