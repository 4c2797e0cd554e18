//! From pixels to the rows that a tower begins with. A convolution whose stride is its kernel is a projection of each patch.

use crate::error::{Error, Result};
use crate::layers::Linear;
use crate::tensor::Tensor;
use crate::weights::Weights;

/// The numbers of a patch: how many channels, frames and pixels a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchShape {
    /// Channels.
    pub channels: i32,
    /// Frames, of which a still picture has copies.
    pub frames: i32,
    /// Pixels of a side.
    pub side: i32,
}

impl PatchShape {
    /// Of a still picture in colour.
    pub fn still(side: u32) -> Self {
        Self {
            channels: 3,
            frames: 1,
            side: side as i32,
        }
    }

    /// How many numbers they are.
    pub fn numbers(self) -> i32 {
        self.channels * self.frames * self.side * self.side
    }
}

/// Loads the convolution `path` as a projection of rows whose numbers lie channel by channel, frame by frame, row by row. Files
/// that were converted for MLX have the channels last, others have them second.
pub fn load_patch_linear(weights: &mut Weights<'_>, path: &str, shape: PatchShape, outputs: i32) -> Result<Linear> {
    let PatchShape { channels, frames, side } = shape;
    let name = format!("{path}.weight");
    let stored = weights.shape(&name).ok_or_else(|| Error::MissingTensor(name.clone()))?.to_vec();
    let last = stored.len() as i32 - 1;
    let rows = weights.take(&name, &stored)?;
    let numbers = shape.numbers();
    let wrong = || Error::WrongShape {
        name: name.clone(),
        expected: format!("{outputs} patches of {channels} · {frames} · {side} · {side}"),
        found: stored.clone(),
    };
    let still = [outputs, side, side, channels];
    let moving = [outputs, frames, side, side, channels];
    let rows = match &stored[..] {
        found if found == moving => rows.transpose(&[0, 4, 1, 2, 3])?,
        found if found == still && frames == 1 => rows.transpose(&[0, 3, 1, 2])?,
        [first, second, ..] if (*first, *second) == (outputs, channels) && rows.size() as i32 == outputs * numbers && last > 1 => rows,
        _ => return Err(wrong()),
    };
    let rows = rows.reshape(&[outputs, numbers])?;
    let bias = format!("{path}.bias");
    let bias = match weights.has(&bias) {
        true => Some(weights.take(&bias, &[outputs])?.reshape(&[1, outputs])?),
        false => None,
    };
    Linear::from_parts(&rows, bias, weights)
}

/// The patches of a picture `[3, height, width]` in rows, `[patches, numbers]`, each channel by channel.
pub fn patch_rows(picture: &Tensor, side: i32) -> Result<Tensor> {
    let &[channels, height, width] = picture.shape() else {
        return Err(Error::Mlx(format!("a picture of the shape {:?}", picture.shape())));
    };
    let (rows, columns) = (height / side, width / side);
    picture
        .reshape(&[channels, rows, side, columns, side])?
        .transpose(&[1, 3, 0, 2, 4])?
        .reshape(&[rows * columns, channels * side * side])
}

/// Joins the `merge` × `merge` patches of each block of a grid `[rows · columns, width]` row after row:
/// `[blocks, merge · merge · width]`.
pub fn merge_blocks(x: &Tensor, (rows, columns): (i32, i32), merge: i32) -> Result<Tensor> {
    let width = x.dim(-1);
    let (down, over) = (rows / merge, columns / merge);
    x.reshape(&[down, merge, over, merge * width])?
        .swapaxes(1, 2)?
        .reshape(&[down * over, merge * merge * width])
}
