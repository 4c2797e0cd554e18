//! The experts of a token, and their shares.

use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::noise;
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

/// Experts to choose from at most: a lane keeps 16.
pub const MAX_COUNT: i32 = 512;
/// Experts of a token at most: a lane writes one.
pub const MAX_CHOSEN: i32 = 32;

/// The places of the `chosen` greatest of each row of `scores` `[rows, count]` and their softmax, both `[rows, chosen]`.
/// `None` if no kernel can be used.
pub fn route(scores: &Tensor, chosen: i32) -> Result<Option<(Tensor, Tensor)>> {
    let &[_, count] = scores.shape() else {
        return Ok(None);
    };
    if count > MAX_COUNT || chosen > MAX_CHOSEN.min(count) {
        return Ok(None);
    }
    let key = Key::new(Program::Route, scores.dtype(), [chosen]);
    let kernel = find(key, |kernel| compare(kernel, chosen, count, scores.dtype()));
    kernel.map(|kernel| launch(&kernel, scores, chosen)).transpose()
}

fn launch(kernel: &Kernel, scores: &Tensor, chosen: i32) -> Result<(Tensor, Tensor)> {
    let rows = scores.dim(0);
    let shape = [rows, chosen];
    let outputs = [(&shape[..], Dtype::Uint32), (&shape[..], scores.dtype())];
    let [places, shares] = kernel.launch([scores], outputs, (rows, 1), 32)?;
    Ok((places, shares))
}

/// The difference of the shares; infinite if other experts are chosen.
fn compare(kernel: &Kernel, chosen: i32, count: i32, dtype: Dtype) -> Result<f32> {
    let mut apart: f32 = 0.0;
    for count in [count, chosen, chosen + 1] {
        // Steps of a fifth, so that no two scores are equal in 16 bits.
        let order = noise(&[3, count], Dtype::Float32, 61)?.argsort(1)?;
        let scores = order
            .astype(Dtype::Float32)?
            .mul(&Tensor::scalar(0.2, Dtype::Float32)?)?;
        let scores = scores.astype(dtype)?;
        let (places, shares) = launch(kernel, &scores, chosen)?;
        let wide = scores.to_f32()?;
        let (places, shares) = (places.to_f32()?, shares.to_f32()?);
        let (count, chosen) = (count as usize, chosen as usize);
        for ((row, places), shares) in wide.chunks(count).zip(places.chunks(chosen)).zip(shares.chunks(chosen)) {
            let mut wanted = row.to_vec();
            wanted.sort_by(|a, b| b.total_cmp(a));
            wanted.truncate(chosen);
            let made: Vec<f32> = places
                .iter()
                .map(|place| row.get(*place as usize).copied().unwrap_or(f32::NAN))
                .collect();
            if made != wanted {
                return Ok(f32::INFINITY);
            }
            let all: f32 = wanted.iter().map(|score| (score - wanted[0]).exp()).sum();
            for (score, share) in wanted.iter().zip(shares) {
                apart = apart.max(((score - wanted[0]).exp() / all - share).abs());
            }
        }
    }
    Ok(apart)
}
