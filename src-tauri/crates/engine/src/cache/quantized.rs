//! The cache of full attention in 4 or 8 bits. Sliding windows and recurrent states do not grow, so they are never
//! quantized.

use protocol::KvBits;

use checkpoint::memory::KV_GROUP_SIZES;
use mlx::parameters::Parameters;
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::kv_buffer::{KvBlocks, KvBuffer};
use crate::cache::ByteCounter;

/// The size of the groups that heads of this width are quantized in; `None` if none of MLX's divides it.
fn group_size(width: i32) -> Option<i32> {
    KV_GROUP_SIZES
        .map(|group| group as i32)
        .into_iter()
        .find(|group| width % group == 0)
}

/// Keeps every position: the words, scales and biases of its keys, then those of its values.
#[derive(Parameters)]
pub struct QuantizedCache {
    rows: KvBuffer,
    #[parameters(skip)]
    bits: KvBits,
}

impl QuantizedCache {
    /// An empty cache.
    pub fn new(bits: KvBits) -> Self {
        Self {
            rows: KvBuffer::default(),
            bits,
        }
    }

    /// True if heads of this width can be quantized.
    pub fn supports(width: i32) -> bool {
        group_size(width).is_some()
    }

    /// How many bits a number takes.
    pub fn bits(&self) -> KvBits {
        self.bits
    }

    /// The number of positions that have been read.
    pub fn offset(&self) -> usize {
        self.rows.offset() as usize
    }

    /// Adds positions and returns all; the widths [suit](Self::supports).
    pub fn update(&mut self, keys: &Tensor, values: &Tensor) -> Result<(QuantizedTensor, QuantizedTensor)> {
        let keys = QuantizedTensor::quantize(keys, self.format(keys.dim(3)))?;
        let values = QuantizedTensor::quantize(values, self.format(values.dim(3)))?;
        let parts: Vec<&Tensor> = [&keys, &values]
            .into_iter()
            .flat_map(|quantized| {
                [
                    Some(&quantized.weight),
                    Some(&quantized.scales),
                    quantized.biases.as_ref(),
                ]
            })
            .flatten()
            .collect();
        let seen = self.rows.append(&parts)?;
        Ok(joined(seen, [keys.format, values.format]))
    }

    /// All keys and values; `None` before the first position.
    pub fn seen(&self) -> Result<Option<(QuantizedTensor, QuantizedTensor)>> {
        let seen = self.rows.seen()?;
        let width = |words: &Tensor| words.dim(3) * 32 / i32::from(u8::from(self.bits));
        let formats = match (seen.first(), seen.get(seen.len() / 2)) {
            (Some(keys), Some(values)) => [width(keys), width(values)].map(|width| self.format(width)),
            _ => return Ok(None),
        };
        Ok(Some(joined(seen, formats)))
    }

    fn format(&self, width: i32) -> QuantizationFormat {
        QuantizationFormat {
            group_size: group_size(width).unwrap_or(KV_GROUP_SIZES[1] as i32),
            bits: u8::from(self.bits).into(),
            mode: c"affine",
        }
    }

    /// Takes back the last positions.
    pub fn drop_last(&mut self, count: usize) {
        self.rows.drop_last(count as i32);
    }

    /// A copy that does not change.
    pub fn freeze(&mut self, counter: &ByteCounter) -> Result<KvBlocks> {
        self.rows.freeze(counter)
    }

    /// A cache that begins with the first positions of a copy.
    pub fn thaw(blocks: &KvBlocks, bits: KvBits, positions: i32) -> Result<Self> {
        Ok(Self {
            rows: blocks.thaw(positions)?,
            bits,
        })
    }
}

/// Keys and values of the tensors that keep them, in these formats.
fn joined(seen: Vec<Tensor>, [of_keys, of_values]: [QuantizationFormat; 2]) -> (QuantizedTensor, QuantizedTensor) {
    let mut seen = seen.into_iter();
    let mut next = |format: QuantizationFormat| match (seen.next(), seen.next(), seen.next()) {
        (Some(weight), Some(scales), biases) => QuantizedTensor {
            weight,
            scales,
            biases,
            format,
        },
        _ => unreachable!("the affine format has three tensors"),
    };
    (next(of_keys), next(of_values))
}
