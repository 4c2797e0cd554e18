//! The experts of the parametric decoder, their router, and the shared experts.

use checkpoint::config::decoder::DenseConfig;
use checkpoint::config::moe::{ExpertGroups, GroupScore, LatentMoeConfig, MoeConfig, RouterConfig, Scoring};
use mlx::device::on_cuda;
use mlx::fused::{self, Routed};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::kernels::kernels;
use crate::layers::{top_k_indices, Activation, Experts, Linear, ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mlp::Mlp;
use crate::weights::ExpertShape;

/// A sparse mixture of experts: each token goes through a few of many networks.
#[derive(Parameters)]
pub struct SparseMoe {
    /// gate, and shared_expert_gate if there is one, side by side.
    gates: Linear,
    /// How many outputs of that belong to the router.
    count: i32,
    router: Router,
    experts: Experts,
    /// From the stream to what the experts see, and from what they give back to the stream.
    latents: Option<[Linear; 2]>,
    shared_experts: Option<Mlp>,
}

impl SparseMoe {
    /// Loads what stands below `path`: `gate`, the experts in any form, `shared_experts` and `shared_expert_gate`.
    pub fn load(config: &MoeConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let hidden = loading.config.hidden_size as i32;
        Self::load_between(config, path, loading, hidden)
    }

    /// The same with `fc1_latent_proj` and `fc2_latent_proj` around the experts.
    pub fn load_latent(config: &LatentMoeConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (hidden, width) = (loading.config.hidden_size as i32, config.width as i32);
        let [into, back] = ["fc1_latent_proj", "fc2_latent_proj"].map(|name| format!("{path}.{name}"));
        let latents = [
            Linear::load(loading.weights, &into, hidden, width)?,
            Linear::load(loading.weights, &back, width, hidden)?,
        ];
        Ok(Self {
            latents: Some(latents),
            ..Self::load_between(&config.experts, path, loading, width)?
        })
    }

    /// The same with experts that see `seen` numbers.
    fn load_between(
        config: &MoeConfig,
        path: &str,
        loading: &mut LoadContext<'_, '_>,
        seen: i32,
    ) -> error::Result<Self> {
        let (hidden, count) = (loading.config.hidden_size as i32, config.num_experts as i32);
        let mut gates = vec![(format!("{path}.gate"), count)];
        if config.shared.is_some_and(|shared| shared.gated) {
            gates.push((format!("{path}.shared_expert_gate"), 1));
        }
        if config.bias {
            loading.weights.require(&format!("{path}.gate.bias"))?;
        }
        let shape = ExpertShape {
            experts: count,
            hidden: seen,
            width: config.width as i32,
            bias: config.bias,
            gated: config.activation.is_gated(),
        };
        let activation = Activation::new(config.activation, loading.dtype)?;
        let shared = config.shared.map(|shared| DenseConfig {
            width: shared.width,
            activation: config.activation,
            bias: false,
        });
        Ok(Self {
            gates: Linear::load_joined(loading.weights, &gates, hidden)?,
            count,
            router: Router::load(config, path, loading)?,
            experts: Experts::load(loading.weights, path, shape, config.top_k as i32, activation)?,
            latents: None,
            shared_experts: shared
                .map(|shared| Mlp::load(&shared, &format!("{path}.shared_experts"), loading))
                .transpose()?,
        })
    }

    /// The output for the normed stream, `[length, hidden]`.
    pub fn forward(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        if let Some(routed) = self.routed(stream, norm)? {
            let shares = self.router.scaled(routed.shares)?;
            let fed = self.feed(&routed.normed, &routed.experts, &shares)?;
            return match &self.shared_experts {
                Some(shared) => fed.add(&shared.forward(&routed.normed)?),
                None => Ok(fed),
            };
        }
        let x = &stream.normed(norm)?;
        let numbers = self.gates.forward(x)?;
        let gated = numbers.dim(1) > self.count;
        let routed = if gated {
            numbers.slice(1, 0, self.count)?
        } else {
            numbers.clone()
        };
        let (indices, shares) = self.router.choose(&routed)?;
        let fed = self.feed(x, &indices, &shares)?;
        let Some(shared) = &self.shared_experts else {
            return Ok(fed);
        };
        let shared = shared.forward(x)?;
        if !gated {
            return fed.add(&shared);
        }
        let weight = numbers.slice(1, self.count, self.count + 1)?.sigmoid()?;
        fed.add(&shared.mul(&weight)?)
    }

    /// What the chosen experts give for `x`, `[length, hidden]`.
    fn feed(&self, x: &Tensor, indices: &Tensor, shares: &Tensor) -> Result<Tensor> {
        match &self.latents {
            Some([into, back]) => back.forward(&self.experts.forward(&into.forward(x)?, indices, shares)?),
            None => self.experts.forward(x, indices, shares),
        }
    }

    /// The stream's norm and its experts in one launch; `None` if no kernel does that.
    fn routed(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Option<Routed>> {
        // Elsewhere nothing is described for a launch that does not come.
        if !self.router.chooses_alone() || !on_cuda() {
            return Ok(None);
        }
        let Some((weight, bias)) = self
            .gates
            .plain_rows()?
            .filter(|(weight, _)| weight.dim(0) == self.count)
        else {
            return Ok(None);
        };
        let router = fused::Router {
            weight: &weight,
            bias: bias.as_ref(),
            chosen: self.router.chosen,
        };
        stream.fuse(norm, |row| {
            let routed = kernels().norm_route(row, router)?;
            Ok(routed.map(|routed| {
                let sum = routed.sum.clone();
                (routed, sum)
            }))
        })
    }
}

/// Chooses experts by the numbers that the gate gave them.
#[derive(Parameters)]
struct Router {
    #[parameters(skip)]
    config: RouterConfig,
    chosen: i32,
    /// e_score_correction_bias, in 32 bits, `[1, experts]`.
    correction: Option<Tensor>,
    factor: Option<Tensor>,
    /// The score of experts in groups that are not chosen.
    nothing: Option<Tensor>,
}

impl Router {
    fn load(config: &MoeConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let router = config.router;
        // Sigmoid scores are computed and stored in 32 bits, as the reference does: their small differences decide.
        let dtype = match router.scoring {
            Scoring::Sigmoid => Dtype::Float32,
            Scoring::Softmax => loading.dtype,
        };
        let scalar = |number: f32| Tensor::scalar(number, dtype);
        let mut correction = || {
            let name = format!("{path}.gate.e_score_correction_bias");
            let correction = loading.weights.take(&name, &[config.num_experts as i32])?;
            Ok::<_, error::Error>(correction.astype(Dtype::Float32)?.reshape(&[1, -1])?)
        };
        let router = Self {
            config: router,
            chosen: config.top_k as i32,
            correction: router.correction.then(&mut correction).transpose()?,
            factor: (router.factor != 1.0).then(|| scalar(router.factor)).transpose()?,
            nothing: router.groups.map(|_| scalar(0.0)).transpose()?,
        };
        loading.weights.materialize(router.tensors())?;
        Ok(router)
    }

    /// True if shares of the chosen among themselves are the softmax of their logits alone.
    fn chooses_alone(&self) -> bool {
        let config = &self.config;
        config.scoring == Scoring::Softmax && config.normalised && config.groups.is_none() && self.correction.is_none()
    }

    fn scaled(&self, shares: Tensor) -> Result<Tensor> {
        match &self.factor {
            Some(factor) => shares.mul(factor),
            None => Ok(shares),
        }
    }

    /// For the `logits` `[length, experts]` of the gate the chosen experts and how much each counts, `[length,
    /// chosen]`.
    fn choose(&self, logits: &Tensor) -> Result<(Tensor, Tensor)> {
        let config = &self.config;
        let alone = self.chooses_alone();
        if alone {
            if let Some((indices, shares)) = kernels().route(logits, self.chosen)? {
                return Ok((indices, self.scaled(shares)?));
            }
        }
        let scores = match config.scoring {
            Scoring::Softmax if alone => logits.clone(),
            Scoring::Softmax => logits.softmax(1, true)?,
            Scoring::Sigmoid => logits.astype(Dtype::Float32)?.sigmoid()?,
        };
        let mut ranking = scores.clone();
        if let Some(correction) = &self.correction {
            ranking = ranking.add(correction)?;
        }
        let indices = match (config.groups, &self.nothing) {
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
            config,
            chosen: 2,
            correction: correction.map(|numbers| Tensor::from_f32(&numbers, &[1, 6])),
            factor: scalar(config.factor),
            nothing: scalar(0.0),
        };
        let (indices, shares) = router.choose(&Tensor::from_f32(&logits, &[1, 6])).unwrap();
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
            correction: true,
            ..RouterConfig::new(Scoring::Sigmoid, false)
        };
        assert_close(&choose(config, None, scores), &[(2, 1.4), (3, 1.6)]);
        let corrected = choose(config, Some([0.0, 0.0, 0.0, 0.0, 0.9, 0.0]), scores);
        assert_close(&corrected, &[(3, 1.6), (4, 0.4)]);
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
