//! The linear recurrence of numbers that each fade by themselves: `s ← decay · s + input`, with `s` as the output.
//!
//! Several tokens are computed by doubling (Hillis and Steele's scan): each token first sums up itself and the one
//! before it, then two and the two before them, and so on.

use mlx::ops::concatenate;
use mlx::tensor::Tensor;
use mlx::Result;

/// The outputs `[length, width]` of the next tokens with these `decays`, between 0 and 1, and `inputs`, of the same
/// shape and in 32 bit floats. `state` `[1, width]` is carried on; `None` is all zeros.
pub fn linear_recurrence(decays: &Tensor, inputs: &Tensor, state: &mut Option<Tensor>) -> Result<Tensor> {
    let length = inputs.dim(0);
    let from = |x: &Tensor, start: i32| x.slice(0, start, length);
    let to = |x: &Tensor, end: i32| x.slice(0, 0, end);
    let mut sums = match state.take() {
        None => inputs.clone(),
        Some(before) => {
            let first = before.mul(&to(decays, 1)?)?.add(&to(inputs, 1)?)?;
            match length {
                1 => first,
                _ => concatenate(&[&first, &from(inputs, 1)?], 0)?,
            }
        }
    };
    let (mut decays, mut reach) = (decays.clone(), 1);
    while reach < length {
        let later = from(&decays, reach)?;
        let seen = later.mul(&to(&sums, length - reach)?)?.add(&from(&sums, reach)?)?;
        sums = concatenate(&[&to(&sums, reach)?, &seen], 0)?;
        if 2 * reach < length {
            let faded = later.mul(&to(&decays, length - reach)?)?;
            decays = concatenate(&[&to(&decays, reach)?, &faded], 0)?;
        }
        reach *= 2;
    }
    let last = from(&sums, length - 1)?;
    // A slice would keep all sums alive.
    *state = Some(if length == 1 { last } else { last.contiguous()? });
    Ok(sums)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    #[test]
    fn at_once_in_chunks_and_step_by_step_it_is_the_rule() {
        connect().unwrap();
        const WIDTH: usize = 3;
        const LENGTH: usize = 37;
        let number = |index: usize| ((index * 7919) % 101) as f32 / 101.0;
        let decays: Vec<f32> = (0..LENGTH * WIDTH).map(number).collect();
        let inputs: Vec<f32> = (0..LENGTH * WIDTH).map(|index| number(index + 50) - 0.5).collect();
        let (mut carried, mut expected) = ([0f64; WIDTH], Vec::new());
        for index in 0..LENGTH * WIDTH {
            let number = &mut carried[index % WIDTH];
            *number = f64::from(decays[index]) * *number + f64::from(inputs[index]);
            expected.push(*number as f32);
        }
        for cuts in [vec![37], vec![1; 37], vec![2, 3, 32], vec![16, 1, 20]] {
            let (mut state, mut found, mut start) = (None, Vec::new(), 0);
            for length in &cuts {
                let part = |numbers: &[f32]| {
                    let part = &numbers[start * WIDTH..(start + length) * WIDTH];
                    Tensor::from_f32(part, &[*length as i32, WIDTH as i32])
                };
                let outputs = linear_recurrence(&part(&decays), &part(&inputs), &mut state).unwrap();
                found.extend(outputs.to_f32().unwrap());
                start += length;
            }
            let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            let worst = off.fold(0.0, f32::max);
            assert!(found.len() == expected.len() && worst < 1e-6, "{cuts:?}: {worst}");
        }
    }
}
