//! A check of the tokens that a recorded step draws, by the shares that the samplers of this app give to them.

use mlx::ops::ids_tensor;
use mlx::recording::RowSampler;
use mlx::Dtype;
use protocol::Sampling;

use crate::error::{Error, Result};
use crate::models::Model;
use crate::sequence::recorded::comparison::token;
use crate::sequence::recorded::{Recorded, RecordedOutput};
use crate::sequence::sampler::{Sampler, SamplerConfig};
use crate::sequence::{SequenceState, Tokens};

/// Steps in which each sequence draws a token.
const STEPS: usize = 8;
/// How far sums of shares may be apart: all of a vocabulary are summed in another order.
const SUMS_APART: f64 = 1e-3;

/// True if all but a few tokens are those that samplers would draw. Few are others, because a rounding decides which tokens
/// a threshold keeps.
///
/// # Errors
/// If the device fails.
pub fn are_right(model: &Model, recorded: &Recorded, sequences: usize) -> Result<bool> {
    let vocabulary = model.vocabulary();
    let mut states: Vec<SequenceState> = (0..sequences).map(|_| SequenceState::new(model, None)).collect();
    let mut right = 0;
    for step in 0..STEPS {
        let samplers = (0..sequences).map(|row| sampler(row + step, vocabulary));
        let mut samplers = samplers.collect::<Result<Vec<_>>>()?;
        let of_rows: Option<Vec<RowSampler>> = samplers.iter().map(Sampler::of_row).collect();
        let ids: Vec<u32> = (0..sequences).map(|row| token(model, row, step as u32)).collect();
        let mut states: Vec<_> = states.iter_mut().collect();
        let input = Tokens::Computed(ids_tensor(&ids));
        let Some(RecordedOutput::Tokens(tokens)) = recorded.begin(&input, &mut states, of_rows.as_deref())? else {
            return Ok(false);
        };
        let (drawn, logits) = (tokens.wait()?, recorded.step.borrow_mut().logits()?);
        for (row, ((sampler, of_row), token)) in
            samplers.iter_mut().zip(of_rows.iter().flatten()).zip(drawn).enumerate()
        {
            let logits = logits.slice(0, row as i32, row as i32 + 1)?;
            let shares = sampler
                .kept(logits)?
                .astype(Dtype::Float32)?
                .softmax(-1, true)?
                .to_f32()?;
            right += usize::from(is_drawn(&shares, of_row.key.split().1.uniform(), *token));
        }
    }
    Ok(right * 8 >= STEPS * sequences * 7)
}

/// Samplers with one rule, several or none.
fn sampler(number: usize, vocabulary: u32) -> Result<Sampler> {
    const RULES: [(f32, f32, f32, u32); 5] = [
        (0.7, 0.95, 0.0, 20),
        (1.0, 0.0, 0.0, 0),
        (0.6, 0.9, 0.0, 0),
        (1.3, 0.0, 0.05, 0),
        (0.8, 0.0, 0.0, 40),
    ];
    let (temperature, top_p, min_p, top_k) = RULES[number % RULES.len()];
    let sampling = Sampling {
        temperature: Some(temperature),
        top_p: Some(top_p),
        min_p: Some(min_p),
        top_k: Some(top_k),
        seed: Some(number as u64),
        ..Sampling::default()
    };
    let config = SamplerConfig::new(&sampling, &Sampling::default(), vocabulary)?;
    Sampler::new(config, &[], &[], vocabulary).map_err(Error::from)
}

/// True if a number between 0 and 1 falls on the token, if each token takes as much room as its share is.
fn is_drawn(shares: &[f32], uniform: f32, token: u32) -> bool {
    let Some(own) = shares.get(token as usize).copied().map(f64::from) else {
        return false;
    };
    let sum = |shares: &[f32]| shares.iter().copied().map(f64::from).sum::<f64>();
    let (before, place) = (sum(&shares[..token as usize]), f64::from(uniform) * sum(shares));
    own > 0.0 && before - SUMS_APART <= place && place <= before + own + SUMS_APART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_drawn_where_the_number_falls() {
        let shares = [0.25, 0.0, 0.5, 0.25];
        assert!(is_drawn(&shares, 0.1, 0));
        assert!(!is_drawn(&shares, 0.3, 0));
        assert!(is_drawn(&shares, 0.3, 2));
        assert!(!is_drawn(&shares, 0.3, 3));
        // A token that is not kept is not drawn, wherever the number falls.
        assert!(!is_drawn(&shares, 0.25, 1));
        assert!(!is_drawn(&shares, 0.9, 4));
        assert!(!is_drawn(&[f32::NAN; 2], 0.5, 0));
    }
}
