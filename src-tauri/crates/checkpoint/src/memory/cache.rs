//! The format of keys and values in a cache.

use protocol::KvBits;

use super::{Storage, Workload};

/// Positions that a cache grows by at once.
pub const CACHE_STEP: u32 = 256;

/// Sizes of the groups of numbers that share a scale in a quantized cache, best first; the first that divides the width
/// of a head is taken.
pub const KV_GROUP_SIZES: [u32; 2] = [64, 32];

/// The parts of a model and a workload that decide about the bytes of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheFormat {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Bytes of a number that is computed.
    pub element: u64,
    /// Bytes of a key's or value's number that is not quantized.
    pub kv_element: u64,
    kv_bits: Option<KvBits>,
    /// Tokens of a chunk of the prompt.
    pub chunk: u64,
}

impl CacheFormat {
    pub(super) fn new(hidden: u64, storage: Storage, workload: &Workload) -> Self {
        Self {
            hidden,
            element: storage.computed(workload.backend),
            kv_element: storage.kv_element(workload.backend),
            kv_bits: workload.kv_bits,
            chunk: workload.backend.prefill_chunk().into(),
        }
    }

    /// Positions for which a growing cache has room.
    pub(crate) fn grown(positions: u64) -> u64 {
        positions.next_multiple_of(CACHE_STEP.into())
    }

    /// Bytes of a head's keys, or values, at one position.
    pub(crate) fn row(&self, width: u64) -> u64 {
        match (self.kv_bits, group(width)) {
            (Some(bits), Some(group)) => width * u64::from(u8::from(bits)) / 8 + width / group * 2 * self.kv_element,
            _ => width * self.kv_element,
        }
    }

    /// True if heads of this width are quantized.
    pub(crate) fn quantizes(&self, width: u64) -> bool {
        self.kv_bits.is_some() && group(width).is_some()
    }
}

fn group(width: u64) -> Option<u64> {
    let mut sizes = KV_GROUP_SIZES.into_iter().map(u64::from);
    sizes.find(|group| width.is_multiple_of(*group))
}
