//! The weights: how many numbers they are, and what they take when quantised ones are widened to 32 bit floats.

use super::shapes::{Attention, FeedForward, Keys, Layer, Mixer, Shapes};
use super::Backend;
use crate::config::mla::MlaConfig;

/// The largest quantised embedding that is widened to 32 bit floats for the CPU, in bytes afterwards: of a
/// per-layer table every step reads one row of a quarter million, so widening it would buy nothing for many gigabytes.
pub const MAX_DEQUANTIZED_EMBEDDING: u64 = 2 << 30;

/// The largest quantised stack of experts that is widened there, in bytes afterwards: a token uses a few experts,
/// and all of them widened would not fit where the packed ones do.
pub const MAX_DEQUANTIZED_EXPERTS: u64 = 128 << 20;

/// A matrix, or several that are loaded and joined at once.
struct Part {
    numbers: u64,
    /// Up to how many bytes it is widened on a CPU.
    limit: u64,
    /// Whether it stays 16 bits wide if others are quantised.
    plain: bool,
}

impl Part {
    fn matrix(rows: u64, columns: u64) -> Self {
        Self {
            numbers: rows * columns,
            limit: u64::MAX,
            plain: false,
        }
    }

    fn table(rows: u64, columns: u64) -> Self {
        Self {
            limit: MAX_DEQUANTIZED_EMBEDDING,
            ..Self::matrix(rows, columns)
        }
    }

    /// Bytes on a CPU.
    fn widened(&self, shapes: &Shapes) -> u64 {
        match shapes.bits() {
            Some(bits) if self.numbers * 4 > self.limit && !self.plain => (self.numbers as f64 * bits / 8.0) as u64,
            _ => self.numbers * 4,
        }
    }

    /// Bytes as they are stored.
    fn stored(&self, shapes: &Shapes) -> u64 {
        match shapes.bits() {
            Some(bits) if !self.plain => (self.numbers as f64 * bits / 8.0) as u64,
            _ => self.numbers * shapes.element,
        }
    }
}

/// How many numbers the weights are, without the few of norms and biases.
pub(super) fn parameters(shapes: &Shapes) -> u64 {
    all(shapes).iter().map(|part| part.numbers).sum()
}

/// Bytes of the weights on a CPU.
pub(super) fn widened(shapes: &Shapes) -> u64 {
    let parts: u64 = all(shapes).iter().map(|part| part.widened(shapes)).sum();
    let table = Part::table(shapes.vocabulary, shapes.hidden);
    // A tied embedding that is widened is there once more, turned for the product.
    let turned = match shapes.tied && !shapes.headless && (shapes.bits().is_none() || table.numbers * 4 <= table.limit) {
        true => table.numbers * 4,
        false => 0,
    };
    parts + turned
}

/// The most that loading needs for a moment besides what is resident at the end: the parts of what is joined, beside it, and
/// what they were widened from.
pub(super) fn loading(shapes: &Shapes, backend: Backend) -> u64 {
    let layers = shapes.layers.iter().flat_map(|layer| of_layer(shapes, layer));
    let transient = |part: Part| match backend {
        Backend::Cpu => part.stored(shapes) + 2 * part.widened(shapes),
        Backend::Metal | Backend::Cuda => part.stored(shapes),
    };
    layers.map(transient).max().unwrap_or(0)
}

fn all(shapes: &Shapes) -> Vec<Part> {
    let mut parts = vec![Part::table(shapes.vocabulary, shapes.hidden)];
    if !shapes.tied {
        parts.push(Part::matrix(shapes.vocabulary, shapes.hidden));
    }
    if let Some((tokens, width)) = shapes.inputs {
        let all = width * shapes.layers.len() as u64;
        parts.extend([Part::table(tokens, all), Part::matrix(all, shapes.hidden)]);
    }
    // What makes the other streams of the first, and one of all.
    parts.extend((1..shapes.streams).flat_map(|_| [(); 2].map(|()| Part::matrix(shapes.hidden, shapes.hidden))));
    parts.extend(shapes.layers.iter().flat_map(|layer| of_layer(shapes, layer)));
    parts
}

fn of_layer(shapes: &Shapes, layer: &Layer) -> Vec<Part> {
    let hidden = shapes.hidden;
    let mut parts = match &layer.mixer {
        Mixer::Attention(attention) => of_attention(hidden, attention),
        Mixer::Mla(latent) => of_latent(hidden, latent),
        Mixer::DeltaNet(net) => {
            let (keys, values) = (
                u64::from(net.key_heads) * u64::from(net.key_width),
                u64::from(net.value_heads) * u64::from(net.value_width),
            );
            vec![
                Part::matrix(2 * keys + 2 * values + 2 * u64::from(net.value_heads), hidden),
                Part {
                    plain: true,
                    ..Part::matrix(2 * keys + values, net.kernel.into())
                },
                Part::matrix(hidden, values),
            ]
        }
        Mixer::CrossAttention(cross) => {
            let (queries, keys) = (
                u64::from(cross.heads) * u64::from(cross.head_dim),
                u64::from(cross.key_heads) * u64::from(cross.head_dim),
            );
            vec![
                Part::matrix(queries, hidden),
                Part::matrix(keys, hidden),
                Part::matrix(keys, hidden),
                Part::matrix(hidden, queries),
            ]
        }
        Mixer::GatedConv(conv) => vec![
            Part::matrix(3 * hidden, hidden),
            Part {
                plain: true,
                ..Part::matrix(hidden, conv.kernel.into())
            },
            Part::matrix(hidden, hidden),
        ],
    };
    for feed in &layer.feed_forwards {
        match feed {
            FeedForward::Dense { width, gated, .. } => {
                let inner = if *gated { 2 * width } else { *width };
                parts.extend([Part::matrix(inner, hidden), Part::matrix(hidden, *width)]);
            }
            FeedForward::Moe { count, width, .. } => {
                let stack = || Part {
                    limit: MAX_DEQUANTIZED_EXPERTS,
                    ..Part::matrix(count * width, hidden)
                };
                let router = Part {
                    plain: true,
                    ..Part::matrix(*count, hidden)
                };
                parts.extend([router, stack(), stack(), stack()]);
            }
        }
    }
    if let Some((_, width)) = shapes.inputs {
        parts.extend([Part::matrix(width, hidden), Part::matrix(hidden, width)]);
    }
    parts
}

fn of_attention(hidden: u64, attention: &Attention) -> Vec<Part> {
    let key_rows = match attention.keys {
        Keys::Own => 2 * attention.key_heads,
        Keys::AreValues => attention.key_heads,
        Keys::Shared => 0,
    };
    let queries = attention.projected() - key_rows;
    vec![
        Part::matrix((queries + key_rows) * attention.width, hidden),
        Part::matrix(hidden, attention.heads * attention.width),
    ]
}

fn of_latent(hidden: u64, latent: &MlaConfig) -> Vec<Part> {
    let [heads, rank, still, turning, value] = [
        latent.heads,
        latent.kv_lora_rank,
        latent.qk_nope_head_dim,
        latent.qk_rope_head_dim,
        latent.v_head_dim,
    ]
    .map(u64::from);
    let queries = heads * (still + turning);
    let first = latent.q_lora_rank.map_or(queries, u64::from);
    let mut parts = vec![
        Part::matrix(first + rank + turning, hidden),
        Part::matrix(heads * (still + value), rank),
        Part::matrix(hidden, heads * value),
    ];
    parts.extend(latent.q_lora_rank.map(|rank| Part::matrix(queries, rank.into())));
    parts
}
