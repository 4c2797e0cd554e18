//! The feed-forward of Gemma 4: a dense network, and in 26B-A4B a mixture of experts next to it, each between norms of
//! its own.

use checkpoint::config::gemma4::Gemma4MoeConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use super::load_context::LoadContext;
use crate::error;
use crate::kernels::kernels;
use crate::layers::{top_k_indices, Activation, Experts, Linear, ResidualStream, RmsNorm};
use crate::weights::ExpertShape;

#[derive(Parameters)]
pub(super) struct FeedForward {
    pre_feedforward_layernorm: RmsNorm,
    mlp: Mlp,
    moe: Option<SparseMoe>,
    post_feedforward_layernorm: RmsNorm,
}

impl FeedForward {
    pub(super) fn load(loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let experts = loading.config.experts.as_ref();
        Ok(Self {
            pre_feedforward_layernorm: loading.norm("pre_feedforward_layernorm")?,
            mlp: Mlp::load(loading)?,
            moe: experts.map(|experts| SparseMoe::load(experts, loading)).transpose()?,
            post_feedforward_layernorm: loading.norm("post_feedforward_layernorm")?,
        })
    }

    /// The summand for the stream, before [`FeedForward::output_norm`].
    pub(super) fn forward(&self, stream: &mut ResidualStream<'_>) -> Result<Tensor> {
        let fed = self.mlp.forward_normed(stream, &self.pre_feedforward_layernorm)?;
        match &self.moe {
            Some(moe) => {
                let dense = moe.post_feedforward_layernorm_1.forward(&fed)?;
                dense.add(&moe.forward(stream.sum()?)?)
            }
            None => Ok(fed),
        }
    }

    pub(super) fn output_norm(&self) -> &RmsNorm {
        &self.post_feedforward_layernorm
    }
}

#[derive(Parameters)]
struct Mlp {
    /// gate_proj and up_proj side by side.
    gate_up_proj: Linear,
    activation: Activation,
    down_proj: Linear,
}

impl Mlp {
    fn load(loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (gate_up_proj, down_proj) = loading.network()?;
        Ok(Self {
            gate_up_proj,
            activation: Activation::Gelu(loading.gelu.clone()),
            down_proj,
        })
    }

    fn forward_normed(&self, stream: &mut ResidualStream<'_>, norm: &RmsNorm) -> Result<Tensor> {
        let gated = self.gate_up_proj.gated_normed(stream, Some(norm), &self.activation)?;
        self.down_proj.forward(&gated)
    }
}

/// The experts next to the dense network, with the norms that both then need.
#[derive(Parameters)]
struct SparseMoe {
    router: Router,
    experts: Experts,
    pre_feedforward_layernorm_2: RmsNorm,
    /// Of what the dense network gives.
    post_feedforward_layernorm_1: RmsNorm,
    post_feedforward_layernorm_2: RmsNorm,
}

impl SparseMoe {
    fn load(of: &Gemma4MoeConfig, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let shape = ExpertShape {
            experts: of.num_experts as i32,
            hidden: loading.hidden(),
            width: of.moe_intermediate_size as i32,
            bias: false,
            gated: true,
        };
        let (path, chosen) = (format!("layers.{}", loading.layer), of.top_k_experts as i32);
        let activation = Activation::Gelu(loading.gelu.clone());
        Ok(Self {
            router: Router::load(of, loading)?,
            experts: Experts::load(loading.weights, &path, shape, chosen, activation)?,
            pre_feedforward_layernorm_2: loading.norm("pre_feedforward_layernorm_2")?,
            post_feedforward_layernorm_1: loading.norm("post_feedforward_layernorm_1")?,
            post_feedforward_layernorm_2: loading.norm("post_feedforward_layernorm_2")?,
        })
    }

    fn forward(&self, h: &Tensor) -> Result<Tensor> {
        let (indices, shares) = self.router.forward(h)?;
        let normed = self.pre_feedforward_layernorm_2.forward(h)?;
        let fed = self.experts.forward(&normed, &indices, &shares)?;
        self.post_feedforward_layernorm_2.forward(&fed)
    }
}

/// Chooses the experts of each token by the residual stream itself, normed in its own way.
#[derive(Parameters)]
struct Router {
    chosen: i32,
    /// `scale`, over the root of the width.
    norm: RmsNorm,
    proj: Linear,
    /// `[experts]`.
    per_expert_scale: Tensor,
}

impl Router {
    fn load(of: &Gemma4MoeConfig, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let [scale, per_expert_scale] =
            ["scale", "per_expert_scale"].map(|name| loading.path(&format!("router.{name}")));
        let (hidden, experts) = (loading.hidden(), of.num_experts as i32);
        let scale = loading.weights.take(&scale, &[hidden])?;
        let root = Tensor::scalar((hidden as f32).powf(-0.5), scale.dtype())?;
        let router = Self {
            chosen: of.top_k_experts as i32,
            norm: RmsNorm::new(scale.mul(&root)?, loading.config.rms_norm_eps),
            proj: loading.linear("router.proj", hidden, experts)?,
            per_expert_scale: loading.weights.take(&per_expert_scale, &[experts])?,
        };
        loading.weights.materialize(router.tensors())?;
        Ok(router)
    }

    /// The experts of each token and how much each counts, both `[length, chosen]`.
    fn forward(&self, h: &Tensor) -> Result<(Tensor, Tensor)> {
        let scores = self.proj.forward(&self.norm.forward(h)?)?;
        let (indices, shares) = match kernels().route(&scores, self.chosen)? {
            Some(routed) => routed,
            None => {
                let indices = top_k_indices(&scores, self.chosen)?;
                let shares = scores.take_along(&indices, 1)?.softmax(1, false)?;
                (indices, shares)
            }
        };
        let shares = shares.mul(&self.per_expert_scale.take(&indices, 0)?)?;
        Ok((indices, shares))
    }
}
