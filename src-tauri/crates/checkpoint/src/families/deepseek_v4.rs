//! DeepSeek V4, its text part: streams that are mixed between the layers, attention to a window and to pooled positions
//! before it, experts of which the first layers choose by the token alone. Defaults are those of transformers'
//! `DeepseekV4Config`.

use serde_json::{Map, Value};

use super::experts::{refuse_biases, scoring};
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, BetweenStreams, FeedForward, HyperConfig, LayerConfig, LmHead, Mixer, NormPlacement, PoolConfig,
    PoolIndexConfig, PooledAttentionConfig,
};
use crate::config::limits::{check_head, check_layers, check_rotation};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("DeepSeek V4", &["deepseek_v4"], parse)];

/// Names in the checkpoints.
const NAMES: &[&[(&str, &str)]] = &[
    &[
        ("hc_attn_fn", "attn_hc.hc_fn"),
        ("hc_attn_base", "attn_hc.hc_base"),
        ("hc_attn_scale", "attn_hc.hc_scale"),
        ("hc_ffn_fn", "ffn_hc.hc_fn"),
        ("hc_ffn_base", "ffn_hc.hc_base"),
        ("hc_ffn_scale", "ffn_hc.hc_scale"),
        ("attn_hc.fn", "attn_hc.hc_fn"),
        ("attn_hc.base", "attn_hc.hc_base"),
        ("attn_hc.scale", "attn_hc.hc_scale"),
        ("ffn_hc.fn", "ffn_hc.hc_fn"),
        ("ffn_hc.base", "ffn_hc.hc_base"),
        ("ffn_hc.scale", "ffn_hc.hc_scale"),
        ("hc_head.fn", "hc_head.hc_head_fn"),
        ("hc_head.base", "hc_head.hc_head_base"),
        ("hc_head.scale", "hc_head.hc_head_scale"),
        ("hc_head_fn", "hc_head.hc_head_fn"),
        ("hc_head_base", "hc_head.hc_head_base"),
        ("hc_head_scale", "hc_head.hc_head_scale"),
        ("ffn.gate.bias", "mlp.gate.e_score_correction_bias"),
        ("attn.attn_sink", "self_attn.sinks"),
        ("attn_norm", "input_layernorm"),
        ("ffn_norm", "post_attention_layernorm"),
        ("attn", "self_attn"),
        ("ffn", "mlp"),
        ("embed", "embed_tokens"),
        ("head", "lm_head"),
    ],
    &[("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj")],
];

/// DeepSeek V4.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let number = |field, default| Ok::<u32, Error>(text.number(field)?.unwrap_or(default));
    let shapes = Shapes {
        hidden_size: text.required("hidden_size")?,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.required("num_hidden_layers")?)?,
        heads: text.required("num_attention_heads")?,
        key_heads: 1,
        head_dim: number("head_dim", 512)?,
        width: 0,
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
        lm_head: LmHead::Untied,
    };
    let mut ropes = Ropes::new(text)?;
    let attention = PooledAttentionConfig {
        heads: shapes.heads,
        head_dim: shapes.head_dim,
        q_rank: number("q_lora_rank", 1024)?,
        groups: number("o_groups", 8)?,
        o_rank: number("o_lora_rank", 1024)?,
        o_bias: text.flag("attention_bias")?.unwrap_or(false),
        window: number("sliding_window", 128)?,
        rope: ropes.pair(shapes.head_dim, false)?,
        pool: None,
    };
    let index = |ropes: &mut Ropes, ratio: u32| -> Result<PoolIndexConfig, Error> {
        let head_dim = number("index_head_dim", 128)?;
        Ok(PoolIndexConfig {
            heads: number("index_n_heads", 64)?,
            head_dim,
            top_k: number("index_topk", 512)?,
            rope: ropes.add(head_dim, None)?,
            pool_rope: ropes.add(head_dim, Some(ratio))?,
        })
    };
    let experts = experts(text)?;
    let hashed = hashed(text, shapes.layers)?;
    let mut layers = Vec::new();
    for (ratio, hashed) in ratios(text, shapes.layers)?.into_iter().zip(hashed) {
        let mut attention = attention;
        if ratio > 0 {
            attention.rope = ropes.pair(shapes.head_dim, true)?;
            attention.pool = Some(PoolConfig {
                ratio,
                overlaps: ratio == SPARSE,
                rope: ropes.add(shapes.head_dim, Some(ratio))?,
                index: (ratio == SPARSE).then(|| index(&mut ropes, ratio)).transpose()?,
            });
        }
        let router = RouterConfig {
            hashed,
            correction: Correction::when(!hashed),
            ..experts.router
        };
        layers.push(LayerConfig {
            norms: NormPlacement::Pre,
            mixer: Mixer::Pooled(attention),
            feed_forward: FeedForward::Moe(MoeConfig { router, ..experts }),
        });
    }
    let mut config = shapes.decoder(ropes.all, layers);
    config.hyper = Some(HyperConfig {
        streams: number("hc_mult", 4)?,
        eps: text.number("hc_eps")?.unwrap_or(1e-6),
        between: BetweenStreams::Shares {
            iterations: number("hc_sinkhorn_iters", 20)?,
        },
        head: true,
    });
    config.renames = NAMES;
    config.family()
}

/// Positions of a pooled key of which an index chooses.
const SPARSE: u32 = 4;

/// Positions of a pooled key in each layer, 0 in layers that see their window alone.
fn ratios(text: Fields<'_>, layers: u32) -> Result<Vec<u32>, Error> {
    const FIELD: &str = "compress_ratios";
    let count = layers as usize;
    if let Some(listed) = text.numbers(FIELD)?.filter(|listed| !listed.is_empty()) {
        // A layer that drafts may follow.
        let ratios: Vec<u32> = listed.iter().take(count).map(|ratio| *ratio as u32).collect();
        return match ratios.len() == count {
            true => Ok(ratios),
            false => unusable(FIELD, format!("{} for {count} layers", ratios.len())),
        };
    }
    let rates = text.object("compress_rates")?;
    let rate = |field, usual| match rates {
        Some(rates) => Ok::<u32, Error>(rates.number(field)?.unwrap_or(usual)),
        None => Ok(usual),
    };
    let kinds = [
        ("sliding_attention", 0),
        (
            "compressed_sparse_attention",
            rate("compressed_sparse_attention", SPARSE)?,
        ),
        (
            "heavily_compressed_attention",
            rate("heavily_compressed_attention", 128)?,
        ),
    ];
    if let Some(listed) = text.layer_types(layers, &kinds)? {
        return Ok(listed);
    }
    let ends = |layer: usize| layer == 0 || layer + 1 == count;
    let ratio = |layer: usize| match layer {
        _ if ends(layer) => 0,
        _ if layer.is_multiple_of(2) => SPARSE,
        _ => 128,
    };
    Ok((0..count).map(ratio).collect())
}

/// True for each layer whose experts are chosen by the token alone.
fn hashed(text: Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
    if let Some(listed) = text.kinds("mlp_layer_types", layers, &[("hash_moe", true), ("moe", false)])? {
        return Ok(listed);
    }
    let first = text.number("num_hash_layers")?.unwrap_or(3u32);
    Ok((0..layers).map(|layer| layer < first).collect())
}

fn experts(text: Fields<'_>) -> Result<MoeConfig, Error> {
    refuse_biases(text, "mlp_bias")?;
    match text.text("hidden_act")?.as_deref() {
        None | Some("silu") => {}
        Some(other) => return Err(Error::Unsupported(format!("the activation `{other}`"))),
    }
    let limit = text.number::<f32>("swiglu_limit")?.unwrap_or(10.0);
    let activation = match limit > 0.0 {
        true => Activation::ClampedSilu { limit },
        false => Activation::Silu,
    };
    let scoring = scoring(text, "scoring_func", Scoring::SqrtSoftplus)?;
    let normalised = scoring != Scoring::Softmax && text.flag("norm_topk_prob")?.unwrap_or(true);
    let width: u32 = text.number("moe_intermediate_size")?.unwrap_or(2048);
    let beside = text.number("n_shared_experts")?.unwrap_or(1u32);
    Ok(MoeConfig {
        num_experts: text.number("n_routed_experts")?.unwrap_or(256),
        top_k: text.number("num_experts_per_tok")?.unwrap_or(6),
        width,
        activation,
        bias: false,
        router: RouterConfig {
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.5),
            correction: Correction::Always,
            ..RouterConfig::new(scoring, normalised)
        },
        shared: (beside > 0).then(|| SharedExpertConfig {
            activation,
            ..SharedExpertConfig::beside(width.saturating_mul(beside))
        }),
    })
}

/// The ropes of all layers. Those of pooled layers have another base, and alone are stretched.
struct Ropes {
    turning: u32,
    plain: Map<String, Value>,
    pooled: Map<String, Value>,
    all: Vec<RopeConfig>,
}

impl Ropes {
    fn new(text: Fields<'_>) -> Result<Self, Error> {
        let parts = text.object("rope_parameters")?;
        let [main, compress] = ["main", "compress"].map(|part| parts.map_or(Ok(None), |parts| parts.object(part)));
        let table = |part: Option<Fields<'_>>, theta: f32| -> Result<Map<String, Value>, Error> {
            let theta = match part {
                Some(part) => part.number("rope_theta")?.unwrap_or(theta),
                None => theta,
            };
            let mut map = text.without("rope_parameters");
            map.remove("rope_scaling");
            map.insert("rope_theta".into(), theta.into());
            Ok(map)
        };
        let plain = table(main?, text.number("rope_theta")?.unwrap_or(10_000.0))?;
        let compress = compress?;
        let mut pooled = table(compress, text.number("compress_rope_theta")?.unwrap_or(160_000.0))?;
        if let Some(scaling) = compress.or(text.object("rope_scaling")?) {
            pooled.insert("rope_scaling".into(), scaling.without("rope_theta").into());
        }
        Ok(Self {
            turning: text.number("qk_rope_head_dim")?.unwrap_or(64),
            plain,
            pooled,
            all: Vec::new(),
        })
    }

    /// The rope of heads of this width, of which the last numbers turn.
    fn of(&self, head_dim: u32, pooled: bool) -> Result<RopeConfig, Error> {
        const FIELD: &str = "qk_rope_head_dim";
        // Before there are numbers for each of them.
        check_head("head_dim", head_dim)?;
        check_rotation(FIELD, self.turning, head_dim)?;
        let defaults = Defaults {
            traditional: true,
            whole: true,
            ..Defaults::default()
        };
        let map = if pooled { &self.pooled } else { &self.plain };
        Ok(RopeConfig::parse(Fields::new(map), self.turning, For::All, defaults)?.after_still(head_dim))
    }

    /// The index of a rope of pooled layers, by the number of a pooled key if it is made of so many positions.
    fn add(&mut self, head_dim: u32, ratio: Option<u32>) -> Result<usize, Error> {
        let rope = self.of(head_dim, true)?;
        let rope = match ratio {
            Some(ratio) => rope.by_number(ratio),
            None => rope,
        };
        let known = self.all.iter().position(|other| *other == rope);
        Ok(known.unwrap_or_else(|| {
            self.all.push(rope);
            self.all.len() - 1
        }))
    }

    /// The index of a rope that is followed by the one that turns back.
    fn pair(&mut self, head_dim: u32, pooled: bool) -> Result<usize, Error> {
        let (rope, back) = (self.of(head_dim, pooled)?, self.of(head_dim, pooled)?.backwards()?);
        let pair = [rope, back];
        if let Some(place) = self.all.windows(2).position(|ropes| *ropes == pair) {
            return Ok(place);
        }
        self.all.extend(pair);
        Ok(self.all.len() - 2)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{DecoderConfig, ModelConfig};

    /// The shapes of the published file, in few layers.
    fn parse(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "deepseek_v4", "hidden_size": 4096, "num_hidden_layers": 6,
            "vocab_size": 129280, "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, "n_routed_experts": 256,
            "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536}});
        config
            .as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    fn pooled(config: &DecoderConfig) -> Vec<u32> {
        let ratio = |layer: &LayerConfig| match &layer.mixer {
            Mixer::Pooled(attention) => attention.pool.map_or(0, |pool| pool.ratio),
            other => panic!("{other:?}"),
        };
        config.layers.iter().map(ratio).collect()
    }

    #[test]
    fn layers_pool_what_either_list_says() {
        assert_eq!(pooled(&parse(json!({})).unwrap()), [0, 128, 4, 128, 4, 0]);
        let listed = json!({"compress_ratios": [0, 0, 4, 128, 4, 128, 0]});
        assert_eq!(pooled(&parse(listed).unwrap()), [0, 0, 4, 128, 4, 128]);
        let types = [
            "sliding_attention",
            "compressed_sparse_attention",
            "heavily_compressed_attention",
        ]
        .repeat(2);
        let named = json!({"layer_types": types, "compress_rates": {"heavily_compressed_attention": 64}});
        assert_eq!(pooled(&parse(named).unwrap()), [0, 4, 64, 0, 4, 64]);
        assert!(parse(json!({"compress_ratios": [0, 4]})).is_err());
    }

    #[test]
    fn layers_without_pooled_keys_have_a_plain_rope() {
        let config = parse(json!({})).unwrap();
        let [plain, back] = [&config.ropes[0], &config.ropes[1]];
        assert!(plain.dims == 512 && plain.periods[..224].iter().all(|period| period.is_infinite()));
        assert!((plain.periods[255] - 10_000f32.powf(31.0 / 32.0)).abs() < 1.0);
        assert_eq!(back.periods[255], -plain.periods[255]);
        let Mixer::Pooled(attention) = config.layers[1].mixer else {
            panic!("another mixer")
        };
        let pool = attention.pool.unwrap();
        let (far, numbered) = (&config.ropes[attention.rope], &config.ropes[pool.rope]);
        assert!(far.periods[255] > 160_000.0 && far.amplitude == 1.0);
        assert_eq!(numbered.periods[255], far.periods[255] / 128.0);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for changes in [
            json!({"o_groups": 7}),
            json!({"head_dim": u32::MAX}),
            json!({"index_head_dim": u32::MAX - 1}),
            json!({"qk_rope_head_dim": 1024}),
            json!({"hidden_act": "relu"}),
            json!({"compress_ratios": [1, 1, 1, 1, 1, 1]}),
            json!({"mlp_layer_types": ["dense"]}),
        ] {
            assert!(parse(changes.clone()).is_err(), "{changes}");
        }
    }
}
