//! The scan of Mamba 2 (Dao, Gu: Transformers are SSMs, 2024, arXiv:2405.21060). A head carries a matrix `S` from
//! places to values. Each token lets it fade, adds its own value at its own places, and reads at others:
//!
//! `S ← decay · S + step · value placeᵀ;  output = S query`
//!
//! One token is computed so. Several are computed in chunks by matrix products: within a chunk what a token reads of
//! another is `(query · place) · decay(from there)`, and only the states between chunks depend on one another.

use checkpoint::config::decoder::SCAN_CHUNK;
use mlx::device::{device, Device};
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::layers::delta_rule::square;

/// Tokens of a chunk at most.
const CHUNK: i32 = SCAN_CHUNK as i32;

/// The inputs of a step's tokens, all 32 bit floats. Heads share groups in order: group 0 serves the first
/// `heads / groups` heads.
pub struct StateSpaceInputs {
    /// `[length, heads, head width]`.
    pub values: Tensor,
    /// The places that are written, `B`, `[length, groups, state width]`.
    pub places: Tensor,
    /// The places that are read, `C`, `[length, groups, state width]`.
    pub queries: Tensor,
    /// Not below 0, `[length, heads]`.
    pub steps: Tensor,
    /// Logarithms of the decays, not above 0, `[length, heads]`.
    pub log_decays: Tensor,
}

/// The scan with its constants.
#[derive(Parameters)]
pub struct StateSpace {
    /// Ones on and below the diagonal, `[CHUNK, CHUNK]`.
    seen: Tensor,
    /// Ones below the diagonal.
    earlier: Tensor,
}

impl StateSpace {
    /// Makes the constants.
    pub fn new() -> Self {
        Self {
            seen: square(CHUNK, |row, column| f32::from(column <= row)),
            earlier: square(CHUNK, |row, column| f32::from(column < row)),
        }
    }

    /// The outputs `[length, heads, head width]` of the next tokens. `state` `[groups, heads per group, head width,
    /// state width]` is carried on; `None` is all zeros.
    pub fn forward(&self, tokens: &StateSpaceInputs, state: &mut Option<Tensor>) -> Result<Tensor> {
        let (groups, state_width) = (tokens.places.dim(1), tokens.places.dim(2));
        let (heads, head_width) = (tokens.values.dim(1), tokens.values.dim(2));
        let before = match state.take() {
            Some(before) => before,
            None => Tensor::zeros(
                &[groups, heads / groups, head_width, state_width],
                tokens.values.dtype(),
            )?,
        };
        let (outputs, after) = match tokens.values.dim(0) {
            1 => step(tokens, &before)?,
            _ => self.chunks(tokens, &before)?,
        };
        *state = Some(after);
        Ok(outputs)
    }

    /// Many tokens at once.
    fn chunks(&self, tokens: &StateSpaceInputs, state: &Tensor) -> Result<(Tensor, Tensor)> {
        let &[groups, shared, head_width, state_width] = state.shape() else {
            unreachable!("states have four axes")
        };
        let length = tokens.values.dim(0);
        let size = length.min(CHUNK);
        let count = (length + size - 1) / size;
        // Tokens of zeros at the end change nothing: they add nothing, and their decays keep everything.
        let padded = |x: &Tensor| match count * size - length {
            0 => Ok(x.clone()),
            missing => {
                let mut shape = x.shape().to_vec();
                shape[0] = missing;
                concatenate(&[x, &Tensor::zeros(&shape, x.dtype())?], 0)
            }
        };
        // [chunk, group, head of that group, token, width]
        let by_head = |x: &Tensor, shared: i32, width: i32| {
            let tokens = padded(x)?.reshape(&[count, size, groups, shared, width])?;
            tokens.transpose(&[0, 2, 3, 1, 4])
        };
        let turned = |x: &Tensor| x.swapaxes(-1, -2);
        let corner = |x: &Tensor| match size {
            CHUNK => Ok(x.clone()),
            _ => x.slice(0, 0, size)?.slice(1, 0, size),
        };
        let steps = by_head(&tokens.steps, shared, 1)?;
        let log_decays = by_head(&tokens.log_decays, shared, 1)?;
        let written = by_head(&tokens.values, shared, head_width)?.mul(&steps)?;
        // In one piece, because a product would copy them once for each of the heads that share them.
        let places = by_head(&tokens.places, 1, state_width)?.contiguous()?;
        let queries = by_head(&tokens.queries, 1, state_width)?.contiguous()?;

        // The remaining share of each earlier token (column) at each token (row), as the delta rule sums it.
        let fading = log_decays
            .mul(&corner(&self.earlier)?)?
            .cumsum(-2)?
            .exp()?
            .mul(&corner(&self.seen)?)?;
        // The remaining share of the state before the chunk.
        let left = log_decays.cumsum(-2)?.exp()?;
        let attention = queries.matmul(&turned(&places)?)?.mul(&fading)?;
        // The addition of each chunk to the state by its end.
        let kept = written.mul(&turned(&fading.slice(3, size - 1, size)?)?)?;
        let added = turned(&kept)?.matmul(&places)?;
        let remaining = left.slice(3, size - 1, size)?;

        let mut state = state.reshape(&[1, groups, shared, head_width, state_width])?;
        let mut states = Vec::new();
        for chunk in 0..count {
            let of = |x: &Tensor| match count {
                1 => Ok(x.clone()),
                _ => x.slice(0, chunk, chunk + 1),
            };
            let after = state.mul(&of(&remaining)?)?.add(&of(&added)?)?;
            states.push(std::mem::replace(&mut state, after));
        }
        let states = concatenate(&states.iter().collect::<Vec<_>>(), 0)?;
        let of_before = queries.matmul(&turned(&states)?)?.mul(&left)?;
        let outputs = attention.matmul(&written)?.add(&of_before)?;
        let outputs = outputs.transpose(&[0, 3, 1, 2, 4])?;
        let outputs = outputs
            .reshape(&[count * size, groups * shared, head_width])?
            .slice(0, 0, length)?;
        Ok((outputs, state.reshape(&[groups, shared, head_width, state_width])?))
    }
}

/// One token.
fn step(tokens: &StateSpaceInputs, state: &Tensor) -> Result<(Tensor, Tensor)> {
    let &[groups, shared, head_width, state_width] = state.shape() else {
        unreachable!("states have four axes")
    };
    let per_head = |x: &Tensor| x.reshape(&[groups, shared, 1, 1]);
    let faded = state.mul(&per_head(&tokens.log_decays.exp()?)?)?;
    let value = tokens.values.reshape(&[groups, shared, head_width, 1])?;
    let written = value.mul(&per_head(&tokens.steps)?)?;
    let place = tokens.places.reshape(&[groups, 1, 1, state_width])?;
    let state = match device() {
        // CUDA rounds the factors of a matrix product to 10 bits, and this one is summed up for the complete text.
        Device::Cuda => faded.add(&written.mul(&place)?)?,
        Device::Cpu | Device::Metal => written.addmm(&place, &faded)?,
    };
    let query = tokens.queries.reshape(&[groups, 1, state_width, 1])?;
    let output = state.matmul(&query)?.reshape(&[1, groups * shared, head_width])?;
    Ok((output, state))
}

#[cfg(test)]
#[path = "state_space_tests.rs"]
mod tests;
