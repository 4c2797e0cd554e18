//! Attention of vision encoders: every patch sees every patch of its window, or of the full view.

use std::ops::Range;

use checkpoint::memory::MAX_VISION_SCORES;
use mlx::device::{device, Device};
use mlx::ops::{concatenate, join, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use super::linear::ClippedLinear;
use super::rope::PatchRotation;
use crate::layers::{Linear, RmsNorm};

/// The widths of heads that Metal has a kernel for.
const KERNEL_WIDTHS: [i32; 3] = [64, 80, 128];

/// The projections of queries, keys and values.
#[derive(Parameters)]
pub enum Projections {
    /// By one matrix, side by side.
    Joined(Linear),
    /// One by one.
    Apart(Box<[ClippedLinear; 3]>),
}

/// Norms of queries, keys and values, in this order.
#[derive(Parameters)]
pub enum HeadNorms {
    /// None.
    None,
    /// Of all three over the width of a head (Gemma 4).
    All([RmsNorm; 3]),
    /// Of queries and keys over the width of a head (GLM-OCR).
    QueriesAndKeys([RmsNorm; 2]),
    /// Of queries and keys over all heads together (InternViT).
    Whole([RmsNorm; 2]),
}

impl HeadNorms {
    /// `part` `[patches, heads · width]` of this index, normed and split into heads of this width.
    fn split(&self, part: &Tensor, index: usize, width: i32) -> Result<Tensor> {
        let by_head = |part: &Tensor| part.reshape(&[part.dim(0), -1, width]);
        match self {
            Self::All(norms) => norms[index].forward(&by_head(part)?),
            Self::QueriesAndKeys(norms) if index < norms.len() => norms[index].forward(&by_head(part)?),
            Self::Whole(norms) if index < norms.len() => by_head(&norms[index].forward(part)?),
            _ => by_head(part),
        }
    }
}

/// Attention without a cache.
#[derive(Parameters)]
pub struct Attention {
    /// Heads of queries, keys and values.
    pub heads: i32,
    /// Width of a head.
    pub width: i32,
    /// Factor of the scores.
    pub scale: f32,
    /// The projections of queries, keys and values.
    pub projections: Projections,
    /// The norms of queries, keys and values before they are rotated.
    pub norms: HeadNorms,
    /// The output projection (`o_proj`).
    pub output: ClippedLinear,
}

/// Windows of one size that follow each other: how many, and how many patches each has.
pub type Group = (i32, i32);

/// Which patches see which.
pub enum PatchMask<'a> {
    /// Those of a window each other. The windows follow each other and hold all patches.
    Windows(&'a [Group]),
    /// The first rows, this many, see all; the others only fill up and see the first ones.
    Padded(i32),
    /// All rows see the first ones, this many.
    First(i32),
}

impl Attention {
    /// States `[patches, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, rotation: Option<&PatchRotation>, mask: &PatchMask<'_>) -> Result<Tensor> {
        let width = self.heads * self.width;
        let [queries, keys, values] = match &self.projections {
            Projections::Joined(joined) => {
                let all = joined.forward(x)?;
                [
                    all.slice(1, 0, width)?,
                    all.slice(1, width, 2 * width)?,
                    all.slice(1, 2 * width, 3 * width)?,
                ]
            }
            Projections::Apart(each) => [each[0].forward(x)?, each[1].forward(x)?, each[2].forward(x)?],
        };
        let by_head = |part: &Tensor, index: usize| self.norms.split(part, index, self.width);
        let turned = |part: Tensor| rotation.map_or(Ok(part.clone()), |rotation| rotation.forward(&part));
        let (queries, keys) = (turned(by_head(&queries, 0)?)?, turned(by_head(&keys, 1)?)?);
        let values = by_head(&values, 2)?;
        let rows = queries.dim(0);
        let spans = match *mask {
            PatchMask::Windows(groups) => windows(groups),
            PatchMask::Padded(real) => vec![(1, 0..real, 0..rows), (1, real..rows, 0..real)],
            PatchMask::First(seen) => vec![(1, 0..rows, 0..seen)],
        };
        self.output.forward(&self.attend(&queries, &keys, &values, spans)?)
    }

    /// Queries, keys and values `[patches, heads, width]` to what was found, `[patches, heads · width]`.
    fn attend(&self, queries: &Tensor, keys: &Tensor, values: &Tensor, spans: Vec<Span>) -> Result<Tensor> {
        let mut found = Vec::with_capacity(spans.len());
        for (count, looking, seen) in spans {
            if looking.is_empty() {
                continue;
            }
            let part = |part: &Tensor, rows: &Range<i32>| {
                let part = part.slice(0, rows.start, rows.end)?;
                let part = part.reshape(&[count, rows.len() as i32 / count, self.heads, self.width])?;
                self.padded(&part.transpose(&[0, 2, 1, 3])?)
            };
            let (queries, keys, values) = (part(queries, &looking)?, part(keys, &seen)?, part(values, &seen)?);
            let attended = attend_in_turns(&queries, &keys, &values, self.scale)?;
            let attended = attended.slice(3, 0, self.width)?.transpose(&[0, 2, 1, 3])?;
            found.push(attended.reshape(&[looking.len() as i32, self.heads * self.width])?);
        }
        join(&found, 0)
    }

    /// Heads with zeros after them, up to a width that Metal's kernel takes; they change neither scores nor what is
    /// found.
    fn padded(&self, heads: &Tensor) -> Result<Tensor> {
        let wider = KERNEL_WIDTHS.into_iter().find(|width| *width >= self.width);
        match wider.filter(|width| device() == Device::Metal && *width > self.width) {
            None => Ok(heads.clone()),
            Some(width) => {
                let &[windows, count, length, _] = heads.shape() else {
                    unreachable!("heads have four axes")
                };
                let zeros = Tensor::zeros(&[windows, count, length, width - self.width], heads.dtype())?;
                concatenate(&[heads, &zeros], 3)
            }
        }
    }
}

/// How many windows of one size, the patches in them that look, and those that they see.
type Span = (i32, Range<i32>, Range<i32>);

fn windows(groups: &[Group]) -> Vec<Span> {
    let mut start = 0;
    let spans = groups.iter().map(|(count, length)| {
        let patches = start..start + count * length;
        start = patches.end;
        (*count, patches.clone(), patches)
    });
    spans.collect()
}

/// Queries `[windows, heads, length, width]` look in turns if the scores of all would take too much memory, should no
/// kernel keep them to itself.
pub fn attend_in_turns(queries: &Tensor, keys: &Tensor, values: &Tensor, scale: f32) -> Result<Tensor> {
    let &[windows, heads, length, _] = queries.shape() else {
        unreachable!("queries have four axes")
    };
    let of_one = windows as u64 * heads as u64 * keys.dim(2) as u64 * 4;
    let together = (MAX_VISION_SCORES / of_one.max(1)).clamp(1, length as u64) as i32;
    attend_some(queries, keys, values, scale, together)
}

/// The same with `together` queries of each window and head at once.
fn attend_some(queries: &Tensor, keys: &Tensor, values: &Tensor, scale: f32, together: i32) -> Result<Tensor> {
    let (length, mut found) = (queries.dim(2), Vec::new());
    for first in (0..length).step_by(together as usize) {
        let some = queries.slice(2, first, length.min(first + together))?;
        found.push(some.fast_attention(keys, values, scale, &Mask::None, None)?);
    }
    join(&found, 2)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;
    use mlx::Dtype;

    use super::*;
    use crate::products::product_check::{activations, relative};

    fn attention(heads: i32, width: i32) -> Attention {
        let hidden = heads * width;
        let square = |columns: i32| activations(&[columns, hidden], Dtype::Float32).unwrap();
        let output = Linear::with_bias(&square(hidden), None).unwrap();
        Attention {
            heads,
            width,
            scale: (width as f32).powf(-0.5),
            projections: Projections::Joined(Linear::with_bias(&square(3 * hidden), None).unwrap()),
            norms: HeadNorms::None,
            output: ClippedLinear::from(output),
        }
    }

    #[test]
    fn queries_that_look_in_turns_find_the_same() {
        connect().unwrap();
        let attention = attention(3, 8);
        let heads = || activations(&[2, 3, 20, 8], Dtype::Float32).unwrap();
        let (queries, keys, values) = (heads(), heads(), heads());
        let all = attend_in_turns(&queries, &keys, &values, attention.scale).unwrap();
        for together in [1, 7, 19, 20] {
            let turns = attend_some(&queries, &keys, &values, attention.scale, together).unwrap();
            assert!(relative(&turns, &all).unwrap() < 1e-5, "{together} at once");
        }
    }

    #[test]
    fn windows_see_nothing_of_each_other() {
        connect().unwrap();
        let attention = attention(2, 8);
        let x = activations(&[20, 16], Dtype::Float32).unwrap();
        let both = attention
            .forward(&x, None, &PatchMask::Windows(&[(2, 4), (1, 12)]))
            .unwrap();
        for (start, end) in [(0, 4), (4, 8), (8, 20)] {
            let alone = attention
                .forward(
                    &x.slice(0, start, end).unwrap(),
                    None,
                    &PatchMask::Windows(&[(1, end - start)]),
                )
                .unwrap();
            assert!(
                relative(&both.slice(0, start, end).unwrap(), &alone).unwrap() < 1e-5,
                "{start} to {end}"
            );
        }
    }
}
