//! Step 3.5 and the text part of Step 3.7: other heads in sliding layers, a gate for each of them, bases of positions by layer, and experts whose
//! gates are bounded.

use serde_json::{json, Map, Value};

use super::experts::place;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, FeedForward, GateFunction, GateSource, LayerConfig, LmHead, Mixer, NormPlacement,
    OriginalMark, OutputGate, QkNorm,
};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Step 3.5 Flash", &["step3p5"], parse),
    FamilyRow::text("Step 3.7", &["step3p7"], parse_37),
];

/// Names in the checkpoints, those of mlx-lm's conversions first.
const NAMES: &[(&str, &str)] = &[
    ("mlp.gate.gate", "mlp.gate"),
    ("mlp.gate.router_bias", "mlp.gate.e_score_correction_bias"),
    ("mlp.share_expert", "mlp.shared_experts"),
    ("share_expert", "mlp.shared_experts"),
    ("moe.gate_proj", "mlp.switch_mlp.gate_proj"),
    ("moe.up_proj", "mlp.switch_mlp.up_proj"),
    ("moe.down_proj", "mlp.switch_mlp.down_proj"),
    ("moe.router_bias", "mlp.gate.e_score_correction_bias"),
    ("moe.gate", "mlp.gate"),
];

/// The meaning of a config that does not say it.
struct Usual {
    /// True if there is a gate for each head.
    gate: bool,
    /// The factor of what experts give.
    factor: f32,
    /// The first layer with experts.
    first: usize,
}

/// Step 3.5 Flash.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let usual = Usual {
        gate: true,
        factor: 3.0,
        first: 1,
    };
    decoder(source.text, &usual)
}

/// Step 3.7. Defaults are those of mlx-vlm's `TextConfig`.
pub(super) fn parse_37(source: Source<'_>) -> Result<Family, Error> {
    let usual = Usual {
        gate: false,
        factor: 1.0,
        first: 3,
    };
    decoder(source.text, &usual)
}

fn decoder(text: Fields<'_>, usual: &Usual) -> Result<Family, Error> {
    let shapes = Shapes {
        key_heads: text.required("num_attention_groups")?,
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-5),
        lm_head: LmHead::Untied,
        ..Shapes::parse(text)?
    };
    let sliding = sliding(text, shapes.layers)?;
    let window = Some(text.number("sliding_window")?.unwrap_or(512));
    let of_sliding = match text.object("attention_other_setting")? {
        Some(other) => (
            other.required("num_attention_heads")?,
            other.required("num_attention_groups")?,
        ),
        None => (shapes.heads, shapes.key_heads),
    };
    let gate = text
        .flag("use_head_wise_attn_gate")?
        .unwrap_or(usual.gate)
        .then_some(OutputGate {
            source: GateSource::Heads,
            function: GateFunction::Sigmoid,
        });
    let limits = [
        Limits::parse(text, "swiglu_limits")?,
        Limits::parse(text, "swiglu_limits_shared")?,
    ];
    let (ropes, rope_of) = ropes(text, &shapes, &sliding)?;
    let layers = sliding.iter().zip(rope_of).enumerate().map(|(layer, (slides, rope))| {
        let (heads, key_heads) = if *slides {
            of_sliding
        } else {
            (shapes.heads, shapes.key_heads)
        };
        LayerConfig {
            norms: NormPlacement::Pre,
            mixer: Mixer::Attention(AttentionConfig {
                window: window.filter(|_| *slides),
                qk_norm: QkNorm::PerHead,
                output_gate: gate,
                ..AttentionConfig::new(heads, key_heads, shapes.head_dim, Some(rope))
            }),
            feed_forward: FeedForward::dense(shapes.width, limits[1].activation(layer)),
        }
    });
    let mut config = shapes.decoder(ropes, layers.collect());
    let width = text.number("moe_intermediate_size")?.unwrap_or(1280);
    let shared = text.first(&["share_expert_dims", "share_expert_dim"])?.unwrap_or(1280);
    let router = RouterConfig {
        factor: text.number("moe_router_scaling_factor")?.unwrap_or(usual.factor),
        correction: Correction::Always,
        ..RouterConfig::new(Scoring::Sigmoid, text.flag("norm_expert_weight")?.unwrap_or(true))
    };
    let (num_experts, top_k) = (text.required("moe_num_experts")?, text.required("moe_top_k")?);
    let sparse = sparse(text)?;
    for layer in 0..config.layers.len() {
        let experts = MoeConfig {
            num_experts,
            top_k,
            width,
            activation: limits[0].activation(layer),
            bias: false,
            router,
            shared: Some(SharedExpertConfig {
                activation: limits[1].activation(layer),
                ..SharedExpertConfig::beside(shared)
            }),
        };
        let has = sparse
            .as_ref()
            .map_or(layer >= usual.first, |sparse| sparse.contains(&layer));
        place(&mut config, experts, |other| has && other == layer);
    }
    config.norm_offset_in_original = Some(OriginalMark::Segment("moe"));
    config.renames = &[NAMES];
    config.family()
}

/// Which layers slide; every second one from the first on if the config does not say.
fn sliding(text: Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
    match text.texts("layer_types")? {
        None => Ok((0..layers).map(|layer| layer.is_multiple_of(2)).collect()),
        // The list goes on with layers that guess tokens ahead.
        Some(names) if names.len() >= layers as usize => Ok(names
            .into_iter()
            .take(layers as usize)
            .map(|name| name == "sliding_attention")
            .collect()),
        Some(names) => unusable("layer_types", format!("it names {} of {layers} layers", names.len())),
    }
}

/// The layers with experts, by their numbers in a list or with commas; `None` if the config does not say.
fn sparse(text: Fields<'_>) -> Result<Option<Vec<usize>>, Error> {
    const FIELD: &str = "moe_layers_enum";
    if let Ok(Some(numbers)) = text.numbers(FIELD) {
        return Ok(Some(numbers.into_iter().map(|number| number as usize).collect()));
    }
    let Some(list) = text.text(FIELD)?.filter(|list| !list.trim().is_empty()) else {
        return Ok(None);
    };
    let numbers: Result<Vec<usize>, _> = list.split(',').map(|number| number.trim().parse()).collect();
    match numbers {
        Ok(numbers) => Ok(Some(numbers)),
        Err(_) => unusable(FIELD, format!("`{list}` is not a list of numbers")),
    }
}

/// The bounds of gates by layer; 0 stands for none.
struct Limits(Vec<f32>);

impl Limits {
    fn parse(text: Fields<'_>, field: &'static str) -> Result<Self, Error> {
        Ok(Self(text.numbers(field)?.unwrap_or_default()))
    }

    fn activation(&self, layer: usize) -> Activation {
        match self.0.get(layer) {
            Some(limit) if *limit > 0.0 => Activation::BoundedSilu { limit: *limit },
            Some(_) | None => Activation::Silu,
        }
    }
}

/// The positions that differ, and those of each layer.
fn ropes(text: Fields<'_>, shapes: &Shapes, sliding: &[bool]) -> Result<(Vec<RopeConfig>, Vec<usize>), Error> {
    let bases = text.by_layer::<f32>("rope_theta", shapes.layers)?;
    let parts = text.numbers("partial_rotary_factors")?.unwrap_or_default();
    let stretched = text.texts("yarn_only_types")?.filter(|types| !types.is_empty());
    let (mut ropes, mut of_layers) = (Vec::new(), Vec::new());
    for (layer, slides) in sliding.iter().enumerate() {
        let kind = if *slides { "sliding_attention" } else { "full_attention" };
        let mut fields = match stretched.as_ref().is_none_or(|types| types.contains(&kind)) {
            true => text.only(&["rope_scaling", "max_position_embeddings"]),
            false => Map::new(),
        };
        fields.insert(
            "rope_theta".into(),
            json!(bases.as_ref().map_or(10_000.0, |bases| bases[layer])),
        );
        if let Some(part) = parts.get(layer) {
            fields.insert("partial_rotary_factor".into(), Value::from(*part));
        }
        let rope = RopeConfig::parse(Fields::new(&fields), shapes.head_dim, For::All, Defaults::default())?;
        let known = ropes.iter().position(|other| *other == rope);
        of_layers.push(known.unwrap_or(ropes.len()));
        if known.is_none() {
            ropes.push(rope);
        }
    }
    Ok((ropes, of_layers))
}
