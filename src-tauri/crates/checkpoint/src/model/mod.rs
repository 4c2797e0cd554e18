//! A whole model: its config, whether it runs, what memory it takes, and how it makes embeddings.

mod compatibility;
mod config;
pub mod embedding;
mod estimate;
mod head;

pub use compatibility::{check_compatibility, check_folder, vision_support, FileListing};
pub use config::ModelConfig;
pub use embedding::EmbeddingConfig;
