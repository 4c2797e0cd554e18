//! Blocks of positions that attention sees: the last ones, and stripes of those before, other ones for each head (Phi 3
//! small).

use checkpoint::config::decoder::StripesConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::seen;

/// The blocks that queries of one layer see.
#[derive(Parameters)]
pub(super) struct Stripes {
    block: i32,
    local: i32,
    stride: i32,
    /// The remainder of each head, `[heads]`.
    remainders: Tensor,
}

impl Stripes {
    pub(super) fn new(config: &StripesConfig, heads: u32) -> Self {
        let remainders: Vec<i32> = config.remainders(heads).into_iter().map(|rest| rest as i32).collect();
        Self {
            block: config.block as i32,
            local: config.local as i32,
            stride: config.stride as i32,
            remainders: Tensor::from_i32(&remainders, &[heads as i32]),
        }
    }

    /// Marks what each of `length` positions after `before` others sees, `[heads, length, positions]`; `None` while that
    /// is all up to itself.
    pub(super) fn seen(&self, before: i32, length: i32) -> Result<Option<Tensor>> {
        let positions = before + length;
        let blocks = (positions + self.block - 1) / self.block;
        if blocks <= self.local {
            return Ok(None);
        }
        let of: Vec<i32> = (0..positions).map(|position| position / self.block).collect();
        let oldest: Vec<i32> = of[before as usize..].iter().map(|block| block - self.local).collect();
        let near = Tensor::from_i32(&of, &[1, positions]).greater(&Tensor::from_i32(&oldest, &[length, 1]))?;
        let striped = |rest: i32| (0..blocks).map(move |block| (block + rest) % self.stride == 0);
        let striped: Vec<bool> = (0..self.stride).flat_map(striped).collect();
        let heads = self.remainders.dim(0);
        let each = Tensor::from_bool(&striped, &[self.stride, blocks]).take(&self.remainders, 0)?;
        let each = each.reshape(&[heads, 1, blocks, 1])?;
        let each = each.broadcast(&[heads, 1, blocks, self.block])?;
        let each = each.reshape(&[heads, 1, blocks * self.block])?.slice(2, 0, positions)?;
        let marked = near.select(&near, &each)?;
        Ok(Some(match length {
            1 => marked,
            _ => marked.mul(&seen(before, length, None, None)?)?,
        }))
    }
}
