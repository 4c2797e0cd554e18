//! A matrix of the weights, and its bytes.

use super::Storage;

/// The largest quantized embedding that is widened to 32 bit floats for the CPU, in bytes afterwards: of a
/// per-layer table every step reads one row of a quarter million, so widening it would gain nothing for many gigabytes.
pub const MAX_DEQUANTIZED_EMBEDDING: u64 = 2 << 30;

/// The largest quantized stack of experts that is widened there, in bytes afterwards: a token uses a few experts,
/// and all of them widened would not fit where the quantized ones do.
pub const MAX_DEQUANTIZED_EXPERTS: u64 = 128 << 20;

/// A matrix, or several that are loaded and joined at once.
pub(crate) struct Part {
    pub(super) numbers: u64,
    /// The most bytes to which it is widened on a CPU.
    pub(super) limit: u64,
    /// True if it stays 16 bits wide when others are quantized.
    plain: bool,
}

impl Part {
    pub(crate) fn matrix(rows: u64, columns: u64) -> Self {
        Self {
            numbers: rows * columns,
            limit: u64::MAX,
            plain: false,
        }
    }

    /// A matrix that is never quantized.
    pub(crate) fn plain(rows: u64, columns: u64) -> Self {
        Self {
            plain: true,
            ..Self::matrix(rows, columns)
        }
    }

    /// The matrices of all experts.
    pub(crate) fn stack(rows: u64, columns: u64) -> Self {
        Self {
            limit: MAX_DEQUANTIZED_EXPERTS,
            ..Self::matrix(rows, columns)
        }
    }

    pub(super) fn table(rows: u64, columns: u64) -> Self {
        Self {
            limit: MAX_DEQUANTIZED_EMBEDDING,
            ..Self::matrix(rows, columns)
        }
    }

    /// Bytes on a CPU.
    pub(super) fn widened(&self, storage: &Storage) -> u64 {
        match storage.packing {
            Some(packing) if self.numbers * 4 > self.limit && !self.plain => packing.bytes(self.numbers),
            _ => self.numbers * 4,
        }
    }

    /// Bytes as they are stored.
    pub(super) fn stored(&self, storage: &Storage) -> u64 {
        match storage.packing {
            Some(packing) if !self.plain => packing.bytes(self.numbers),
            _ => self.numbers * storage.element,
        }
    }
}
