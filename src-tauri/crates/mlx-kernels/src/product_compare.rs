//! A product of random numbers, to compare a kernel with before it is used the first time.

use mlx::fused::{GateActivation, Rows};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
use crate::gate::compose;
use crate::tiles::{sizes, NoiseMatrix};

/// By how much a product differs: `launch` gets rows of each count, a matrix like this one, and a bias if there is one.
pub fn compare_product(
    dtype: Dtype,
    (like, biased, gated): (Rows<'_>, bool, Option<GateActivation>),
    counts: [i32; 3],
    launch: impl Fn(&Tensor, Rows<'_>, Option<&Tensor>) -> Result<Option<Tensor>>,
) -> Result<f32> {
    let mut apart: f32 = 0.0;
    // The last one has a warp take several parts of one row.
    let sizes = counts.into_iter().zip(sizes(like)).chain([(counts[0], (5504, 72))]);
    for (rows, (inputs, outputs)) in sizes {
        let x = noise(&[rows, inputs], dtype, 31)?;
        let matrix = NoiseMatrix::like(like, &[outputs, inputs], dtype, 32)?;
        let bias = noise(&[1, outputs], dtype, 33)?;
        let bias = Some(&bias).filter(|_| biased);
        let Some(made) = launch(&x, matrix.rows(), bias)? else {
            return Ok(f32::INFINITY);
        };
        let mut wanted = x.astype(Dtype::Float32)?.matmul(&matrix.transposed()?)?;
        if let Some(bias) = bias {
            wanted = wanted.add(&bias.astype(Dtype::Float32)?)?;
        }
        if let Some(curve) = gated {
            let half = outputs / 2;
            wanted = compose(curve, &wanted.slice(1, 0, half)?, &wanted.slice(1, half, outputs)?)?;
        }
        apart = apart.max(difference(&made, &wanted)?);
    }
    Ok(apart)
}
