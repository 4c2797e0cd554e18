//! What the files of a model say before any of its weights is computed with: `config.json` with its family, shapes and
//! quantisation, the weight files and their headers, whether this program can run the model, and how much memory that takes. Pure: no MLX, network or database.

pub mod config;
pub mod image_processor;
pub mod memory;

mod compatibility;
pub mod embedding;
mod error;
mod model_card;
mod safetensors;
mod weight_files;

pub use compatibility::{check_compatibility, check_folder, sight, FileListing};
pub use config::{DecoderConfig, EncoderConfig, Family, Gemma4Config, Mode, ModelConfig, Quantization, VisionConfig, KNOWN_MODEL_TYPES};
pub use embedding::EmbeddingConfig;
pub use error::{Error, Result};
pub use image_processor::{ImagePlan, ImageProcessor, View};
pub use model_card::ModelCard;
pub use safetensors::Header;
pub use weight_files::{is_weight_file, weight_files, weight_files_of_repository, weight_map, MAX_INDEX_BYTES, WEIGHT_INDEX};
