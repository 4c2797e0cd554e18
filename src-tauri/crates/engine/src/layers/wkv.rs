//! The rule of RWKV 7 (arXiv:2503.14456), more general than the gated delta rule: a head carries a matrix `S` from keys
//! to values, asks it for one key before it fades, and adds the answer at another one:
//!
//! `S ← S · diag(decay) + (S asked) addedᵀ + value keyᵀ;  output = S query`
//!
//! One token is computed so. Several are computed in chunks by matrix products: what is asked within a chunk solves a
//! triangular system, and only the states between chunks depend on one another. The decays of a chunk stand in its
//! queries and keys: no decay is stronger than e to the -0.61, so that 16 of them are numbers of 32 bits.

use checkpoint::config::decoder::WKV_CHUNK;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::layers::delta_rule::{square, DeltaRule};

/// Tokens of a chunk.
const CHUNK: i32 = WKV_CHUNK as i32;

/// The inputs of a step's tokens, all `[length, heads, width]` in 32 bit floats.
pub struct WkvInputs {
    /// The queries, which are called receptances.
    pub queries: Tensor,
    /// Logarithms of the decays, not above 0 and not below -0.61.
    pub log_decays: Tensor,
    /// Keys of the values.
    pub keys: Tensor,
    /// Values.
    pub values: Tensor,
    /// Keys that are asked for.
    pub asked: Tensor,
    /// Keys at which the answers are added.
    pub added: Tensor,
}

/// The rule with its constants.
#[derive(Parameters)]
pub struct Wkv {
    /// Inverts triangles.
    rule: DeltaRule,
    /// Ones on and below the diagonal, `[CHUNK, CHUNK]`.
    seen: Tensor,
    /// Ones below the diagonal.
    earlier: Tensor,
}

impl WkvInputs {
    /// The same inputs, each changed.
    pub fn map(&self, change: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(Self {
            queries: change(&self.queries)?,
            log_decays: change(&self.log_decays)?,
            keys: change(&self.keys)?,
            values: change(&self.values)?,
            asked: change(&self.asked)?,
            added: change(&self.added)?,
        })
    }
}

impl Wkv {
    /// Makes the constants.
    pub fn new() -> Self {
        Self {
            rule: DeltaRule::new(),
            seen: square(CHUNK, |row, column| f32::from(column <= row)),
            earlier: square(CHUNK, |row, column| f32::from(column < row)),
        }
    }

    /// The outputs `[length, heads, width]` of the next tokens. `state` `[1, heads, value width, key width]` is carried
    /// on; `None` is all zeros.
    pub fn forward(&self, tokens: &WkvInputs, state: &mut Option<Tensor>) -> Result<Tensor> {
        let (heads, width) = (tokens.keys.dim(1), tokens.keys.dim(2));
        let before = match state.take() {
            Some(before) => before,
            None => Tensor::zeros(&[1, heads, width, width], tokens.values.dtype())?,
        };
        let (outputs, after) = match tokens.keys.dim(0) {
            1 => step(tokens, &before)?,
            _ => self.chunks(tokens, before)?,
        };
        *state = Some(after);
        Ok(outputs)
    }

    /// Many tokens at once.
    fn chunks(&self, tokens: &WkvInputs, mut state: Tensor) -> Result<(Tensor, Tensor)> {
        let &[length, heads, width] = tokens.keys.shape() else {
            unreachable!("keys have three axes")
        };
        let count = (length + CHUNK - 1) / CHUNK;
        // Tokens of zeros at the end change nothing: they add nothing, and their decays keep everything.
        let tokens = tokens.map(|x| {
            let padded = match count * CHUNK - length {
                0 => x.clone(),
                missing => concatenate(&[x, &Tensor::zeros(&[missing, heads, width], x.dtype())?], 0)?,
            };
            // [chunk, head, token, width]
            padded.reshape(&[count, CHUNK, heads, width])?.swapaxes(1, 2)
        })?;
        let turned = |x: &Tensor| x.swapaxes(-1, -2);
        let faded = tokens.log_decays.cumsum(-2)?;
        let left = faded.exp()?;
        let gone = faded.negative()?.exp()?;
        let end = left.slice(2, CHUNK - 1, CHUNK)?;
        // Keys that are asked for see the state before their token's decay.
        let asked = tokens.asked.mul(&faded.sub(&tokens.log_decays)?.exp()?)?;
        let queries = tokens.queries.mul(&left)?;
        let (added, keys) = (tokens.added.mul(&gone)?, tokens.keys.mul(&gone)?);
        let (turned_added, turned_keys) = (turned(&added)?, turned(&keys)?);
        let answers = asked.matmul(&turned_added)?.mul(&self.earlier)?;
        let solver = self.rule.invert(&answers.reshape(&[-1, CHUNK, CHUNK])?)?;
        let solver = solver.reshape(&[count, heads, CHUNK, CHUNK])?;
        let known = asked.matmul(&turned_keys)?.mul(&self.earlier)?.matmul(&tokens.values)?;
        let (added_at_end, keys_at_end) = (added.mul(&end)?, keys.mul(&end)?);
        let written = turned(&tokens.values)?.matmul(&keys_at_end)?;

        let (mut states, mut corrections) = (Vec::new(), Vec::new());
        for chunk in 0..count {
            let of = |x: &Tensor| match count {
                1 => Ok(x.clone()),
                _ => x.slice(0, chunk, chunk + 1),
            };
            let correction = of(&solver)?.matmul(&of(&asked)?.addmm(&turned(&state)?, &of(&known)?)?)?;
            let kept = state.mul(&of(&end)?)?.add(&of(&written)?)?;
            let after = turned(&correction)?.addmm(&of(&added_at_end)?, &kept)?;
            states.push(std::mem::replace(&mut state, after));
            corrections.push(correction);
        }
        let states = concatenate(&states.iter().collect::<Vec<_>>(), 0)?;
        let corrections = concatenate(&corrections.iter().collect::<Vec<_>>(), 0)?;
        let of_state = queries.matmul(&turned(&states)?)?;
        let of_added = queries.matmul(&turned_added)?.mul(&self.seen)?;
        let of_values = queries.matmul(&turned_keys)?.mul(&self.seen)?;
        let outputs = of_values.addmm(&tokens.values, &of_added.addmm(&corrections, &of_state)?)?;
        let outputs = outputs.swapaxes(1, 2)?.reshape(&[count * CHUNK, heads, width])?;
        Ok((outputs.slice(0, 0, length)?, state))
    }
}

/// One token.
fn step(tokens: &WkvInputs, state: &Tensor) -> Result<(Tensor, Tensor)> {
    let &[_, heads, width] = tokens.keys.shape() else {
        unreachable!("keys have three axes")
    };
    let column = |x: &Tensor| x.reshape(&[1, heads, width, 1]);
    let row = |x: &Tensor| x.reshape(&[1, heads, 1, width]);
    let answer = state.matmul(&column(&tokens.asked)?)?;
    let kept = state.mul(&row(&tokens.log_decays)?.exp()?)?;
    let written = column(&tokens.values)?.mul(&row(&tokens.keys)?)?;
    let state = kept.add(&answer.mul(&row(&tokens.added)?)?)?.add(&written)?;
    let output = state.matmul(&column(&tokens.queries)?)?;
    Ok((output.reshape(&[1, heads, width])?, state))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    const HEADS: usize = 2;
    const WIDTH: usize = 6;
    const LENGTH: usize = 53;
    const ROW: usize = HEADS * WIDTH;

    /// Numbers from -1 to 1.
    fn numbers(seed: usize) -> Vec<f32> {
        let number = |index: usize| ((index * 7919 + seed * 104_729) % 1009) as f32 / 504.5 - 1.0;
        (0..LENGTH * ROW).map(number).collect()
    }

    #[test]
    fn at_once_in_chunks_and_step_by_step_it_is_the_rule() {
        connect().unwrap();
        let [queries, keys, values, asked] = [1, 2, 3, 4].map(numbers);
        let asked: Vec<f32> = asked.iter().map(|number| number / WIDTH as f32).collect();
        let added: Vec<f32> = asked.iter().map(|number| -0.7 * number).collect();
        let log_decays: Vec<f32> = numbers(5).iter().map(|number| -0.3 * (number + 1.0)).collect();
        let mut expected = Vec::new();
        let mut state = [[[0f64; WIDTH]; WIDTH]; HEADS];
        for token in 0..LENGTH {
            for (head, state) in state.iter_mut().enumerate() {
                let at = |all: &[f32], index: usize| f64::from(all[token * ROW + head * WIDTH + index]);
                for (value, carried) in state.iter_mut().enumerate() {
                    let answer: f64 = (0..WIDTH).map(|key| carried[key] * at(&asked, key)).sum();
                    for (key, number) in carried.iter_mut().enumerate() {
                        *number = *number * at(&log_decays, key).exp()
                            + answer * at(&added, key)
                            + at(&values, value) * at(&keys, key);
                    }
                    let output: f64 = (0..WIDTH).map(|key| carried[key] * at(&queries, key)).sum();
                    expected.push(output as f32);
                }
            }
        }
        let wkv = Wkv::new();
        for cuts in [vec![53], vec![1; 53], vec![2, 3, 48], vec![16, 1, 36]] {
            let (mut state, mut found, mut start) = (None, Vec::new(), 0);
            for length in &cuts {
                let part = |numbers: &[f32]| {
                    let shape = [*length as i32, HEADS as i32, WIDTH as i32];
                    Tensor::from_f32(&numbers[start * ROW..(start + length) * ROW], &shape)
                };
                let tokens = WkvInputs {
                    queries: part(&queries),
                    log_decays: part(&log_decays),
                    keys: part(&keys),
                    values: part(&values),
                    asked: part(&asked),
                    added: part(&added),
                };
                found.extend(wkv.forward(&tokens, &mut state).unwrap().to_f32().unwrap());
                start += length;
            }
            let off = found
                .iter()
                .zip(&expected)
                .map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
            let worst = off.fold(0.0, f32::max);
            assert!(found.len() == expected.len() && worst < 1e-5, "{cuts:?}: {worst}");
        }
    }
}
