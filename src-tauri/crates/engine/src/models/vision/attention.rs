//! Attention among the patches of one picture.

use crate::error::Result;
use crate::layers::{Linear, RmsNorm};
use crate::ops::{concatenate, Mask};
use crate::parameters::Parameters;
use crate::tensor::{device, Device, Tensor};
use crate::weights::Weights;

use super::rope::PatchRope;

/// Scores that are in memory at once, in bytes.
const SCORES: i64 = 256 << 20;

/// Widths of heads that Metal has a kernel for which writes no scores.
const FUSED: [i32; 3] = [64, 80, 128];

/// Norms of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchNorms {
    /// None.
    None,
    /// Over the width of a head.
    PerHead,
    /// Over all heads together.
    Whole,
}

/// What tensors are called below a layer.
pub struct AttentionNames {
    /// The three projections, or the one that joins them.
    pub qkv: &'static [&'static str],
    /// The projection of what was found.
    pub out: &'static str,
    /// Norms of queries and of keys.
    pub norms: (PatchNorms, [&'static str; 2]),
}

/// Softmax attention in which every patch sees every other one.
pub struct PatchAttention {
    heads: i32,
    width: i32,
    kind: PatchNorms,
    qkv: Linear,
    norms: Option<(RmsNorm, RmsNorm)>,
    out: Linear,
}

impl PatchAttention {
    /// Loads what stands below `path`; `hidden` is the width of the stream, which the heads share.
    pub fn load(weights: &mut Weights<'_>, path: &str, names: &AttentionNames, (hidden, heads): (i32, i32), eps: f32) -> Result<Self> {
        let width = hidden / heads;
        let outputs = 3 * hidden / names.qkv.len() as i32;
        let parts: Vec<_> = names.qkv.iter().map(|name| (format!("{path}.{name}"), outputs)).collect();
        let mut norm = |name: &str, width: i32| RmsNorm::load(weights, &format!("{path}.{name}"), width, eps);
        let (kind, [queries, keys]) = names.norms;
        let norms = match kind {
            PatchNorms::None => None,
            PatchNorms::PerHead => Some((norm(queries, width)?, norm(keys, width)?)),
            PatchNorms::Whole => Some((norm(queries, hidden)?, norm(keys, hidden)?)),
        };
        Ok(Self {
            heads,
            width,
            kind,
            norms,
            qkv: Linear::load_joined(weights, &parts, hidden)?,
            out: Linear::load(weights, &format!("{path}.{}", names.out), hidden, hidden)?,
        })
    }

    /// Rows `[patches, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, rope: Option<&PatchRope>, mask: &Mask) -> Result<Tensor> {
        let (rows, hidden) = (x.dim(0), self.heads * self.width);
        let all = self.qkv.forward(x)?;
        let part = |index: i32| all.slice(1, index * hidden, (index + 1) * hidden);
        let by_head = |x: &Tensor| x.reshape(&[1, rows, self.heads, self.width])?.swapaxes(1, 2);
        let turned = |index: i32, norm: Option<&RmsNorm>| {
            let x = part(index)?;
            let heads = match (norm, self.kind) {
                (None, _) => x,
                (Some(norm), PatchNorms::PerHead) => norm.forward(&x.reshape(&[rows, self.heads, self.width])?)?,
                (Some(norm), _) => norm.forward(&x)?,
            };
            match rope {
                Some(rope) => rope.forward(&by_head(&heads)?),
                None => by_head(&heads),
            }
        };
        let norms = self.norms.as_ref();
        let queries = turned(0, norms.map(|(queries, _)| queries))?;
        let keys = turned(1, norms.map(|(_, keys)| keys))?;
        let found = attend(&queries, &keys, &by_head(&part(2)?)?, (self.width as f32).powf(-0.5), mask)?;
        self.out.forward(&found)
    }
}

/// What queries `[1, heads, patches, width]` find among keys and values of the same shape, `[patches, heads · width]`. As few
/// queries look at once as their scores need to stay small, if no kernel does without writing them down.
pub fn attend(queries: &Tensor, keys: &Tensor, values: &Tensor, scale: f32, mask: &Mask) -> Result<Tensor> {
    let &[_, heads, rows, width] = queries.shape() else {
        unreachable!("queries have four axes")
    };
    // Numbers of zeros change no score, and a kernel for the wider heads is there.
    let wider = FUSED.into_iter().find(|fused| *fused >= width).unwrap_or(width);
    if device() == Device::Metal && wider != width {
        let pad = |x: &Tensor| {
            let zeros = Tensor::zeros(&[1, heads, x.dim(2), wider - width], x.dtype())?;
            concatenate(&[x, &zeros], 3)
        };
        let found = attend(&pad(queries)?, &pad(keys)?, &pad(values)?, scale, mask)?;
        return found
            .reshape(&[rows, heads, wider])?
            .slice(2, 0, width)?
            .reshape(&[rows, heads * width]);
    }
    let fused = device() == Device::Metal && FUSED.contains(&width);
    let all = i64::from(rows) * i64::from(keys.dim(2)) * i64::from(heads) * 4;
    let at_once = if fused { rows } else { (i64::from(rows) * SCORES / all.max(SCORES)).max(1) as i32 };
    let mut found = Vec::new();
    for first in (0..rows).step_by(at_once as usize) {
        let last = rows.min(first + at_once);
        let mask = match mask {
            Mask::Array(marks) if marks.dim(-2) == rows && rows > at_once => {
                Mask::Array(marks.slice(marks.shape().len() - 2, first, last)?)
            }
            whole => whole.clone(),
        };
        found.push(queries.slice(2, first, last)?.fast_attention(keys, values, scale, &mask, None)?);
    }
    let found = match &found[..] {
        [one] => one.clone(),
        several => concatenate(&several.iter().collect::<Vec<_>>(), 2)?,
    };
    found.swapaxes(1, 2)?.reshape(&[rows, heads * width])
}

impl Parameters for PatchAttention {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            heads: _,
            width: _,
            kind: _,
            qkv,
            norms,
            out,
        } = self;
        qkv.visit(visitor);
        if let Some((queries, keys)) = norms {
            queries.visit(visitor);
            keys.visit(visitor);
        }
        out.visit(visitor);
    }
}
