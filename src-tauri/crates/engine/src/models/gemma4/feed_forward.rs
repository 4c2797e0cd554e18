//! The feed-forward of Gemma 4: a dense network, and in 26B-A4B a mixture of experts next to it, each between norms of
//! its own.

use checkpoint::config::gemma4::{Gemma4Config, Gemma4MoeConfig};
use mlx::parameters::{parameters, Parameters};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::layers::{top_k_indices, Activation, Experts, Gelu, Linear, ResidualStream, RmsNorm};
use crate::weights::{ExpertShape, Weights};

pub(super) struct FeedForward {
    pre_feedforward_layernorm: RmsNorm,
    mlp: Mlp,
    moe: Option<SparseMoe>,
    post_feedforward_layernorm: RmsNorm,
}

impl FeedForward {
    pub(super) fn load(
        config: &Gemma4Config,
        layer: usize,
        gelu: &Gelu,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        Ok(Self {
            pre_feedforward_layernorm: norm(config, layer, "pre_feedforward_layernorm", weights)?,
            mlp: Mlp::load(config, layer, gelu, weights)?,
            moe: match &config.experts {
                Some(experts) => Some(SparseMoe::load(config, experts, layer, gelu, weights)?),
                None => None,
            },
            post_feedforward_layernorm: norm(config, layer, "post_feedforward_layernorm", weights)?,
        })
    }

    /// The summand for the stream, before [`FeedForward::output_norm`].
    pub(super) fn forward(&self, stream: &mut ResidualStream<'_>) -> Result<Tensor> {
        let fed = self.mlp.forward_normed(stream, &self.pre_feedforward_layernorm)?;
        match &self.moe {
            Some(moe) => moe
                .post_feedforward_layernorm_1
                .forward(&fed)?
                .add(&moe.forward(stream.sum()?)?),
            None => Ok(fed),
        }
    }

    pub(super) fn output_norm(&self) -> &RmsNorm {
        &self.post_feedforward_layernorm
    }
}

struct Mlp {
    /// gate_proj and up_proj side by side.
    gate_up_proj: Linear,
    activation: Activation,
    down_proj: Linear,
}

impl Mlp {
    fn load(config: &Gemma4Config, layer: usize, gelu: &Gelu, weights: &mut Weights<'_>) -> error::Result<Self> {
        let path = |part: &str| format!("layers.{layer}.mlp.{part}");
        let (hidden, width) = (config.hidden_size as i32, config.mlp_width(layer) as i32);
        Ok(Self {
            gate_up_proj: Linear::load_joined(
                weights,
                &[(path("gate_proj"), width), (path("up_proj"), width)],
                hidden,
            )?,
            activation: Activation::Gelu(gelu.clone()),
            down_proj: Linear::load(weights, &path("down_proj"), width, hidden)?,
        })
    }

    fn forward_normed(&self, stream: &mut ResidualStream<'_>, norm: &RmsNorm) -> Result<Tensor> {
        self.down_proj
            .forward(&self.gate_up_proj.gated_normed(stream, Some(norm), &self.activation)?)
    }
}

/// The experts next to the dense network, with the norms that both then need.
struct SparseMoe {
    router: Router,
    experts: Experts,
    pre_feedforward_layernorm_2: RmsNorm,
    /// Of what the dense network gives.
    post_feedforward_layernorm_1: RmsNorm,
    post_feedforward_layernorm_2: RmsNorm,
}

impl SparseMoe {
    fn load(
        config: &Gemma4Config,
        of: &Gemma4MoeConfig,
        layer: usize,
        gelu: &Gelu,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let shape = ExpertShape {
            experts: of.num_experts as i32,
            hidden: config.hidden_size as i32,
            width: of.moe_intermediate_size as i32,
            bias: false,
        };
        let activation = Activation::Gelu(gelu.clone());
        Ok(Self {
            router: Router::load(config, of, layer, weights)?,
            experts: Experts::load(
                weights,
                &format!("layers.{layer}"),
                shape,
                of.top_k_experts as i32,
                activation,
            )?,
            pre_feedforward_layernorm_2: norm(config, layer, "pre_feedforward_layernorm_2", weights)?,
            post_feedforward_layernorm_1: norm(config, layer, "post_feedforward_layernorm_1", weights)?,
            post_feedforward_layernorm_2: norm(config, layer, "post_feedforward_layernorm_2", weights)?,
        })
    }

    fn forward(&self, h: &Tensor) -> Result<Tensor> {
        let (indices, shares) = self.router.forward(h)?;
        let fed = self
            .experts
            .forward(&self.pre_feedforward_layernorm_2.forward(h)?, &indices, &shares)?;
        self.post_feedforward_layernorm_2.forward(&fed)
    }
}

/// Chooses the experts of each token by the residual stream itself, normed in its own way.
struct Router {
    chosen: i32,
    /// `scale`, over the root of the width.
    norm: RmsNorm,
    proj: Linear,
    /// `[experts]`.
    per_expert_scale: Tensor,
}

impl Router {
    fn load(
        config: &Gemma4Config,
        of: &Gemma4MoeConfig,
        layer: usize,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let path = |part: &str| format!("layers.{layer}.router.{part}");
        let (hidden, experts) = (config.hidden_size as i32, of.num_experts as i32);
        let scale = weights.take(&path("scale"), &[hidden])?;
        let root = Tensor::scalar((hidden as f32).powf(-0.5), scale.dtype())?;
        let router = Self {
            chosen: of.top_k_experts as i32,
            norm: RmsNorm::new(scale.mul(&root)?, config.rms_norm_eps)?,
            proj: Linear::load(weights, &path("proj"), hidden, experts)?,
            per_expert_scale: weights.take(&path("per_expert_scale"), &[experts])?,
        };
        weights.materialize(router.tensors())?;
        Ok(router)
    }

    /// The experts of each token and how much each counts, both `[length, chosen]`.
    fn forward(&self, h: &Tensor) -> Result<(Tensor, Tensor)> {
        let scores = self.proj.forward(&self.norm.forward(h)?)?;
        let indices = top_k_indices(&scores, self.chosen)?;
        let shares = scores.take_along(&indices, 1)?.softmax(1, false)?;
        let shares = shares.mul(&self.per_expert_scale.take(&indices, 0)?)?;
        Ok((indices, shares))
    }
}

fn norm(config: &Gemma4Config, layer: usize, name: &str, weights: &mut Weights<'_>) -> error::Result<RmsNorm> {
    RmsNorm::load(
        weights,
        &format!("layers.{layer}.{name}"),
        config.hidden_size as i32,
        config.rms_norm_eps,
    )
}

parameters!(FeedForward {
    pre_feedforward_layernorm,
    mlp,
    moe,
    post_feedforward_layernorm,
});

parameters!(Mlp {
    gate_up_proj,
    activation,
    down_proj,
});

parameters!(SparseMoe {
    router,
    experts,
    pre_feedforward_layernorm_2,
    post_feedforward_layernorm_1,
    post_feedforward_layernorm_2,
});

parameters!(Router {
    chosen: _,
    norm,
    proj,
    per_expert_scale,
});
