//! What caches keep: keys and values, the short vectors of latent attention, and the states of recurrent layers.

use protocol::KvBits;

use super::shapes::{Keys, Mixer, Shapes};
use super::{Backend, Workload};

/// Positions that a cache grows by at once.
pub const CACHE_STEP: u32 = 256;

/// Sizes of the groups of numbers that share a scale in a quantised cache, best first; the first that divides the width of a head is
/// taken.
pub const KV_GROUP_SIZES: [u32; 2] = [64, 32];

/// Bytes of all caches once the context is full. While a prompt is read the window of sliding layers is followed by a whole
/// chunk, which is more than they keep later.
pub(super) fn bytes(shapes: &Shapes, workload: &Workload) -> u64 {
    if !shapes.cached {
        return 0;
    }
    let layers = shapes
        .layers
        .iter()
        .map(|layer| of_layer(shapes, &layer.mixer, workload, workload.context.into()));
    layers.fold(0, u64::saturating_add)
}

/// Bytes that a number takes where this backend computes.
pub(super) fn element(shapes: &Shapes, backend: Backend) -> u64 {
    match backend {
        Backend::Cpu => 4,
        Backend::Metal | Backend::Cuda => shapes.element,
    }
}

/// Bytes of one layer's cache after so many positions.
pub(super) fn of_layer(shapes: &Shapes, mixer: &Mixer, workload: &Workload, positions: u64) -> u64 {
    let element = element(shapes, workload.backend);
    let grown = positions.next_multiple_of(CACHE_STEP.into());
    match mixer {
        Mixer::Attention(attention) if attention.keys == Keys::Shared => 0,
        Mixer::Attention(attention) => match attention.window {
            Some(window) => {
                let chunk = u64::from(workload.backend.prefill_chunk()).min(positions);
                let rows = positions.min(window.saturating_sub(1) + chunk);
                2 * attention.key_heads * attention.width * element * rows
            }
            None => 2 * attention.key_heads * row(attention.width, element, workload.kv_bits) * grown,
        },
        Mixer::Mla(latent) => u64::from(latent.kv_lora_rank + latent.qk_rope_head_dim) * element * grown,
        Mixer::DeltaNet(net) => {
            let (keys, values) = (
                u64::from(net.key_heads) * u64::from(net.key_width),
                u64::from(net.value_heads) * u64::from(net.value_width),
            );
            // Both are 32 bit floats everywhere.
            4 * (values * u64::from(net.key_width) + u64::from(net.kernel - 1) * (2 * keys + values))
        }
        Mixer::GatedConv(conv) => u64::from(conv.kernel - 1) * shapes.hidden * element,
        // Keys and values of one picture; however long the text is, they stay as they are.
        Mixer::CrossAttention(cross) => 2 * u64::from(cross.key_heads) * u64::from(cross.head_dim) * u64::from(cross.states) * element,
    }
}

/// Bytes of a head's keys, or values, at one position.
fn row(width: u64, element: u64, bits: Option<KvBits>) -> u64 {
    let group = KV_GROUP_SIZES.into_iter().map(u64::from).find(|group| width.is_multiple_of(*group));
    match (bits, group) {
        (Some(bits), Some(group)) => width * u64::from(u8::from(bits)) / 8 + width / group * 2 * element,
        _ => width * element,
    }
}

/// Whether the cache of this layer is packed into few bits.
pub(super) fn is_packed(mixer: &Mixer, bits: Option<KvBits>) -> bool {
    match mixer {
        Mixer::Attention(attention) => {
            bits.is_some()
                && attention.window.is_none()
                && KV_GROUP_SIZES.iter().any(|group| attention.width.is_multiple_of(u64::from(*group)))
        }
        _ => false,
    }
}
