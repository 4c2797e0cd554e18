//! A model's files, read before any of its weights is computed with: `config.json` with its family, shapes and
//! quantization, the weight files and their headers, whether this program can run the model, and how much memory that
//! takes. Pure: no MLX, network or database.

pub mod config;
pub mod conversion;
pub mod gguf;
pub mod image_processor;
pub mod memory;

mod error;
mod families;
mod files;
mod image_prompt;
mod model;

pub use config::{DecoderConfig, EncoderConfig, Family, Gemma4Config, HeadConfig, Mode, Quantization};
pub use error::{Error, Result};
pub use families::{image_prompt, refused_models, supported_families, vision};
pub use families::{RefusedModel, SupportedFamily, VisionConfig, KNOWN_MODEL_TYPES};
pub use files::{
    is_unused_tensor, is_weight_file, parse_json, tower_tensor, weight_files, weight_files_of_repository, weight_map,
    without_wrappers, Header, ModelCard, TensorPlace, MAX_INDEX_BYTES, WEIGHT_INDEX,
};
pub use files::{Adapter, Addition, ADAPTER_CONFIG};
pub use image_processor::{ImagePlan, ImageProcessor, View};
pub use image_prompt::{ImagePrompt, ImageRun, RunSegment};
pub use model::{
    check_compatibility, check_folder, embedding, vision_support, EmbeddingConfig, FileListing, ModelConfig,
};
