//! The cache of full attention in 4 or 8 bits. Sliding windows and recurrent states do not grow, so they are never packed.

use protocol::KvBits;

use crate::cache::growing::{Growing, Pages};
use crate::cache::Ledger;
use crate::error::Result;
use crate::layers::Parameters;
use crate::ops::{Format, Packed};
use crate::tensor::Tensor;

/// Widths of the groups that share a scale, best first.
const GROUPS: [i32; 2] = [64, 32];

/// Keeps every position: the words, scales and biases of its keys, then those of its values.
pub struct QuantizedCache {
    rows: Growing,
    bits: KvBits,
}

impl QuantizedCache {
    /// An empty cache.
    pub fn new(bits: KvBits) -> Self {
        Self {
            rows: Growing::default(),
            bits,
        }
    }

    /// Whether heads of this width can be packed: MLX has groups of 32 and 64.
    pub fn suits(width: i32) -> bool {
        GROUPS.iter().any(|group| width % group == 0)
    }

    /// How many bits a number takes.
    pub fn bits(&self) -> KvBits {
        self.bits
    }

    /// How many positions have been read.
    pub fn offset(&self) -> usize {
        self.rows.offset() as usize
    }

    /// Adds positions and returns all; the widths [suit](Self::suits).
    pub fn update(&mut self, keys: &Tensor, values: &Tensor) -> Result<(Packed, Packed)> {
        let keys = Packed::quantize(keys, self.format(keys.dim(3)))?;
        let values = Packed::quantize(values, self.format(values.dim(3)))?;
        let parts: Vec<&Tensor> = [&keys, &values]
            .into_iter()
            .flat_map(|packed| [Some(&packed.weight), Some(&packed.scales), packed.biases.as_ref()])
            .flatten()
            .collect();
        let mut seen = self.rows.push(&parts)?.into_iter();
        let mut next = |format: Format| match (seen.next(), seen.next(), seen.next()) {
            (Some(weight), Some(scales), biases) => Packed {
                weight,
                scales,
                biases,
                format,
            },
            _ => unreachable!("the affine format has three tensors"),
        };
        Ok((next(keys.format), next(values.format)))
    }

    fn format(&self, width: i32) -> Format {
        Format {
            group_size: if width % GROUPS[0] == 0 { GROUPS[0] } else { GROUPS[1] },
            bits: u8::from(self.bits).into(),
            mode: c"affine",
        }
    }

    /// A copy that does not change.
    pub fn freeze(&mut self, ledger: &Ledger) -> Result<Pages> {
        self.rows.freeze(ledger)
    }

    /// A cache that begins with the first positions of a copy.
    pub fn thaw(pages: &Pages, bits: KvBits, positions: i32) -> Result<Self> {
        Ok(Self {
            rows: pages.thaw(positions)?,
            bits,
        })
    }
}

impl Parameters for QuantizedCache {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self { rows, bits: _ } = self;
        rows.visit(visitor);
    }
}
