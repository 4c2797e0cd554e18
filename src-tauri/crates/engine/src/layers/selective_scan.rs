//! The selective scan of Mamba (Gu, Dao, 2023, arXiv:2312.00752). Every channel carries a row of numbers; each fades at
//! a speed of its own, and all of a token's channels write to the same places and read from the same:
//!
//! `s ← exp(-step · speed) · s + step · value · place;  output = s · query`
//!
//! The speeds differ from number to number, so that no matrix product stands for several tokens, as one does for Mamba
//! 2. Tokens follow one another, and what does not depend on the state is computed for several at once.

use checkpoint::config::decoder::SELECTIVE_CHUNK;
use mlx::ops::concatenate;
use mlx::tensor::Tensor;
use mlx::Result;

/// The inputs of a step's tokens, all 32 bit floats.
pub struct SelectiveScanInputs {
    /// `[length, channels]`.
    pub values: Tensor,
    /// Not below 0, `[length, channels]`.
    pub steps: Tensor,
    /// The places that are written, `B`, `[length, width]`.
    pub places: Tensor,
    /// The places that are read, `C`, `[length, width]`.
    pub queries: Tensor,
}

/// The outputs `[length, channels]` of the next tokens. `minus_speeds` `[channels, width]` are below 0. `state`
/// `[channels, width]` is carried on; `None` is all zeros.
pub fn selective_scan(
    tokens: &SelectiveScanInputs,
    minus_speeds: &Tensor,
    state: &mut Option<Tensor>,
) -> Result<Tensor> {
    let (length, channels, width) = (tokens.values.dim(0), tokens.values.dim(1), tokens.places.dim(1));
    let mut carried = match state.take() {
        Some(carried) => carried,
        None => Tensor::zeros(&[channels, width], tokens.values.dtype())?,
    };
    let minus_speeds = minus_speeds.reshape(&[1, channels, width])?;
    let written = tokens.values.mul(&tokens.steps)?;
    let chunk = SELECTIVE_CHUNK as i32;
    let mut outputs = Vec::new();
    for start in (0..length).step_by(SELECTIVE_CHUNK as usize) {
        let end = (start + chunk).min(length);
        let of = |x: &Tensor| match (start, end) {
            (0, end) if end == length => Ok(x.clone()),
            (start, end) => x.slice(0, start, end),
        };
        let by_channel = |x: &Tensor| of(x)?.reshape(&[end - start, channels, 1]);
        let decays = by_channel(&tokens.steps)?.mul(&minus_speeds)?.exp()?;
        let places = of(&tokens.places)?.reshape(&[end - start, 1, width])?;
        let added = by_channel(&written)?.mul(&places)?;
        let mut states = Vec::new();
        for token in 0..end - start {
            let of_token = |x: &Tensor| match end - start {
                1 => Ok(x.clone()),
                _ => x.slice(0, token, token + 1),
            };
            carried = carried.mul(&of_token(&decays)?)?.add(&of_token(&added)?)?;
            states.push(carried.clone());
        }
        let states = match &states[..] {
            [only] => only.clone(),
            all => concatenate(&all.iter().collect::<Vec<_>>(), 0)?,
        };
        let queries = of(&tokens.queries)?.reshape(&[end - start, width, 1])?;
        outputs.push(states.matmul(&queries)?.reshape(&[end - start, channels])?);
    }
    *state = Some(carried.reshape(&[channels, width])?);
    match &outputs[..] {
        [only] => Ok(only.clone()),
        all => concatenate(&all.iter().collect::<Vec<_>>(), 0),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::{connect, pretend_gpu};

    use super::*;

    const CHANNELS: usize = 5;
    const WIDTH: usize = 3;
    const LENGTH: usize = 40;

    fn numbers(mut seed: u64, count: usize) -> Vec<f32> {
        let next = |_| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        (0..count).map(next).collect()
    }

    fn check() {
        let values = numbers(1, LENGTH * CHANNELS);
        let steps: Vec<f32> = numbers(2, LENGTH * CHANNELS)
            .iter()
            .map(|step| 4.0 * step.abs())
            .collect();
        let (places, queries) = (numbers(3, LENGTH * WIDTH), numbers(4, LENGTH * WIDTH));
        let speeds: Vec<f32> = numbers(5, CHANNELS * WIDTH)
            .iter()
            .map(|speed| -3.0 * speed.abs())
            .collect();
        let (mut state, mut expected) = ([[0f64; WIDTH]; CHANNELS], Vec::new());
        for token in 0..LENGTH {
            for (channel, carried) in state.iter_mut().enumerate() {
                let at = token * CHANNELS + channel;
                let (step, mut read) = (f64::from(steps[at]), 0.0);
                for (place, number) in carried.iter_mut().enumerate() {
                    let decay = (step * f64::from(speeds[channel * WIDTH + place])).exp();
                    let written = step * f64::from(values[at]) * f64::from(places[token * WIDTH + place]);
                    *number = decay * *number + written;
                    read += *number * f64::from(queries[token * WIDTH + place]);
                }
                expected.push(read as f32);
            }
        }
        let minus_speeds = Tensor::from_f32(&speeds, &[CHANNELS as i32, WIDTH as i32]);
        for cuts in [vec![40], vec![1; 40], vec![16, 16, 8], vec![17, 1, 2, 20]] {
            let (mut state, mut found, mut start) = (None, Vec::new(), 0);
            for length in &cuts {
                let part = |numbers: &[f32], width: usize| {
                    let part = &numbers[start * width..(start + length) * width];
                    Tensor::from_f32(part, &[*length as i32, width as i32])
                };
                let tokens = SelectiveScanInputs {
                    values: part(&values, CHANNELS),
                    steps: part(&steps, CHANNELS),
                    places: part(&places, WIDTH),
                    queries: part(&queries, WIDTH),
                };
                let outputs = selective_scan(&tokens, &minus_speeds, &mut state).unwrap();
                found.extend(outputs.to_f32().unwrap());
                start += length;
            }
            let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            let worst = off.fold(0.0, f32::max);
            assert!(found.len() == expected.len() && worst < 1e-5, "{cuts:?}: {worst}");
        }
    }

    #[test]
    fn at_once_in_chunks_and_step_by_step_the_scan_is_the_rule() {
        connect().unwrap();
        check();
        pretend_gpu();
        check();
    }
}
