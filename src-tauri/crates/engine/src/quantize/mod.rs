//! A quantized copy of a model, written one piece of a tensor at a time, and how well a model predicts a text.

mod other_files;
mod perplexity;
mod run;
mod weights;

pub use checkpoint::conversion::Recipe;
pub use checkpoint::Mode;
pub use perplexity::Perplexity;
pub use run::{recipe, size_of_copy, QuantizeProgress, Quantized};
