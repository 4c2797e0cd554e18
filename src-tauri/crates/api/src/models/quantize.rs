//! Quantized copies of models.

use protocol::Error;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The format of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum QuantizeFormat {
    /// 8 bits in groups of 64.
    EightBits,
    /// 4 bits, and 6 for the matrices that lose most.
    FourAndSixBits,
    /// 4 bits in groups of 64.
    FourBits,
    /// 4 bit floats in groups of 32.
    Mxfp4,
}

impl QuantizeFormat {
    /// All of them, the largest first.
    pub const ALL: [Self; 4] = [Self::EightBits, Self::FourAndSixBits, Self::FourBits, Self::Mxfp4];
}

/// A format that a copy of a model may have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct QuantizeChoice {
    /// The format.
    pub format: QuantizeFormat,
    /// Bytes of the copy's weights.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Bits of all its weights by their number.
    pub bits_per_weight: f64,
    /// True if there is such a copy.
    pub exists: bool,
}

/// A quantized copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct QuantizedModel {
    /// Its reference.
    pub reference: String,
    /// Bytes of its weights.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Bits of all its weights by their number.
    pub bits_per_weight: f64,
    /// The perplexity of a text for the original and for the copy; `None` if they were not compared.
    pub perplexity: Option<[f64; 2]>,
    /// The reason why they could not be compared.
    pub not_compared: Option<Error>,
}
