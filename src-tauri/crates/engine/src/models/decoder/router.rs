//! The choice of experts by the numbers that their gate gave them.

use checkpoint::config::moe::{Correction, ExpertGroups, GroupScore, MoeConfig, RouterConfig, Scoring};
use mlx::ops::join;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::kernels::kernels;
use crate::layers::top_k_indices;
use crate::models::decoder::load_context::LoadContext;

/// Chooses experts by the numbers that the gate gave them.
#[derive(Parameters)]
pub(super) struct Router {
    #[parameters(skip)]
    config: RouterConfig,
    pub(super) chosen: i32,
    /// e_score_correction_bias, in 32 bits, `[1, experts]`.
    correction: Option<Tensor>,
    factor: Option<Tensor>,
    /// The bound that logits are squeezed into, in 32 bits.
    cap: Option<Tensor>,
    /// The score of experts in groups that are not chosen, or of one that was chosen before.
    nothing: Option<Tensor>,
    /// The constants of a way to score.
    constants: Constants,
    /// The experts of each token, `[vocabulary, chosen]`, if nothing else chooses them.
    by_token: Option<Tensor>,
}

/// The constants of a way to score.
#[derive(Parameters)]
enum Constants {
    None,
    /// Zero, and the least of what a root is drawn from, in 32 bits.
    SqrtSoftplus {
        zero: Tensor,
        least: Tensor,
    },
    /// How far experts may be apart that are about as good.
    SparseMixer {
        band: Tensor,
    },
}

impl Constants {
    fn new(scoring: Scoring, dtype: Dtype) -> Result<Self> {
        let scalar = |number: f32| Tensor::scalar(number, dtype);
        Ok(match scoring {
            Scoring::Softmax | Scoring::Sigmoid => Self::None,
            Scoring::SqrtSoftplus => Self::SqrtSoftplus {
                zero: scalar(0.0)?,
                least: scalar(f32::MIN_POSITIVE)?,
            },
            Scoring::SparseMixer { jitter } => Self::SparseMixer {
                band: scalar(2.0 * jitter)?,
            },
        })
    }
}

impl Router {
    pub(super) fn load(config: &MoeConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let router = config.router;
        // Sigmoid scores are computed and stored in 32 bits, as the reference does: their small differences decide.
        let dtype = match router.scoring {
            Scoring::Sigmoid | Scoring::SqrtSoftplus => Dtype::Float32,
            Scoring::Softmax | Scoring::SparseMixer { .. } => loading.dtype,
        };
        let scalar = |number: f32| Tensor::scalar(number, dtype);
        let name = format!("{path}.gate.e_score_correction_bias");
        let corrects = match router.correction {
            Correction::None => false,
            Correction::IfPresent => loading.weights.has(&name),
            Correction::Always | Correction::OfLogits => true,
        };
        let by_token = || {
            let shape = [loading.config.vocab_size, config.top_k].map(|number| number as i32);
            let path = format!("{path}.gate.tid2eid");
            loading
                .weights
                .take_expert_table(&path, shape, config.num_experts as i32)
        };
        let by_token = router.hashed.then(by_token).transpose()?;
        let mut correction = || {
            let count = (config.num_experts + router.passing) as i32;
            // ERNIE's files have it as a row.
            let row = loading.weights.shape(&name).is_some_and(|shape| shape.len() == 2);
            let shape: &[i32] = if row { &[1, count] } else { &[count] };
            let correction = loading.weights.take(&name, shape)?;
            Ok::<_, error::Error>(correction.astype(Dtype::Float32)?.reshape(&[1, count])?)
        };
        let router = Self {
            config: router,
            by_token,
            chosen: config.top_k as i32,
            correction: corrects.then(&mut correction).transpose()?,
            factor: (router.factor != 1.0).then(|| scalar(router.factor)).transpose()?,
            cap: Tensor::optional_scalar(router.softcap, Dtype::Float32)?,
            nothing: match (router.scoring, router.groups) {
                (Scoring::SparseMixer { .. }, _) => Some(scalar(f32::NEG_INFINITY)?),
                (_, Some(_)) => Some(scalar(0.0)?),
                (_, None) => None,
            },
            constants: Constants::new(router.scoring, dtype)?,
        };
        loading.weights.materialize(router.tensors())?;
        Ok(router)
    }

    /// True if shares of the chosen among themselves are the softmax of their logits alone.
    pub(super) fn chooses_alone(&self) -> bool {
        let config = &self.config;
        config.scoring == Scoring::Softmax
            && config.normalised
            && config.groups.is_none()
            && !config.hashed
            && self.correction.is_none()
            && self.cap.is_none()
    }

    pub(super) fn scaled(&self, shares: Tensor) -> Result<Tensor> {
        match &self.factor {
            Some(factor) => shares.mul(factor),
            None => Ok(shares),
        }
    }

    /// For the `logits` `[length, experts]` of the gate, and the tokens `[length]`, the chosen experts and how much each counts, `[length,
    /// chosen]`.
    pub(super) fn choose(&self, logits: &Tensor, ids: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let config = &self.config;
        let alone = self.chooses_alone();
        if alone {
            if let Some((indices, shares)) = kernels().route(logits, self.chosen)? {
                return Ok((indices, self.scaled(shares)?));
            }
        }
        if let (Constants::SparseMixer { band }, Some(nothing)) = (&self.constants, &self.nothing) {
            return self.choose_in_turn(logits, band, nothing);
        }
        let capped = match &self.cap {
            None => logits.clone(),
            Some(cap) => logits.astype(Dtype::Float32)?.div(cap)?.tanh()?.mul(cap)?,
        };
        let scores = match &self.constants {
            Constants::SqrtSoftplus { zero, least } => {
                let squares = capped.astype(Dtype::Float32)?.logaddexp(zero)?.maximum(least)?;
                squares.rsqrt()?.mul(&squares)?
            }
            _ if config.scoring == Scoring::Sigmoid => capped.astype(Dtype::Float32)?.sigmoid()?,
            _ if alone => capped.clone(),
            _ => capped.softmax(1, true)?,
        };
        let mut ranking = match config.correction {
            Correction::OfLogits => capped.astype(Dtype::Float32)?,
            Correction::None | Correction::IfPresent | Correction::Always => scores.clone(),
        };
        if let Some(correction) = &self.correction {
            ranking = ranking.add(correction)?;
        }
        let indices = match (config.groups, &self.nothing) {
            _ if self.by_token.is_some() => self.of_tokens(ids)?,
            // Experts of the other groups tie at zero. If a correction pushes those of the best groups below zero, some
            // of the tied are chosen: the first ones, as the reference sorts them.
            (Some(groups), Some(nothing)) => {
                let falling = best_groups(&ranking, groups, nothing)?.negative()?;
                falling.argpartition(self.chosen - 1, 1)?.slice(1, 0, self.chosen)?
            }
            _ => top_k_indices(&ranking, self.chosen)?,
        };
        let mut shares = scores.take_along(&indices, 1)?;
        if alone {
            shares = shares.softmax(1, true)?;
        } else if config.normalised {
            shares = shares.div(&shares.sum(1, true)?)?;
        }
        shares = self.scaled(shares)?;
        let same = shares.dtype() == logits.dtype();
        Ok((indices, if same { shares } else { shares.astype(logits.dtype())? }))
    }
}

impl Router {
    /// The experts `[length, chosen]` of these tokens.
    fn of_tokens(&self, ids: Option<&Tensor>) -> Result<Tensor> {
        match (&self.by_token, ids) {
            (Some(table), Some(ids)) => table.take(ids, 0),
            _ => Err(mlx::Error::Unsupported("experts of tokens that are not known".into())),
        }
    }
}

impl Router {
    /// The same if each expert is chosen after the one before: it counts as its share among those whose logits are no
    /// further from it than `band` of the greater magnitude, without those that were chosen.
    fn choose_in_turn(&self, logits: &Tensor, band: &Tensor, nothing: &Tensor) -> Result<(Tensor, Tensor)> {
        let magnitudes = logits.maximum(&logits.negative()?)?;
        let (mut left, mut indices, mut shares) = (logits.clone(), Vec::new(), Vec::new());
        for _ in 0..self.chosen {
            let (best, index) = (left.max(1, true)?, left.argmax(1, true)?);
            let far = best.sub(logits)?.div(&magnitudes.maximum(&best)?)?.greater(band)?;
            let near = far.select(nothing, &left)?.softmax(1, true)?;
            shares.push(near.take_along(&index, 1)?);
            left = left.put_along(&index, nothing, 1)?;
            indices.push(index);
        }
        Ok((join(&indices, 1)?, self.scaled(join(&shares, 1)?)?))
    }
}

/// `ranking` `[length, experts]` with `nothing` for the experts of all groups but the best.
fn best_groups(ranking: &Tensor, groups: ExpertGroups, nothing: &Tensor) -> Result<Tensor> {
    let (length, experts) = (ranking.dim(0), ranking.dim(1));
    let (count, dropped) = (groups.count as i32, (groups.count - groups.top_k) as i32);
    if dropped == 0 {
        return Ok(ranking.clone());
    }
    let grouped = ranking.reshape(&[length, count, experts / count])?;
    let best = match groups.score {
        GroupScore::Best => grouped.max(2, false)?,
        GroupScore::TwoBest => {
            let size = experts / count;
            grouped.sort(2)?.slice(2, size - 2, size)?.sum(2, false)?
        }
    };
    let worst = best.argpartition(dropped - 1, 1)?.slice(1, 0, dropped)?;
    let cleared = grouped.put_along(&worst.reshape(&[length, dropped, 1])?, nothing, 1)?;
    cleared.reshape(&[length, experts])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    /// The chosen experts of one token in rising order, each with its share.
    fn choose(config: RouterConfig, correction: Option<[f32; 6]>, logits: [f32; 6]) -> Vec<(u32, f32)> {
        connect().unwrap();
        let scalar = |value| Some(Tensor::scalar(value, Dtype::Float32).unwrap());
        let router = Router {
            by_token: None,
            config,
            chosen: 2,
            correction: correction.map(|numbers| Tensor::from_f32(&numbers, &[1, 6])),
            factor: scalar(config.factor),
            cap: config.softcap.and_then(scalar),
            nothing: scalar(match config.scoring {
                Scoring::SparseMixer { .. } => f32::NEG_INFINITY,
                _ => 0.0,
            }),
            constants: Constants::new(config.scoring, Dtype::Float32).unwrap(),
        };
        let (indices, shares) = router.choose(&Tensor::from_f32(&logits, &[1, 6]), None).unwrap();
        let indices = indices.to_f32().unwrap().into_iter().map(|index| index as u32);
        let mut chosen: Vec<_> = indices.zip(shares.to_f32().unwrap()).collect();
        chosen.sort_by_key(|(index, _)| *index);
        chosen
    }

    fn assert_close(found: &[(u32, f32)], expected: &[(u32, f32)]) {
        let alike = |(a, b): (&(u32, f32), &(u32, f32))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6;
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(alike),
            "{found:?} is not {expected:?}"
        );
    }

    /// Logits whose softmax are these shares.
    fn logs(shares: [f32; 6]) -> [f32; 6] {
        shares.map(f32::ln)
    }

    /// Logits whose logistic function gives these scores.
    fn odds(scores: [f32; 6]) -> [f32; 6] {
        scores.map(|score| (score / (1.0 - score)).ln())
    }

    #[test]
    fn softmax_shares_are_of_all_or_of_the_chosen() {
        let shares = logs([0.1, 0.3, 0.05, 0.4, 0.05, 0.1]);
        let of_all = choose(RouterConfig::new(Scoring::Softmax, false), None, shares);
        assert_close(&of_all, &[(1, 0.3), (3, 0.4)]);
        let of_chosen = choose(RouterConfig::new(Scoring::Softmax, true), None, shares);
        assert_close(&of_chosen, &[(1, 3.0 / 7.0), (3, 4.0 / 7.0)]);
    }

    #[test]
    fn a_correction_changes_the_choice_and_not_the_shares() {
        let scores = odds([0.5, 0.6, 0.7, 0.8, 0.2, 0.1]);
        let config = RouterConfig {
            factor: 2.0,
            correction: Correction::Always,
            ..RouterConfig::new(Scoring::Sigmoid, false)
        };
        assert_close(&choose(config, None, scores), &[(2, 1.4), (3, 1.6)]);
        let corrected = choose(config, Some([0.0, 0.0, 0.0, 0.0, 0.9, 0.0]), scores);
        assert_close(&corrected, &[(3, 1.6), (4, 0.4)]);
    }

    #[test]
    fn scores_may_be_roots_of_squeezed_logits() {
        let config = RouterConfig {
            softcap: Some(2.0),
            ..RouterConfig::new(Scoring::SqrtSoftplus, false)
        };
        let score = |logit: f32| (2.0 * (logit / 2.0).tanh()).exp().ln_1p().sqrt();
        let found = choose(config, None, [-40.0, 3.0, 0.5, 1.0, -1.0, 0.0]);
        assert_close(&found, &[(1, score(3.0)), (3, score(1.0))]);
    }

    #[test]
    fn an_expert_chosen_in_turn_counts_among_those_about_as_good() {
        let config = RouterConfig::new(Scoring::SparseMixer { jitter: 0.1 }, false);
        // 2.0 and 1.9 are near each other, and 1.0 is far from both; once 2.0 is chosen, 1.9 stands alone.
        let found = choose(config, None, [1.0, 2.0, -2.0, 1.9, 0.0, 1.0]);
        assert_close(&found, &[(1, 1.0 / (1.0 + (-0.1f32).exp())), (3, 1.0)]);
    }

    #[test]
    fn only_the_best_groups_are_chosen_from() {
        let scores = odds([0.9, 0.1, 0.6, 0.5, 0.4, 0.3]);
        let grouped = |score, top_k| RouterConfig {
            groups: Some(ExpertGroups { count: 3, top_k, score }),
            ..RouterConfig::new(Scoring::Sigmoid, true)
        };
        // Groups of two: their best are 0.9, 0.6 and 0.4; their two best together 1.0, 1.1 and 0.7.
        assert_close(
            &choose(grouped(GroupScore::Best, 1), None, scores),
            &[(0, 0.9), (1, 0.1)],
        );
        assert_close(
            &choose(grouped(GroupScore::TwoBest, 1), None, scores),
            &[(2, 6.0 / 11.0), (3, 5.0 / 11.0)],
        );
        assert_close(
            &choose(grouped(GroupScore::TwoBest, 3), None, scores),
            &[(0, 0.6), (2, 0.4)],
        );
    }
}
