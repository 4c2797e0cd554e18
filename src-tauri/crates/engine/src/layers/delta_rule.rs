//! The gated delta rule (Yang, Kautz, Hatamizadeh: Gated Delta Networks, 2024). A head carries a matrix `S` from keys
//! to values. Each token lets it fade, asks it for the key's value, and corrects the answer towards the token's own
//! value:
//!
//! `S ← decay · S;  δ = rate · (value − S key);  S ← S + δ keyᵀ;  output = S query`
//!
//! One token is computed so. Several are computed in chunks by matrix products: within a chunk the corrections solve a
//! triangular system, `(I + A) δ = rate · (value − fading · S key)` with `A[i, j] = rate[i] · decay(j → i) ·
//! key[i]·key[j]`, and only the states between chunks depend on one another. If each number of a key has a decay of its
//! own (Kimi Linear, arXiv:2510.26692), the decays stand inside of that product.

use checkpoint::config::decoder::{CHANNEL_CHUNK, RULE_CHUNK};
use mlx::device::{device, Device};
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

/// Tokens of a chunk at most, a power of two.
const CHUNK: i32 = RULE_CHUNK as i32;
/// Tokens of a chunk at least, and the size of the triangles that are inverted by [`DeltaRule::invert_small`].
const SMALL: i32 = 16;
/// Tokens of a chunk if each number of a key has a decay of its own.
const CHANNELS: i32 = CHANNEL_CHUNK as i32;

/// The inputs of a step's tokens, all 32 bit floats. Value heads share key heads in order: head 0 of the keys serves
/// the first `value heads / key heads` value heads.
pub struct DeltaRuleInputs {
    /// `[length, key heads, key width]`.
    pub queries: Tensor,
    /// Unit vectors `[length, key heads, key width]`.
    pub keys: Tensor,
    /// `[length, value heads, value width]`.
    pub values: Tensor,
    /// Logarithms of the decays, finite and not above 0, `[length, value heads]`, or `[length, value heads, key
    /// width]`.
    pub log_decays: Tensor,
    /// Between 0 and 1, or 2 where states may turn their signs, `[length, value heads]`.
    pub betas: Tensor,
}

/// The rule with its constants.
#[derive(Parameters)]
pub struct DeltaRule {
    /// Ones on and below the diagonal, `[CHUNK, CHUNK]`.
    seen: Tensor,
    /// Ones below the diagonal.
    earlier: Tensor,
    /// Minus ones below the diagonal.
    minus_earlier: Tensor,
    /// Ones on the diagonal, `[SMALL, SMALL]`.
    unit: Tensor,
    /// For blocks of 1, 2, 4, … rows: ones in the lower left quarter of each pair of blocks on the diagonal,
    /// `[SMALL, SMALL]`.
    quarters: Vec<Tensor>,
}

impl DeltaRule {
    /// Makes the constants.
    pub fn new() -> Self {
        let blocks = |block: i32| {
            square(SMALL, move |row, column| {
                f32::from((row / block) % 2 == 1 && column / block == row / block - 1)
            })
        };
        Self {
            seen: square(CHUNK, |row, column| f32::from(column <= row)),
            earlier: square(CHUNK, |row, column| f32::from(column < row)),
            minus_earlier: square(CHUNK, |row, column| -f32::from(column < row)),
            unit: square(SMALL, |row, column| f32::from(column == row)),
            quarters: (0..SMALL.ilog2()).map(|power| blocks(1 << power)).collect(),
        }
    }

    /// The outputs `[length, value heads, value width]` of the next tokens. `state` `[key heads, value heads per key
    /// head, value width, key width]` is carried on; `None` is all zeros.
    pub fn forward(&self, tokens: &DeltaRuleInputs, state: &mut Option<Tensor>) -> Result<Tensor> {
        let (key_heads, key_width) = (tokens.keys.dim(1), tokens.keys.dim(2));
        let (value_heads, value_width) = (tokens.values.dim(1), tokens.values.dim(2));
        let shape = [key_heads, value_heads / key_heads, value_width, key_width];
        let before = match state.take() {
            Some(before) => before,
            None => Tensor::zeros(&shape, tokens.values.dtype())?,
        };
        let (outputs, after) = match tokens.keys.dim(0) {
            1 => step(tokens, &before)?,
            _ => self.chunks(tokens, &before)?,
        };
        *state = Some(after);
        Ok(outputs)
    }

    /// Many tokens at once.
    fn chunks(&self, tokens: &DeltaRuleInputs, state: &Tensor) -> Result<(Tensor, Tensor)> {
        let &[key_heads, shared, value_width, key_width] = state.shape() else {
            unreachable!("states have four axes")
        };
        let length = tokens.keys.dim(0);
        let by_channel = tokens.log_decays.shape().len() == 3;
        let size = match by_channel {
            true => CHANNELS,
            false => (length.max(SMALL) as u32).next_power_of_two().min(CHUNK as u32) as i32,
        };
        let count = (length + size - 1) / size;
        // Tokens of zeros at the end change nothing: their keys correct nothing, their decays keep everything.
        let padded = |x: &Tensor| match count * size - length {
            0 => Ok(x.clone()),
            missing => {
                let mut shape = x.shape().to_vec();
                shape[0] = missing;
                concatenate(&[x, &Tensor::zeros(&shape, x.dtype())?], 0)
            }
        };
        // [chunk, key head, value head of that key head, token, width]
        let by_head = |x: &Tensor, shared: i32, width: i32| {
            let tokens = padded(x)?.reshape(&[count, size, key_heads, shared, width])?;
            tokens.transpose(&[0, 2, 3, 1, 4])
        };
        let queries = by_head(&tokens.queries, 1, key_width)?;
        let keys = by_head(&tokens.keys, 1, key_width)?;
        let values = by_head(&tokens.values, shared, value_width)?;
        let log_decays = by_head(&tokens.log_decays, shared, if by_channel { key_width } else { 1 })?;
        let betas = by_head(&tokens.betas, shared, 1)?;
        let turned = |x: &Tensor| x.swapaxes(-1, -2);
        let corner = |x: &Tensor| match size {
            CHUNK => Ok(x.clone()),
            _ => x.slice(0, 0, size)?.slice(1, 0, size),
        };

        // The remaining share of the state before the chunk.
        let left = log_decays.cumsum(-2)?.exp()?;
        let (alike, attention, kept_keys) = match by_channel {
            true => self.faded_by_channel(&queries, &keys, &log_decays)?,
            false => {
                // The remaining share of each earlier token (column) at each token (row). Summed from the decays
                // between the two rather than as a difference of sums from the start, which would lose a weak decay
                // after a strong one.
                let fading = log_decays
                    .mul(&corner(&self.earlier)?)?
                    .cumsum(-2)?
                    .exp()?
                    .mul(&corner(&self.seen)?)?;
                let turned_keys = turned(&keys)?;
                let alike = keys.matmul(&turned_keys)?.mul(&corner(&self.minus_earlier)?)?;
                let attention = queries.matmul(&turned_keys)?.mul(&fading)?;
                let kept = turned(&fading.slice(3, size - 1, size)?)?;
                (alike.mul(&fading)?, attention, keys.mul(&kept)?)
            }
        };
        let system = alike.mul(&betas)?;
        let solved = self.invert(&system.reshape(&[-1, size, size])?)?;
        let solver = solved
            .reshape(&[count, key_heads, shared, size, size])?
            .mul(&turned(&betas)?)?;
        let minus_faded_keys = keys.mul(&left.negative()?)?;
        let faded_queries = queries.mul(&left)?;
        let kept = left.slice(3, size - 1, size)?;

        let mut state = state.reshape(&[1, key_heads, shared, value_width, key_width])?;
        let (mut states, mut corrections) = (Vec::new(), Vec::new());
        for chunk in 0..count {
            let of = |x: &Tensor| {
                if count == 1 {
                    Ok(x.clone())
                } else {
                    x.slice(0, chunk, chunk + 1)
                }
            };
            let wrong = of(&minus_faded_keys)?.addmm(&turned(&state)?, &of(&values)?)?;
            let correction = of(&solver)?.matmul(&wrong)?;
            let after = turned(&correction)?.addmm(&of(&kept_keys)?, &state.mul(&of(&kept)?)?)?;
            states.push(std::mem::replace(&mut state, after));
            corrections.push(correction);
        }
        let states = concatenate(&states.iter().collect::<Vec<_>>(), 0)?;
        let corrections = concatenate(&corrections.iter().collect::<Vec<_>>(), 0)?;
        let outputs = attention.addmm(&corrections, &faded_queries.matmul(&turned(&states)?)?)?;
        let outputs = outputs.transpose(&[0, 3, 1, 2, 4])?;
        let outputs = outputs
            .reshape(&[count * size, key_heads * shared, value_width])?
            .slice(0, 0, length)?;
        Ok((outputs, state.reshape(&[key_heads, shared, value_width, key_width])?))
    }

    /// Stand-ins for products of keys with earlier keys, negative, and of queries with earlier keys and their own,
    /// and the keys as the end of the chunk sees them, if each number of a key has a decay of its own.
    fn faded_by_channel(
        &self,
        queries: &Tensor,
        keys: &Tensor,
        log_decays: &Tensor,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let (mut alike, mut attention, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for column in 0..CHANNELS {
            let of = |marks: &Tensor| marks.slice(0, 0, CHANNELS)?.slice(1, column, column + 1);
            // The remaining share of this token's key at later ones, summed up for each by itself as above.
            let fading = log_decays.mul(&of(&self.earlier)?)?.cumsum(-2)?.exp()?;
            let faded = fading.mul(&keys.slice(3, column, column + 1)?)?;
            let found = |rows: &Tensor, marks: &Tensor| rows.mul(&faded)?.sum(-1, true)?.mul(&of(marks)?);
            alike.push(found(keys, &self.minus_earlier)?);
            attention.push(found(queries, &self.seen)?);
            kept.push(faded.slice(3, CHANNELS - 1, CHANNELS)?);
        }
        let joined = |parts: &[Tensor], axis: i32| concatenate(&parts.iter().collect::<Vec<_>>(), axis);
        Ok((joined(&alike, 4)?, joined(&attention, 4)?, joined(&kept, 3)?))
    }

    /// The inverse of `I - B` for strictly lower triangles `B` `[batch, size, size]`, by blocks: the two halves of the
    /// diagonal first, then the quarter below them, which is forward substitution and as exact. (The short product
    /// `(I + B)(I + B²)(I + B⁴)…` is not: if keys are alike, its terms are huge and cancel.)
    pub(super) fn invert(&self, triangles: &Tensor) -> Result<Tensor> {
        let (batch, size) = (triangles.dim(0), triangles.dim(1));
        if size == SMALL {
            return self.invert_small(triangles);
        }
        let half = size / 2;
        let upper = triangles.slice(1, 0, half)?;
        let lower = triangles.slice(1, half, size)?;
        let diagonal = concatenate(&[&upper.slice(2, 0, half)?, &lower.slice(2, half, size)?], 0)?;
        let inverted = self.invert(&diagonal)?;
        let (first, second) = (inverted.slice(0, 0, batch)?, inverted.slice(0, batch, 2 * batch)?);
        let below = second.matmul(&lower.slice(2, 0, half)?.matmul(&first)?)?;
        let beside = Tensor::zeros(&[batch, half, half], triangles.dtype())?;
        let (above, below) = (concatenate(&[&first, &beside], 2)?, concatenate(&[&below, &second], 2)?);
        concatenate(&[&above, &below], 1)
    }

    /// The same for triangles of [`SMALL`] rows, all pairs of blocks of one size at once.
    fn invert_small(&self, triangles: &Tensor) -> Result<Tensor> {
        let (first, later) = self
            .quarters
            .split_first()
            .unwrap_or_else(|| unreachable!("a chunk has several rows"));
        let pairs = self.unit.add(&triangles.mul(first)?)?;
        later.iter().try_fold(pairs, |inverted, quarters| {
            let below = triangles.mul(quarters)?.matmul(&inverted)?;
            inverted.addmm(&below, &inverted)
        })
    }
}

/// One token.
fn step(tokens: &DeltaRuleInputs, state: &Tensor) -> Result<(Tensor, Tensor)> {
    let &[key_heads, shared, value_width, key_width] = state.shape() else {
        unreachable!("states have four axes")
    };
    let per_head = |x: &Tensor| x.reshape(&[key_heads, shared, 1, 1]);
    let key = tokens.keys.reshape(&[key_heads, 1, key_width, 1])?;
    let decays = tokens.log_decays.exp()?;
    let faded = match decays.shape().len() {
        3 => state.mul(&decays.reshape(&[key_heads, shared, 1, key_width])?)?,
        _ => state.mul(&per_head(&decays)?)?,
    };
    let value = tokens.values.reshape(&[key_heads, shared, value_width, 1])?;
    let correction = value.sub(&faded.matmul(&key)?)?.mul(&per_head(&tokens.betas)?)?;
    let key = key.reshape(&[key_heads, 1, 1, key_width])?;
    let state = match device() {
        // CUDA rounds the factors of a matrix product to 10 bits, and this one is summed up for the complete text.
        Device::Cuda => faded.add(&correction.mul(&key)?)?,
        Device::Cpu | Device::Metal => correction.addmm(&key, &faded)?,
    };
    let query = tokens.queries.reshape(&[key_heads, 1, key_width, 1])?;
    let output = state.matmul(&query)?.reshape(&[1, key_heads * shared, value_width])?;
    Ok((output, state))
}

/// A matrix `[size, size]` with this number for each row and column.
pub(super) fn square(size: i32, of: impl Fn(i32, i32) -> f32) -> Tensor {
    let numbers: Vec<f32> = (0..size * size).map(|index| of(index / size, index % size)).collect();
    Tensor::from_f32(&numbers, &[size, size])
}

#[cfg(test)]
#[path = "delta_rule_tests.rs"]
mod tests;
