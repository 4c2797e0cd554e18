//! The files of a model apart from its config: weights with their headers, adapters, the card, and JSON as it is found.

mod adapter;
mod json;
mod model_card;
mod safetensors;
mod tensor_names;
mod weight_files;

pub use adapter::{Adapter, Addition, ADAPTER_CONFIG};
pub use json::parse_json;
pub use model_card::ModelCard;
pub use safetensors::{Header, TensorPlace};
pub use tensor_names::{is_unused_tensor, tower_tensor, without_wrappers};
pub use weight_files::{
    is_weight_file, weight_files, weight_files_of_repository, weight_map, MAX_INDEX_BYTES, WEIGHT_INDEX,
};
