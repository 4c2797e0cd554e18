//! Rows of a step as attention over latents reads them: one head after another.

use mlx::tensor::Tensor;
use mlx::Result;

/// `[length, count · width]` to `[1, count, length, width]`, or the rows of several sequences to `[sequences, count, 1,
/// width]`.
pub(super) fn by_head(x: &Tensor, count: i32, sequences: i32) -> Result<Tensor> {
    let (length, width) = (x.dim(0), x.dim(1) / count);
    match (length, count) {
        _ if length == sequences => x.reshape(&[sequences, count, 1, width]),
        (_, 1) => x.reshape(&[1, 1, length, width]),
        _ => x.reshape(&[1, length, count, width])?.swapaxes(1, 2),
    }
}
