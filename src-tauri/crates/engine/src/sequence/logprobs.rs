//! Log probabilities of chosen tokens and of the likeliest alternatives, as mlx-lm reports them: of the logits after
//! bias and penalties, before temperature and what cuts the distribution.

use mlx::ops::concatenate;
use mlx::tensor::Tensor;
use mlx::Dtype;
use prompt::ChatProcessor;
use protocol::{TokenLogprobs, TopLogprob};

use crate::error::{Error, Result};

/// As many of the likeliest tokens as may be asked for.
pub const MOST: u8 = 20;

/// Log probabilities of one position, which may still be computed.
pub struct Logprobs {
    /// Of the chosen token, then of the likeliest in any order, `[1, 1 + top]`.
    values: Tensor,
    /// The ids of the likeliest, `[1, top]`; `None` if none are asked for.
    ids: Option<Tensor>,
}

impl Logprobs {
    /// Those of `token` `[1]`, chosen by `logits` `[1, vocabulary]`, and of the `top` likeliest tokens. Nothing is
    /// evaluated.
    pub fn new(logits: &Tensor, token: &Tensor, top: u8) -> Result<Self> {
        let logits = logits.astype(Dtype::Float32)?;
        let all = logits.sub(&logits.logsumexp(-1, true)?)?;
        let chosen = all.take_along(&token.astype(Dtype::Int32)?.reshape(&[1, 1])?, -1)?;
        let top = i32::from(top).min(all.dim(-1));
        if top == 0 {
            return Ok(Self {
                values: chosen,
                ids: None,
            });
        }
        let ids = all
            .negative()?
            .argpartition(top - 1, -1)?
            .slice(1, 0, top)?
            .contiguous()?;
        Ok(Self {
            values: concatenate(&[&chosen, &all.take_along(&ids, -1)?], 1)?,
            ids: Some(ids),
        })
    }

    /// The tensors to be computed.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        std::iter::once(&self.values).chain(&self.ids)
    }

    /// Reads them, now that `token` is known.
    pub fn read(&self, token: u32, processor: &ChatProcessor) -> Result<TokenLogprobs> {
        let (values, ids) = (
            self.values.to_f32()?,
            self.ids.as_ref().map_or(Ok(Vec::new()), Tensor::to_u32)?,
        );
        let Some((logprob, values)) = values.split_first() else {
            return Err(Error::Mlx("the log probabilities are empty".into()));
        };
        let likely = |(token, logprob): (u32, &f32)| TopLogprob {
            token,
            bytes: processor.token_bytes(token),
            logprob: *logprob,
        };
        // A token that a schema does not allow has no likelihood.
        let possible = ids.into_iter().zip(values).filter(|(_, logprob)| logprob.is_finite());
        let mut top: Vec<TopLogprob> = possible.map(likely).collect();
        top.sort_by(|a, b| b.logprob.total_cmp(&a.logprob).then(a.token.cmp(&b.token)));
        Ok(TokenLogprobs {
            token,
            bytes: processor.token_bytes(token),
            logprob: *logprob,
            top,
        })
    }
}
