//! The rotary embeddings of a kind of attention.

use checkpoint::config::gemma4::RopeParameters;
use checkpoint::config::rope::RopeConfig;
use mlx::{Dtype, Result};

use crate::layers::Rope;

/// The rope of one kind of layer.
pub(super) fn rope(width: u32, of: &RopeParameters, dtype: Dtype) -> Result<Rope> {
    let config = RopeConfig::proportional(width, of.theta, of.partial_rotary_factor);
    Rope::new(&config, width, dtype)
}
