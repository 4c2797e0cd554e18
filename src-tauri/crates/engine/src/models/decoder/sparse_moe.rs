//! The experts of the parametric decoder, their router, and the shared experts.

use checkpoint::config::decoder::DenseConfig;
use checkpoint::config::moe::{Balance, LatentMoeConfig, MoeConfig};
use mlx::device::on_cuda;
use mlx::fused::{self, Routed};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::kernels::kernels;
use crate::layers::{Activation, Experts, Linear, ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mlp::Mlp;
use crate::models::decoder::router::Router;
use crate::weights::ExpertShape;

/// A sparse mixture of experts: each token goes through a few of many networks.
#[derive(Parameters)]
pub struct SparseMoe {
    /// gate, and shared_expert_gate or coefficient if there is one, side by side.
    gates: Linear,
    /// How many outputs of that belong to the router.
    count: i32,
    /// Experts that give back what they get.
    passing: Option<Passing>,
    router: Router,
    experts: Experts,
    /// From the stream to what the experts see, and from what they give back to the stream.
    latents: Option<[Linear; 2]>,
    shared_experts: Option<Mlp>,
    /// One, if what goes into the experts is weighed.
    one: Option<Tensor>,
    half: Tensor,
    /// How much these count.
    #[parameters(skip)]
    balance: Balance,
}

/// The constants of experts that give back what they get.
#[derive(Parameters)]
struct Passing {
    /// The number of the last other expert.
    last: Tensor,
    /// A share of nothing.
    nothing: Tensor,
}

impl Passing {
    /// For those after `count` others.
    fn new(count: i32, loading: &LoadContext<'_, '_>) -> Result<Self> {
        Ok(Self {
            last: Tensor::from_i32(&[count - 1], &[]),
            nothing: Tensor::scalar(0.0, loading.dtype)?,
        })
    }
}

impl SparseMoe {
    /// Loads what stands below `path`: `gate`, the experts in any form, `shared_experts` and `shared_expert_gate` or
    /// `coefficient`.
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
        let routed = count + config.router.passing as i32;
        let mut gates = vec![(format!("{path}.gate"), routed)];
        let balance = config.shared.map_or(Balance::Sum, |shared| shared.balance);
        match balance {
            Balance::Sum | Balance::Mean => {}
            Balance::Gated => gates.push((format!("{path}.shared_expert_gate"), 1)),
            Balance::Shares => {
                loading.weights.require(&format!("{path}.coefficient.bias"))?;
                gates.push((format!("{path}.coefficient"), 2));
            }
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
        if config.shared.is_some() {
            loading.weights.part_shared_expert(path, count)?;
        }
        let activation = Activation::new(config.activation, loading.dtype)?;
        // If what goes in is weighed, each of a token's experts gets something else.
        let on_input = config.router.on_input;
        let chosen = if on_input { 1 } else { config.top_k as i32 };
        let shared = config.shared.map(|shared| DenseConfig {
            width: shared.width,
            activation: shared.activation,
            bias: false,
        });
        Ok(Self {
            gates: Linear::load_joined(loading.weights, &gates, hidden)?,
            count: routed,
            passing: (routed > count).then(|| Passing::new(count, loading)).transpose()?,
            router: Router::load(config, path, loading)?,
            experts: Experts::load(loading.weights, path, shape, chosen, activation)?,
            latents: None,
            shared_experts: shared
                .map(|shared| Mlp::load(&shared, &format!("{path}.shared_experts"), loading))
                .transpose()?,
            one: on_input.then(|| Tensor::scalar(1.0, loading.dtype)).transpose()?,
            half: Tensor::scalar(0.5, loading.dtype)?,
            balance,
        })
    }

    /// The output for the normed stream, `[length, hidden]`.
    pub fn forward(
        &self,
        stream: &mut ResidualStream<'_>,
        norm: Option<&RmsNorm>,
        ids: Option<&Tensor>,
    ) -> Result<Tensor> {
        if let Some(routed) = self.routed(stream, norm)? {
            let shares = self.router.scaled(routed.shares)?;
            let fed = self.feed(&routed.normed, &routed.experts, &shares)?;
            return match (&self.shared_experts, self.balance) {
                (Some(shared), Balance::Mean) => fed.add(&shared.forward(&routed.normed)?)?.mul(&self.half),
                (Some(shared), _) => fed.add(&shared.forward(&routed.normed)?),
                (None, _) => Ok(fed),
            };
        }
        let x = &stream.normed(norm)?;
        let numbers = self.gates.forward(x)?;
        let routed = match self.balance {
            Balance::Sum | Balance::Mean => numbers.clone(),
            Balance::Gated | Balance::Shares => numbers.slice(1, 0, self.count)?,
        };
        let (indices, shares) = self.router.choose(&routed, ids)?;
        let fed = match &self.one {
            None if self.passing.is_some() => self.feed_or_pass(x, indices, shares)?,
            None => self.feed(x, &indices, &shares)?,
            Some(one) => self.weighed(x, &indices, &shares, one)?,
        };
        let Some(shared) = &self.shared_experts else {
            return Ok(fed);
        };
        let shared = shared.forward(x)?;
        match self.balance {
            Balance::Sum => fed.add(&shared),
            Balance::Mean => fed.add(&shared)?.mul(&self.half),
            Balance::Gated => {
                let weight = numbers.slice(1, self.count, self.count + 1)?.sigmoid()?;
                fed.add(&shared.mul(&weight)?)
            }
            Balance::Shares => {
                let shares = numbers.slice(1, self.count, self.count + 2)?.softmax(1, true)?;
                fed.mul(&shares.slice(1, 0, 1)?)?
                    .add(&shared.mul(&shares.slice(1, 1, 2)?)?)
            }
        }
    }

    /// The output of the network beside the experts for `x` `[length, hidden]`, if there is one.
    pub fn shared(&self, x: &Tensor) -> Result<Option<Tensor>> {
        self.shared_experts.as_ref().map(|shared| shared.forward(x)).transpose()
    }

    /// The experts `indices` `[length, chosen]`, each of what it gets times its share.
    fn weighed(&self, x: &Tensor, indices: &Tensor, shares: &Tensor, one: &Tensor) -> Result<Tensor> {
        let ones = one.broadcast(&[x.dim(0), 1])?;
        let mut sum: Option<Tensor> = None;
        for column in 0..indices.dim(1) {
            let of = |all: &Tensor| all.slice(1, column, column + 1);
            let fed = self.experts.forward(&x.mul(&of(shares)?)?, &of(indices)?, &ones)?;
            sum = Some(match sum {
                Some(sum) => sum.add(&fed)?,
                None => fed,
            });
        }
        sum.map_or_else(|| Tensor::zeros(x.shape(), x.dtype()), Ok)
    }

    /// The same for experts of which some give back what they get.
    fn feed_or_pass(&self, x: &Tensor, indices: Tensor, shares: Tensor) -> Result<Tensor> {
        let Some(passing) = &self.passing else {
            return self.feed(x, &indices, &shares);
        };
        let passes = indices.astype(Dtype::Int32)?.greater(&passing.last)?;
        let back = passes.select(&shares, &passing.nothing)?.sum(1, true)?;
        let shares = passes.select(&passing.nothing, &shares)?;
        let first = Tensor::from_i32(&[0], &[]).astype(indices.dtype())?;
        let fed = self.feed(x, &passes.select(&first, &indices)?, &shares)?;
        fed.add(&x.mul(&back)?)
    }

    /// The output of the chosen experts for `x`, `[length, hidden]`.
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
