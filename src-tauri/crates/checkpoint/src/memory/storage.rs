//! The number format of a model's weights.

use super::Backend;

/// The number format of the weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage {
    /// Bytes of an unquantized number, and of what a GPU computes.
    pub element: u64,
    pub packing: Option<Packing>,
}

/// A quantized format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packing {
    pub bits: u64,
    /// Numbers that share a scale.
    pub group_size: u64,
    /// Bits of a number with its share of the scales.
    pub bits_with_scales: f64,
}

impl Packing {
    /// Bytes of this many numbers.
    pub(super) fn bytes(&self, numbers: u64) -> u64 {
        (numbers as f64 * self.bits_with_scales / 8.0) as u64
    }
}

impl Storage {
    /// Bytes of a number as caches of keys and values keep it.
    pub(crate) fn kv_element(&self, backend: Backend) -> u64 {
        match backend {
            // In 16 bits, whatever is computed.
            Backend::Cpu => 2,
            Backend::Metal | Backend::Cuda => self.element,
        }
    }

    /// Bytes of a number as the backend computes it.
    pub(crate) fn computed(&self, backend: Backend) -> u64 {
        match backend {
            Backend::Cpu => 4,
            Backend::Metal | Backend::Cuda => self.element,
        }
    }
}
