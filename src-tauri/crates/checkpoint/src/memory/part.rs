//! A matrix of the weights, and its bytes.

use super::Storage;

/// A matrix, or several that are loaded and joined at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(super) numbers: u64,
    /// True if it stays 16 bits wide when others are quantized.
    plain: bool,
    /// True if each head multiplies with its own rows, which a CPU does with 32 bit floats.
    by_head: bool,
}

impl Part {
    pub(crate) fn matrix(rows: u64, columns: u64) -> Self {
        Self {
            numbers: rows * columns,
            plain: false,
            by_head: false,
        }
    }

    /// A matrix that is never quantized.
    pub(crate) fn plain(rows: u64, columns: u64) -> Self {
        Self {
            plain: true,
            ..Self::matrix(rows, columns)
        }
    }

    /// A matrix of which each head has its own rows.
    pub(crate) fn by_head(rows: u64, columns: u64) -> Self {
        Self {
            by_head: true,
            ..Self::matrix(rows, columns)
        }
    }

    /// Bytes as they are stored.
    pub(super) fn stored(&self, storage: &Storage) -> u64 {
        match storage.packing {
            Some(packing) if !self.plain => packing.bytes(self.numbers),
            _ => self.numbers * storage.element,
        }
    }

    /// Bytes beyond those on a CPU.
    pub(super) fn widened(&self, storage: &Storage) -> u64 {
        match self.by_head {
            true => (self.numbers * 4).saturating_sub(self.stored(storage)),
            false => 0,
        }
    }
}
