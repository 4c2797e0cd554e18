//! The parts that model families are built of. Activations are `[rows, width]`, without a batch axis: the rows are the
//! next tokens of one sequence, or the next token of each of several. Only the parts that mix positions distinguish
//! them.

mod activation;
mod attention;
#[cfg(test)]
mod cache_tests;
mod delta_rule;
mod embedding;
mod experts;
mod fast;
mod gelu;
mod layer_norm;
mod linear;
mod linear_recurrence;
mod pointwise;
mod product;
mod residual;
mod rms_norm;
mod rope;
mod selective_scan;
mod sequences;
mod short_conv;
mod state_space;
mod wkv;

pub use activation::Activation;
pub use attention::{marked_attention, scaled_dot_product_attention, CappedAttention};
pub use delta_rule::{DeltaRule, DeltaRuleInputs};
pub use embedding::Embedding;
pub use experts::{top_k_indices, Experts};
pub use fast::heads::{split_heads, Heads};
pub use gelu::Gelu;
pub use layer_norm::LayerNorm;
pub use linear::{Linear, Projection};
pub use linear_recurrence::linear_recurrence;
pub use pointwise::Pointwise;
pub use residual::ResidualStream;
pub use rms_norm::{norm_weight, ones, RmsNorm};
pub use rope::{MultimodalRope, Position, Rope, Rotation};
pub use selective_scan::{selective_scan, SelectiveScanInputs};
pub use sequences::{each_sequence, join_sequences, sequence_rows, SequenceRows};
pub use short_conv::ShortConv;
pub use state_space::{StateSpace, StateSpaceInputs};
pub use wkv::{Wkv, WkvInputs};
