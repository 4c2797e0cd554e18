//! How the next token is chosen. Order and meaning are those of mlx-lm: logit bias, repetition, presence and frequency
//! penalties act on logits; then either the likeliest token, or top-p, min-p, XTC and top-k act on log-probabilities at
//! temperature 1 and the draw is made at the asked temperature.

use mlx::ops::{concatenate, random_categorical, random_uniform};
use mlx::random::RandomKey;
use mlx::recording::RowSampler;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};
use protocol::Sampling;

use crate::error::{self, Error};

/// Below this temperature the likeliest token is taken: the draw would take it too, if the temperature's inverse did
/// not carry log-probabilities out of the range of 16 bit floats.
const MIN_TEMPERATURE: f32 = 1e-3;

/// Checked values of a [`Sampling`], its gaps filled.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerConfig {
    temperature: f32,
    top_p: f32,
    min_p: f32,
    top_k: u32,
    xtc_probability: f32,
    xtc_threshold: f32,
    repetition_penalty: f32,
    presence_penalty: f32,
    frequency_penalty: f32,
    penalty_context: u32,
    logit_bias: Vec<(u32, f32)>,
    seed: Option<u64>,
}

impl SamplerConfig {
    /// The requested values, else the model's own defaults, else values that change nothing; errors name the value.
    pub fn new(asked: &Sampling, defaults: &Sampling, vocabulary: u32) -> error::Result<Self> {
        let all = asked.or(defaults).or(&Sampling::neutral());
        all.check().map_err(|error| Error::BadRequest(error.message))?;
        let config = Self {
            temperature: all.temperature.unwrap_or_default(),
            top_p: all.top_p.unwrap_or_default(),
            min_p: all.min_p.unwrap_or_default(),
            top_k: all.top_k.unwrap_or_default(),
            xtc_probability: all.xtc_probability.unwrap_or_default(),
            xtc_threshold: all.xtc_threshold.unwrap_or_default(),
            repetition_penalty: all.repetition_penalty.unwrap_or_default(),
            presence_penalty: all.presence_penalty.unwrap_or_default(),
            frequency_penalty: all.frequency_penalty.unwrap_or_default(),
            penalty_context: all.penalty_context.unwrap_or_default(),
            logit_bias: all.logit_bias.into_iter().collect(),
            seed: all.seed,
        };
        config.check_biases(vocabulary)?;
        Ok(config)
    }

    fn check_biases(&self, vocabulary: u32) -> error::Result<()> {
        match self
            .logit_bias
            .iter()
            .find(|(token, bias)| *token >= vocabulary || !bias.is_finite())
        {
            Some((token, bias)) => Err(Error::BadRequest(format!(
                "the logit bias {bias} of token {token} cannot be used; tokens go from 0 to {} and biases are finite",
                vocabulary - 1
            ))),
            None => Ok(()),
        }
    }

    /// True if nothing is drawn.
    pub fn is_greedy(&self) -> bool {
        self.temperature < MIN_TEMPERATURE
    }

    fn penalises(&self) -> bool {
        self.penalty_context > 0
            && (!matches!(self.repetition_penalty, 0.0 | 1.0)
                || self.presence_penalty != 0.0
                || self.frequency_penalty != 0.0)
    }
}

/// Which tokens may come next.
pub enum Mask {
    /// All but these.
    Without(Vec<u32>),
    /// Those of the vocabulary that are true.
    Only(Vec<bool>),
}

/// Chooses the tokens of one sequence. All of it happens on the device: nothing waits for the token that is still being
/// computed.
pub struct Sampler {
    config: SamplerConfig,
    key: RandomKey,
    /// The bias of every token, `[1, vocabulary]`.
    bias: Option<Tensor>,
    /// The last tokens, `[1, at most penalty_context]`.
    recent: Option<Tensor>,
    /// Tokens that XTC never removes, `[1, count]`.
    xtc_protected: Option<Tensor>,
    /// The mask of the next choice.
    mask: Option<Mask>,
    /// How many tokens have a logit.
    vocabulary: u32,
}

impl Sampler {
    /// A sampler for a sequence that begins with `prompt`; `xtc_protected` are tokens that XTC leaves alone.
    pub fn new(config: SamplerConfig, prompt: &[u32], xtc_protected: &[u32], vocabulary: u32) -> Result<Self> {
        let seed = config.seed.unwrap_or_else(clock_seed);
        let bias = (!config.logit_bias.is_empty()).then(|| {
            let mut row = vec![0.0; vocabulary as usize];
            for (token, value) in &config.logit_bias {
                row[*token as usize] = *value;
            }
            Tensor::from_f32(&row, &[1, vocabulary as i32])
        });
        // The last token of the prompt joins with the step that reads it.
        let earlier = &prompt[..prompt.len().saturating_sub(1)];
        let recent = config.penalises().then(|| {
            row_of(&written(
                &earlier[earlier.len().saturating_sub(config.penalty_context as usize)..],
                vocabulary,
            ))
        });
        let xtc_protected = (config.xtc_probability > 0.0 && !xtc_protected.is_empty()).then(|| row_of(xtc_protected));
        Ok(Self {
            key: RandomKey::from_seed(seed),
            bias,
            recent,
            xtc_protected,
            mask: None,
            vocabulary,
            config,
        })
    }

    /// Limits the next choice alone.
    pub fn limit(&mut self, mask: Option<Mask>) {
        self.mask = mask;
    }

    /// True if the likeliest token is taken, whatever came before: then rows of several sequences may be sampled
    /// together.
    pub fn takes_likeliest(&self) -> bool {
        self.of_logits_alone() && self.config.is_greedy()
    }

    /// The sampler of a recorded step that chooses as this one does; `None` if the choice takes more than logits.
    pub fn of_row(&self) -> Option<RowSampler> {
        if !self.of_logits_alone() || self.config.xtc_probability > 0.0 {
            return None;
        }
        if self.config.is_greedy() {
            return Some(RowSampler::LIKELIEST);
        }
        let SamplerConfig {
            temperature,
            top_p,
            min_p,
            top_k,
            ..
        } = self.config;
        Some(RowSampler {
            inverse_temperature: 1.0 / temperature,
            top_p: if top_p < 1.0 { top_p } else { 0.0 },
            log_min_p: (min_p > 0.0).then(|| min_p.ln()),
            top_k: if top_k < self.vocabulary { top_k } else { 0 },
            key: self.key,
        })
    }

    /// True if a choice depends on nothing but the logits and chance.
    fn of_logits_alone(&self) -> bool {
        self.mask.is_none() && self.bias.is_none() && self.recent.is_none()
    }

    /// The token `[1]` that follows `input` `[1]`, whose logits are `[1, vocabulary]`.
    pub fn sample(&mut self, input: &Tensor, logits: Tensor) -> Result<Tensor> {
        let logits = self.process(input, logits)?;
        self.choose(logits)
    }

    /// The logits `[1, vocabulary]` after bias, penalties and mask; `input` `[1]` is the token before.
    pub fn process(&mut self, input: &Tensor, logits: Tensor) -> Result<Tensor> {
        let mut logits = logits;
        if let Some(bias) = &self.bias {
            logits = logits.add(&bias.astype(logits.dtype())?)?;
        }
        if let Some(recent) = self.recent.take() {
            let all = concatenate(&[&recent, &input.astype(Dtype::Int32)?.reshape(&[1, 1])?], 1)?;
            let length = all.dim(1);
            let recent = all.slice(
                1,
                length.saturating_sub_unsigned(self.config.penalty_context).max(0),
                length,
            )?;
            logits = self.penalise(logits, &recent)?;
            self.recent = Some(recent);
        }
        match self.mask.take() {
            Some(mask) => mask.apply(&logits),
            None => Ok(logits),
        }
    }

    /// The token `[1]` that is chosen by these logits `[1, vocabulary]`.
    pub fn choose(&mut self, logits: Tensor) -> Result<Tensor> {
        if self.config.is_greedy() {
            return logits.argmax(-1, false);
        }
        let kept = self.kept(logits)?;
        random_categorical(&kept, &self.next_key().tensor()?)
    }

    /// The logarithms `[1, vocabulary]`, but for a constant, of how likely each token is drawn.
    pub fn kept(&mut self, logits: Tensor) -> Result<Tensor> {
        let mut logprobs = logits.sub(&logits.logsumexp(-1, true)?)?;
        if self.config.top_p > 0.0 && self.config.top_p < 1.0 {
            logprobs = top_p(&logprobs, self.config.top_p)?;
        }
        if self.config.min_p > 0.0 {
            logprobs = min_p(&logprobs, self.config.min_p)?;
        }
        if self.config.xtc_probability > 0.0 {
            let chance = random_uniform(&self.next_key().tensor()?, &[])?;
            logprobs = xtc(
                &logprobs,
                &chance,
                self.config.xtc_probability,
                self.config.xtc_threshold,
                self.xtc_protected.as_ref(),
            )?;
        }
        if let Some(k) = i32::try_from(self.config.top_k)
            .ok()
            .filter(|k| (1..logprobs.dim(-1)).contains(k))
        {
            logprobs = top_k(&logprobs, k)?;
        }
        logprobs.mul(&Tensor::scalar(1.0 / self.config.temperature, logprobs.dtype())?)
    }

    /// Takes note of tokens that were not chosen here.
    pub fn observe(&mut self, tokens: &[u32]) -> Result<()> {
        if let Some(recent) = self.recent.take() {
            let all = concatenate(&[&recent, &row_of(&written(tokens, self.vocabulary))], 1)?;
            let length = all.dim(1);
            let start = length.saturating_sub_unsigned(self.config.penalty_context).max(0);
            self.recent = Some(all.slice(1, start, length)?);
        }
        Ok(())
    }

    /// Passes over the draws of tokens that were chosen before, so that a seed gives what it would have given in one
    /// go.
    pub fn skip_draws(&mut self, tokens: usize) {
        if self.config.is_greedy() {
            return;
        }
        let keys = if self.config.xtc_probability > 0.0 { 2 } else { 1 };
        for _ in 0..tokens * keys {
            self.next_key();
        }
    }

    fn next_key(&mut self) -> RandomKey {
        let (state, key) = self.key.split();
        self.key = state;
        key
    }

    fn penalise(&self, logits: Tensor, recent: &Tensor) -> Result<Tensor> {
        let SamplerConfig {
            repetition_penalty,
            presence_penalty,
            frequency_penalty,
            ..
        } = self.config;
        let mut logits = logits;
        if !matches!(repetition_penalty, 0.0 | 1.0) {
            logits = repetition(&logits, recent, repetition_penalty)?;
        }
        if presence_penalty != 0.0 {
            logits = presence(&logits, recent, presence_penalty)?;
        }
        if frequency_penalty != 0.0 {
            logits = frequency(&logits, recent, frequency_penalty)?;
        }
        Ok(logits)
    }
}

impl Mask {
    /// The logits `[1, vocabulary]`, of tokens that may not come minus infinity.
    fn apply(&self, logits: &Tensor) -> Result<Tensor> {
        let never = number(f32::NEG_INFINITY, logits)?;
        match self {
            Self::Without(tokens) => logits.put_along(&row_of(tokens), &never.reshape(&[1, 1])?, -1),
            Self::Only(allowed) => Tensor::from_bool(allowed, &[1, allowed.len() as i32]).select(logits, &never),
        }
    }
}

/// Those of the tokens that have a logit; some only stand for images.
fn written(tokens: &[u32], vocabulary: u32) -> Vec<u32> {
    tokens.iter().copied().filter(|token| *token < vocabulary).collect()
}

fn row_of(tokens: &[u32]) -> Tensor {
    let ids: Vec<i32> = tokens.iter().map(|id| *id as i32).collect();
    Tensor::from_i32(&ids, &[1, ids.len() as i32])
}

fn clock_seed() -> u64 {
    // Only has to differ between answers, not to be secret.
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

fn number(value: f32, like: &Tensor) -> Result<Tensor> {
    Tensor::scalar(value, like.dtype())
}

/// Positive logits of recent tokens are divided by the penalty, negative ones multiplied.
fn repetition(logits: &Tensor, recent: &Tensor, penalty: f32) -> Result<Tensor> {
    let chosen = logits.take_along(recent, -1)?;
    let penalty = number(penalty, logits)?;
    let changed = chosen
        .less(&number(0.0, logits)?)?
        .select(&chosen.mul(&penalty)?, &chosen.div(&penalty)?)?;
    logits.put_along(recent, &changed, -1)
}

/// Taken once from every recent token.
fn presence(logits: &Tensor, recent: &Tensor, penalty: f32) -> Result<Tensor> {
    let changed = logits.take_along(recent, -1)?.sub(&number(penalty, logits)?)?;
    logits.put_along(recent, &changed, -1)
}

/// Taken from a recent token for each of its occurrences.
fn frequency(logits: &Tensor, recent: &Tensor, penalty: f32) -> Result<Tensor> {
    let taken = Tensor::zeros(recent.shape(), logits.dtype())?.sub(&number(penalty, logits)?)?;
    logits.add_along(recent, &taken, -1)
}

/// Keeps the smallest set of tokens with the probability `p`, ties with its last one included.
fn top_p(logprobs: &Tensor, p: f32) -> Result<Tensor> {
    let sorted = logprobs.sort(-1)?;
    let shares = sorted.astype(Dtype::Float32)?.exp()?;
    let above = shares.reverse_cumsum(-1)?;
    let total = above.slice(1, 0, 1)?.add(&shares.slice(1, 0, 1)?)?;
    let dropped = above
        .greater_equal(&total.mul(&number(p, &total)?)?)?
        .astype(Dtype::Int32)?
        .sum(-1, true)?;
    let threshold = sorted.take_along(&dropped, -1)?;
    logprobs
        .less(&threshold)?
        .select(&number(f32::NEG_INFINITY, logprobs)?, logprobs)
}

/// Keeps tokens at least `p` times as likely as the likeliest.
fn min_p(logprobs: &Tensor, p: f32) -> Result<Tensor> {
    let threshold = logprobs.max(-1, true)?.add(&number(p.ln(), logprobs)?)?;
    logprobs
        .less(&threshold)?
        .select(&number(f32::NEG_INFINITY, logprobs)?, logprobs)
}

/// Removes all but the least likely of the tokens above the threshold, if `chance` is not above the probability.
fn xtc(logprobs: &Tensor, chance: &Tensor, probability: f32, threshold: f32, kept: Option<&Tensor>) -> Result<Tensor> {
    let shares = logprobs.softmax(-1, false)?;
    let infinity = number(f32::INFINITY, &shares)?;
    let least = shares
        .greater(&number(threshold, &shares)?)?
        .select(&shares, &infinity)?
        .min(-1, true)?;
    let mut removed = shares.greater(&least)?;
    if let Some(kept) = kept {
        removed = removed.put_along(kept, &Tensor::from_bool(&[false], &[1, 1]), -1)?;
    }
    let without = removed.select(&number(f32::NEG_INFINITY, logprobs)?, logprobs)?;
    chance
        .greater(&Tensor::from_f32(&[probability], &[]))?
        .select(logprobs, &without)
}

/// Keeps the k likeliest tokens.
fn top_k(logprobs: &Tensor, k: i32) -> Result<Tensor> {
    let order = logprobs.negative()?.argpartition(k - 1, -1)?;
    let rest = order.slice(1, k, order.dim(1))?;
    logprobs.put_along(&rest, &number(f32::NEG_INFINITY, logprobs)?.reshape(&[1, 1])?, -1)
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
