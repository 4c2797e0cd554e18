//! A feed-forward of many experts, of which a router chooses a few for every token.

use crate::config::activation::Activation;
use crate::config::layers::dense::DenseConfig;
use crate::config::limits::{check_nonzero, check_positive, check_range, check_width, MOST_EXPERTS};
use crate::error::{unusable, Error};
use crate::memory::{DenseCost, ExpertsCost, FeedForwardCost, LatentCost};

/// The experts of a layer, `mlp`, with their router, `mlp.gate`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoeConfig {
    /// How many there are.
    pub num_experts: u32,
    /// How many of them a token uses.
    pub top_k: u32,
    /// Width of one of them.
    pub width: u32,
    /// The activation of their gates.
    pub activation: Activation,
    /// True if router and experts must have a bias.
    pub bias: bool,
    /// How they are chosen.
    pub router: RouterConfig,
    /// A network that every token uses beside them.
    pub shared: Option<SharedExpertConfig>,
}

/// Experts that see a short vector made of the stream, and whose sum is made long again (Nemotron 3 Super). The router
/// and the network beside them see the stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatentMoeConfig {
    /// The experts.
    pub experts: MoeConfig,
    /// Width of the vector, of `fc1_latent_proj` and `fc2_latent_proj`.
    pub width: u32,
}

/// A network, and experts that read the same and are added after the next layer (LongCat Flash).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShortcutConfig {
    /// The network.
    pub dense: DenseConfig,
    /// The experts.
    pub experts: MoeConfig,
}

/// Experts for tokens of text, and others with a router of their own for those of images (ERNIE 4.5 VL). The network
/// beside the first ones is for all tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModalMoeConfig {
    /// The experts of text, and the network beside them.
    pub text: MoeConfig,
    /// Those of images and of the marks around them, `vision_moe`.
    pub vision: MoeConfig,
}

/// How experts are chosen, and how much each of the chosen counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RouterConfig {
    /// The scores that the router's logits become.
    pub scoring: Scoring,
    /// Logits are squeezed into plus and minus this before (Laguna).
    pub softcap: Option<f32>,
    /// True if the scores of the chosen are made to sum to 1.
    pub normalised: bool,
    /// Factor of the scores of the chosen.
    pub factor: f32,
    /// Experts after the others that give back what they get (LongCat Flash).
    pub passing: u32,
    /// True if a table of tokens, `tid2eid`, says which experts are chosen (DeepSeek V4).
    pub hashed: bool,
    /// True if what goes into an expert is multiplied by its score, instead of what comes out (Llama 4).
    pub on_input: bool,
    /// If `e_score_correction_bias` is added to the scores for the choice, and for nothing else.
    pub correction: Correction,
    /// Groups of experts of which only the best are chosen from.
    pub groups: Option<ExpertGroups>,
}

impl RouterConfig {
    /// Scores as they are, all experts in one group.
    pub fn new(scoring: Scoring, normalised: bool) -> Self {
        Self {
            scoring,
            softcap: None,
            normalised,
            factor: 1.0,
            passing: 0,
            hashed: false,
            on_input: false,
            correction: Correction::None,
            groups: None,
        }
    }
}

/// The scores that a router's logits become.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scoring {
    /// Shares of all experts together.
    Softmax,
    /// Each for itself between 0 and 1.
    Sigmoid,
    /// Each for itself the root of `ln(1 + e^x)` (Laguna).
    SqrtSoftplus,
    /// One expert is chosen after the other, and counts as its share among those that are about as good and not yet
    /// chosen: `2 · jitter` of the greater logit apart at most (Phi 3.5 MoE).
    SparseMixer {
        /// `router_jitter_noise`.
        jitter: f32,
    },
}

/// If the choice of experts is corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Correction {
    /// It is not.
    None,
    /// It is if the weights have a correction: mlx-lm's conversions leave it out (ERNIE 4.5).
    IfPresent,
    /// It is.
    Always,
    /// It is, by additions to the logits instead of the scores (Kolibri 1).
    OfLogits,
}

/// Experts in groups of one size; only those of the best groups are chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertGroups {
    /// How many groups there are.
    pub count: u32,
    /// How many of them are chosen from.
    pub top_k: u32,
    /// The score of a group.
    pub score: GroupScore,
}

/// The score of a group of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupScore {
    /// That of its best expert (DeepSeek V2).
    Best,
    /// Those of its two best experts together (DeepSeek V3, GLM 4.5).
    TwoBest,
}

/// The network beside the experts, `mlp.shared_experts`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedExpertConfig {
    /// Its width.
    pub width: u32,
    /// The activation of its gate.
    pub activation: Activation,
    /// How much it counts.
    pub balance: Balance,
}

impl Correction {
    /// Always if `applies`, else not.
    pub(crate) fn when(applies: bool) -> Self {
        match applies {
            true => Self::Always,
            false => Self::None,
        }
    }
}

impl SharedExpertConfig {
    /// A network of this width with SiLU that counts as much as the experts.
    pub(crate) fn beside(width: u32) -> Self {
        Self {
            width,
            activation: Activation::Silu,
            balance: Balance::Sum,
        }
    }
}

/// How much the network beside the experts counts for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// As much as the experts.
    Sum,
    /// As much as the experts, and both half (Command A with experts).
    Mean,
    /// A number between 0 and 1, by `mlp.shared_expert_gate` (Qwen 2).
    Gated,
    /// A share, of which the experts have the rest, by `mlp.coefficient` with a bias (Klear).
    Shares,
}

impl MoeConfig {
    /// Refuses shapes that no model has.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_range("num_experts", self.num_experts, 1..=MOST_EXPERTS)?;
        check_range("zero_expert_num", self.router.passing, 0..=MOST_EXPERTS)?;
        if self.top_k == 0 || self.top_k > self.num_experts {
            let reason = format!("a token cannot use {} of {} experts", self.top_k, self.num_experts);
            return unusable("num_experts_per_tok", reason);
        }
        check_width("moe_intermediate_size", 2 * u64::from(self.width))?;
        if let Some(shared) = self.shared {
            check_width("shared_expert_intermediate_size", 2 * u64::from(shared.width))?;
        }
        check_positive("routed_scaling_factor", self.router.factor)?;
        check_positive("moe_router_logit_softcapping", self.router.softcap.unwrap_or(1.0))?;
        if let Scoring::SparseMixer { jitter } = self.router.scoring {
            check_positive("router_jitter_noise", jitter)?;
        }
        match self.router.groups {
            Some(groups) => groups.check(self),
            None => Ok(()),
        }
    }
}

impl ExpertGroups {
    fn check(self, config: &MoeConfig) -> Result<(), Error> {
        if self.count == 0 || !config.num_experts.is_multiple_of(self.count) {
            let reason = format!("{} experts do not make {} groups", config.num_experts, self.count);
            return unusable("n_group", reason);
        }
        let size = config.num_experts / self.count;
        if self.score == GroupScore::TwoBest && size < 2 {
            return unusable("n_group", "groups of one expert have no two best");
        }
        if self.top_k == 0 || self.top_k > self.count || self.top_k * size < config.top_k {
            let reason = format!(
                "{} of {} groups do not hold {} experts to choose",
                self.top_k, self.count, config.top_k
            );
            return unusable("topk_group", reason);
        }
        Ok(())
    }
}

impl MoeConfig {
    fn cost(&self) -> ExpertsCost {
        ExpertsCost {
            count: self.num_experts.into(),
            top_k: self.top_k.into(),
            width: self.width.into(),
            activation: match self.bias {
                true => self.activation.cost(),
                false => self.activation.unbiased_cost(),
            },
            bias: self.bias,
            gated: self.activation.is_gated(),
        }
    }

    /// The experts, and the network next to them.
    pub(crate) fn costs(&self) -> Vec<Box<dyn FeedForwardCost>> {
        let mut costs: Vec<Box<dyn FeedForwardCost>> = vec![Box::new(self.cost())];
        if let Some(shared) = self.shared {
            costs.push(Box::new(DenseCost {
                width: shared.width.into(),
                gated: shared.activation.is_gated(),
                activation: shared.activation.unbiased_cost(),
            }));
        }
        costs
    }
}

impl ModalMoeConfig {
    /// Refuses shapes that no model has.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.text.check()?;
        self.vision.check()
    }

    /// The experts of both kinds, and the network next to them.
    pub(crate) fn costs(&self) -> Vec<Box<dyn FeedForwardCost>> {
        let mut costs = self.text.costs();
        costs.extend(self.vision.costs());
        costs
    }
}

impl LatentMoeConfig {
    /// Refuses shapes that no model has.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_nonzero("moe_latent_size", self.width)?;
        check_width("moe_latent_size", self.width.into())?;
        self.experts.check()
    }

    /// The experts between their projections, and the network next to them.
    pub(crate) fn costs(&self) -> Vec<Box<dyn FeedForwardCost>> {
        let mut costs = self.experts.costs();
        costs[0] = Box::new(LatentCost {
            width: self.width.into(),
            experts: self.experts.cost(),
        });
        costs
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::config::decoder::{DecoderConfig, FeedForward, Mixer};
    use crate::{Family, ModelConfig};

    fn parse(mut config: Value, changes: Value) -> Result<Box<DecoderConfig>, Error> {
        config
            .as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    fn experts(config: &DecoderConfig) -> Vec<Option<MoeConfig>> {
        let feed_forwards = config.layers.iter().map(|layer| match layer.feed_forward {
            FeedForward::Moe(experts) => Some(experts),
            FeedForward::Dense(_)
            | FeedForward::Plain(_)
            | FeedForward::Linear(_)
            | FeedForward::LatentMoe(_)
            | FeedForward::ModalMoe(_)
            | FeedForward::Shortcut(_)
            | FeedForward::Absent => None,
        });
        feed_forwards.collect()
    }

    /// Qwen3 30B-A3B.
    fn qwen3_moe(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let published = json!({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "intermediate_size": 6144,
            "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "rope_theta": 1000000,
            "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true,
            "decoder_sparse_step": 1, "mlp_only_layers": []});
        parse(published, changes)
    }

    /// GLM 4.5 Air.
    fn glm4_moe(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let published = json!({"model_type": "glm4_moe", "hidden_size": 4096, "num_hidden_layers": 46, "intermediate_size": 10944,
            "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151552, "attention_bias": true,
            "partial_rotary_factor": 0.5, "use_qk_norm": false, "n_routed_experts": 128, "num_experts_per_tok": 8,
            "moe_intermediate_size": 1408, "n_shared_experts": 1, "first_k_dense_replace": 1, "norm_topk_prob": true,
            "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1});
        parse(published, changes)
    }

    #[test]
    fn layers_with_and_without_experts_are_told_apart() {
        let all = qwen3_moe(json!({})).unwrap();
        assert!(experts(&all)
            .iter()
            .all(|experts| experts.is_some_and(|experts| (experts.num_experts, experts.top_k) == (128, 8))));
        let some = experts(&qwen3_moe(json!({"decoder_sparse_step": 2, "mlp_only_layers": [1, 3]})).unwrap());
        let with: Vec<usize> = (0..8).filter(|layer| some[*layer].is_some()).collect();
        assert_eq!(with, [5, 7]);
        let glm = experts(&glm4_moe(json!({"first_k_dense_replace": 3})).unwrap());
        assert_eq!(glm.iter().position(Option::is_some), Some(3));
    }

    #[test]
    fn the_choice_of_glm_is_corrected_and_in_groups_where_there_are_several() {
        let of = |changes: Value| experts(&glm4_moe(changes).unwrap())[5].unwrap();
        let air = of(json!({}));
        assert_eq!(
            (air.router.scoring, air.router.correction, air.router.groups),
            (Scoring::Sigmoid, Correction::Always, None)
        );
        assert_eq!(air.shared, Some(SharedExpertConfig::beside(1408)));
        let grouped = of(json!({"n_group": 8, "topk_group": 4, "routed_scaling_factor": 2.5})).router;
        let expected = ExpertGroups {
            count: 8,
            top_k: 4,
            score: GroupScore::TwoBest,
        };
        assert_eq!((grouped.groups, grouped.factor), (Some(expected), 2.5));
    }

    #[test]
    fn gpt_oss_slides_in_every_second_layer_and_has_sinks() {
        let published = json!({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24, "intermediate_size": 2880,
            "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "sliding_window": 128,
            "num_local_experts": 32, "num_experts_per_tok": 4, "swiglu_limit": 7.0, "rope_theta": 150000,
            "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                             "original_max_position_embeddings": 4096, "truncate": false}});
        let config = parse(published.clone(), json!({})).unwrap();
        let windows: Vec<_> = config
            .layers
            .iter()
            .map(|layer| match &layer.mixer {
                Mixer::Attention(attention) if attention.sinks && attention.qkv_bias && attention.o_bias => {
                    attention.window
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(windows[..3], [Some(128), None, Some(128)]);
        assert!(experts(&config)[0].unwrap().bias);
        let error = parse(published, json!({"swiglu_limit": 3.0})).unwrap_err().to_string();
        assert!(error.contains("clipped at 3"), "{error}");
    }

    #[test]
    fn impossible_experts_are_refused_by_name() {
        for (field, value) in [
            ("num_experts", json!(1 << 20)),
            ("num_experts", json!(0)),
            ("num_experts_per_tok", json!(129)),
            ("moe_intermediate_size", json!(u32::MAX)),
        ] {
            let error = qwen3_moe(json!({field: value.clone()})).unwrap_err().to_string();
            assert!(error.contains(field), "{field} {value}: {error}");
        }
        for (changes, named) in [
            (json!({"n_group": 3, "topk_group": 1}), "n_group"),
            (json!({"n_group": 128, "topk_group": 8}), "n_group"),
            (json!({"n_group": 64, "topk_group": 2}), "topk_group"),
            (json!({"n_group": 4, "topk_group": 5}), "topk_group"),
            (json!({"routed_scaling_factor": 0.0}), "routed_scaling_factor"),
            (json!({"n_shared_experts": u32::MAX}), "shared_expert"),
            (json!({"topk_method": "by_name"}), "by_name"),
        ] {
            let error = glm4_moe(changes.clone()).unwrap_err().to_string();
            assert!(error.contains(named), "{changes}: {error}");
        }
    }
}
