//! The projection of patches. Files have it as a convolution whose stride is its kernel, which is a product with each
//! patch: the weight is brought into the order of a patch's numbers.

use mlx::parameters::Parameters;
use mlx::tensor::Tensor;

use crate::error::{Error, Result};
use crate::layers::Linear;
use crate::weights::Weights;

/// Colors of a pixel.
pub const COLOURS: i32 = 3;

/// The order of a patch's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchOrder {
    /// `[3, frames, side, side]`.
    ColourByColour,
    /// `[side, side, 3]`.
    PixelByPixel,
}

/// Loads the projection of patches at `path`: `[outputs, inputs]` in the order of the patches, or a convolution with
/// its colors second, as PyTorch has them, or last, as MLX has them. The axis of length 3 tells which of the two it is.
pub fn load_patch_linear(
    weights: &mut Weights<'_>,
    path: &str,
    inputs: i32,
    outputs: i32,
    order: PatchOrder,
) -> Result<Linear> {
    let name = format!("{path}.weight");
    let shape = weights
        .shape(&name)
        .ok_or_else(|| Error::MissingTensor(name.clone()))?
        .to_vec();
    if shape.len() == 2 {
        return Linear::load(weights, path, inputs, outputs);
    }
    let kernel = weights.take_any(&name)?;
    let wrong = || Error::WrongShape {
        name: name.clone(),
        expected: format!("a convolution of {inputs} numbers to {outputs}"),
        found: shape.clone(),
    };
    // Axes after the outputs: frames if there are any, then rows and columns, and the colors among them.
    let axes = shape.len() as i32;
    if !(4..=5).contains(&axes) || shape[0] != outputs || kernel.size() as i64 != i64::from(inputs) * i64::from(outputs)
    {
        return Err(wrong());
    }
    let colours = match (shape[1], shape[shape.len() - 1]) {
        (_, COLOURS) => axes - 1,
        (COLOURS, _) => 1,
        _ => return Err(wrong()),
    };
    let places = (1..axes).filter(|axis| *axis != colours);
    let wanted: Vec<i32> = match order {
        PatchOrder::ColourByColour => [0, colours].into_iter().chain(places).collect(),
        PatchOrder::PixelByPixel => [0].into_iter().chain(places).chain([colours]).collect(),
    };
    let rows = kernel.transpose(&wanted)?.reshape(&[outputs, inputs])?;
    let bias = format!("{path}.bias");
    let bias = weights.take_if_present(&bias, &[outputs])?;
    let linear = Linear::with_bias(&rows, bias.as_ref())?;
    weights.materialize(linear.tensors())?;
    Ok(linear)
}

/// Loads the convolution at `path` that makes one row of the `merge` × `merge` patches of a block, patch after patch,
/// from `inputs` numbers each to `outputs`. Its channels are second, as PyTorch has them, or last, as MLX has them.
pub fn load_block_linear(
    weights: &mut Weights<'_>,
    path: &str,
    (inputs, outputs): (i32, i32),
    merge: i32,
) -> Result<Linear> {
    let name = format!("{path}.weight");
    let kernel = match weights.shape(&name) {
        Some(shape) if shape == [outputs, inputs, merge, merge] => {
            let kernel = weights.take(&name, &[outputs, inputs, merge, merge])?;
            kernel.transpose(&[0, 2, 3, 1])?
        }
        _ => weights.take(&name, &[outputs, merge, merge, inputs])?,
    };
    let bias = weights.take(&format!("{path}.bias"), &[outputs])?;
    let linear = Linear::with_bias(&kernel.reshape(&[outputs, merge * merge * inputs])?, Some(&bias))?;
    weights.materialize(linear.tensors())?;
    Ok(linear)
}

/// The rows of patches `[rows · columns, side · side · 3]`, pixel by pixel, row after row of planes `[3, height,
/// width]`. Pixels after the last complete patch are left out, as by a convolution.
pub fn cut(planes: &Tensor, side: i32) -> Result<Tensor> {
    let &[colours, height, width] = planes.shape() else {
        return Err(Error::BadRequest("an image has three axes".into()));
    };
    let (rows, columns) = (height / side, width / side);
    let whole = planes.slice(1, 0, rows * side)?.slice(2, 0, columns * side)?;
    let patches = whole.reshape(&[colours, rows, side, columns, side])?;
    let patches = patches.transpose(&[1, 3, 2, 4, 0])?;
    Ok(patches.reshape(&[rows * columns, side * side * colours])?)
}
