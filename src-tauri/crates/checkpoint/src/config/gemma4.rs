//! Shapes of the Gemma 4 text models. Names are those of `config.json`; what it leaves out follows transformers'
//! `Gemma4TextConfig`.

use super::decoder::check_head;
use super::fields::Fields;
pub use super::gemma3n::AltUpConfig;
use crate::Error;

/// More layers than any model has; a config that claims more is broken.
const MOST_LAYERS: u32 = 4096;

/// Wider than any layer or vocabulary, and far inside of what the engine counts with.
const WIDEST: u64 = 1 << 24;

/// More experts than any layer has.
const MOST_EXPERTS: u32 = 1 << 16;

/// How far a layer looks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// The last `sliding_window` tokens.
    Sliding,
    /// Everything.
    Full,
}

/// How the rotation angles of one kind of layer grow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RopeParameters {
    /// The base of the periods.
    pub theta: f32,
    /// The part of the head that turns, with periods that are spread over the whole head; the rest keeps still.
    pub partial_rotary_factor: f32,
}

/// The shapes of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemma4Config {
    /// Width of the residual stream.
    pub hidden_size: u32,
    /// What each layer sees; one entry per layer.
    pub layers: Vec<Attention>,
    /// Layers at the end that use the keys and values of an earlier one.
    pub num_kv_shared_layers: u32,
    /// Width of the MLP.
    pub intermediate_size: u32,
    /// Whether layers with shared keys and values have an MLP of twice that width.
    pub use_double_wide_mlp: bool,
    /// Query heads.
    pub num_attention_heads: u32,
    /// Key and value heads.
    pub num_key_value_heads: u32,
    /// Key and value heads of full layers without values of their own, if they differ.
    pub num_global_key_value_heads: Option<u32>,
    /// Width of a head in sliding layers.
    pub head_dim: u32,
    /// Width of a head in full layers.
    pub global_head_dim: u32,
    /// Tokens that sliding layers see.
    pub sliding_window: u32,
    /// Width of the per-layer inputs; `None` for models without them.
    pub hidden_size_per_layer_input: Option<u32>,
    /// Tokens of the vocabulary.
    pub vocab_size: u32,
    /// Tokens that have per-layer inputs.
    pub vocab_size_per_layer_input: u32,
    /// Added to the variance in every norm.
    pub rms_norm_eps: f32,
    /// Logits are squeezed into plus and minus this.
    pub final_logit_softcapping: Option<f32>,
    /// Whether the embedding is also the output layer.
    pub tie_word_embeddings: bool,
    /// Rotation of sliding layers.
    pub sliding_rope: RopeParameters,
    /// Rotation of full layers.
    pub full_rope: RopeParameters,
    /// Whether full layers have no values of their own (26B, 31B).
    pub attention_k_eq_v: bool,
    /// The experts of every layer, beside its dense MLP (26B-A4B).
    pub experts: Option<Gemma4MoeConfig>,
    /// Several streams instead of one (Gemma 3n).
    pub altup: Option<AltUpConfig>,
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemma4MoeConfig {
    /// Experts of a layer.
    pub num_experts: u32,
    /// How many of them a token uses.
    pub top_k_experts: u32,
    /// Width of one of them.
    pub moe_intermediate_size: u32,
}

impl Gemma4MoeConfig {
    fn parse(text: Fields<'_>) -> Result<Option<Self>, Error> {
        if !text.flag("enable_moe_block")?.unwrap_or(false) {
            return Ok(None);
        }
        let experts = Self {
            num_experts: text.required("num_experts")?,
            top_k_experts: text.required("top_k_experts")?,
            moe_intermediate_size: text.required("moe_intermediate_size")?,
        };
        if experts.num_experts > MOST_EXPERTS {
            return Err(Error::InvalidField {
                field: "num_experts",
                reason: format!("{} is more than {MOST_EXPERTS}", experts.num_experts),
            });
        }
        if experts.top_k_experts > experts.num_experts {
            return Err(Error::InvalidField {
                field: "top_k_experts",
                reason: format!("a token cannot use {} of {} experts", experts.top_k_experts, experts.num_experts),
            });
        }
        Ok(Some(experts))
    }
}

impl Gemma4Config {
    /// Reads the text part; the wrapper's `vocab_size` counts if both say one.
    pub(super) fn parse(text: Fields<'_>, vocab_size: Option<u32>) -> Result<Self, Error> {
        let num_hidden_layers = text.required("num_hidden_layers")?;
        if num_hidden_layers > MOST_LAYERS {
            return Err(Error::InvalidField {
                field: "num_hidden_layers",
                reason: format!("{num_hidden_layers} is more than {MOST_LAYERS}"),
            });
        }
        let layers = layer_types(text, num_hidden_layers)?;
        let head_dim = text.number("head_dim")?.unwrap_or(256);
        let config = Self {
            hidden_size: text.required("hidden_size")?,
            num_kv_shared_layers: text.number("num_kv_shared_layers")?.unwrap_or(0),
            intermediate_size: text.required("intermediate_size")?,
            use_double_wide_mlp: text.flag("use_double_wide_mlp")?.unwrap_or(false),
            num_attention_heads: text.required("num_attention_heads")?,
            num_key_value_heads: text.required("num_key_value_heads")?,
            num_global_key_value_heads: text.number("num_global_key_value_heads")?,
            head_dim,
            // A `null` means that full layers have no width of their own.
            global_head_dim: text
                .number("global_head_dim")?
                .unwrap_or(if text.says_null("global_head_dim") { head_dim } else { 512 }),
            sliding_window: text.number("sliding_window")?.unwrap_or(512),
            hidden_size_per_layer_input: text.number("hidden_size_per_layer_input")?.filter(|width| *width > 0),
            vocab_size: vocab_size.or(text.number("vocab_size")?).ok_or(Error::MissingField("vocab_size"))?,
            vocab_size_per_layer_input: text.number("vocab_size_per_layer_input")?.or(vocab_size).unwrap_or(262_144),
            rms_norm_eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
            final_logit_softcapping: text.number("final_logit_softcapping")?,
            tie_word_embeddings: text.flag("tie_word_embeddings")?.unwrap_or(true),
            sliding_rope: rope(text, "sliding_attention", 10_000.0)?,
            full_rope: rope(text, "full_attention", 1_000_000.0)?,
            attention_k_eq_v: text.flag("attention_k_eq_v")?.unwrap_or(false),
            experts: Gemma4MoeConfig::parse(text)?,
            altup: None,
            layers,
        };
        config.check(text)
    }

    /// The layer whose keys and values this one uses: itself, or the last earlier one of its kind that has its own.
    pub fn donor(&self, layer: usize) -> usize {
        let own = self.own_kv_layers();
        if layer < own {
            return layer;
        }
        let kind = self.layers[layer];
        self.layers[..own]
            .iter()
            .rposition(|other| *other == kind)
            .expect("checked when the config was read")
    }

    /// How many layers, from the first, have keys and values of their own.
    pub fn own_kv_layers(&self) -> usize {
        self.layers.len() - self.num_kv_shared_layers as usize
    }

    /// Width of a layer's MLP.
    pub fn mlp_width(&self, layer: usize) -> u32 {
        if let Some(altup) = &self.altup {
            return altup.mlp_widths[layer];
        }
        let wide = self.use_double_wide_mlp && layer >= self.own_kv_layers();
        self.intermediate_size * if wide { 2 } else { 1 }
    }

    /// Key and value heads of a layer.
    pub fn key_heads(&self, layer: usize) -> u32 {
        match (self.layers[layer], self.num_global_key_value_heads) {
            (Attention::Full, Some(heads)) if self.attention_k_eq_v => heads,
            _ => self.num_key_value_heads,
        }
    }

    /// Width of a layer's heads.
    pub fn head_width(&self, layer: usize) -> u32 {
        match self.layers[layer] {
            Attention::Full => self.global_head_dim,
            Attention::Sliding => self.head_dim,
        }
    }

    pub(super) fn check(self, text: Fields<'_>) -> Result<Self, Error> {
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        let key_heads = [
            ("num_key_value_heads", Some(self.num_key_value_heads)),
            ("num_global_key_value_heads", self.num_global_key_value_heads),
        ];
        for (field, count) in key_heads.into_iter().filter_map(|(field, count)| Some((field, count?))) {
            if count == 0 || !self.num_attention_heads.is_multiple_of(count) {
                return unusable(field, format!("{} heads cannot share {count}", self.num_attention_heads));
            }
        }
        let per_layer_inputs = u64::from(self.hidden_size_per_layer_input.unwrap_or(0));
        let experts = self.experts.map_or(0, |experts| 2 * u64::from(experts.moe_intermediate_size));
        let widths = [
            ("moe_intermediate_size", experts),
            ("hidden_size", u64::from(self.hidden_size)),
            ("intermediate_size", 2 * u64::from(self.intermediate_size)),
            ("head_dim", u64::from(self.num_attention_heads) * u64::from(self.head_dim)),
            (
                "global_head_dim",
                u64::from(self.num_attention_heads) * u64::from(self.global_head_dim),
            ),
            ("hidden_size_per_layer_input", per_layer_inputs * self.layers.len() as u64),
            ("sliding_window", u64::from(self.sliding_window)),
            ("vocab_size", u64::from(self.vocab_size)),
            ("vocab_size_per_layer_input", u64::from(self.vocab_size_per_layer_input)),
        ];
        if let Some((field, width)) = widths.into_iter().find(|(_, width)| *width > WIDEST) {
            return unusable(
                field,
                format!("it makes something {width} wide, and nothing is wider than {WIDEST}"),
            );
        }
        if self.num_kv_shared_layers as usize >= self.layers.len() {
            return unusable("num_kv_shared_layers", "no layer would have keys and values of its own".into());
        }
        let own = &self.layers[..self.own_kv_layers()];
        if self.layers.iter().any(|kind| !own.contains(kind)) {
            return unusable("num_kv_shared_layers", "a kind of layer has no keys and values to share".into());
        }
        for (field, width) in [("head_dim", self.head_dim), ("global_head_dim", self.global_head_dim)] {
            check_head(field, width)?;
        }
        if self.sliding_window == 0 {
            return unusable("sliding_window", "it is 0".into());
        }
        match text.text("hidden_activation")?.as_deref() {
            None | Some("gelu_pytorch_tanh") => Ok(self),
            Some(other) => Err(Error::Unsupported(format!("the activation `{other}`"))),
        }
    }
}

pub(super) fn layer_types(text: Fields<'_>, count: u32) -> Result<Vec<Attention>, Error> {
    const FIELD: &str = "layer_types";
    let Some(names) = text.texts(FIELD)? else {
        let pattern = text.number("sliding_window_pattern")?.unwrap_or(6).max(1);
        let is_full = |layer: u32| (layer + 1).is_multiple_of(pattern) || layer + 1 == count;
        return Ok((0..count)
            .map(|layer| if is_full(layer) { Attention::Full } else { Attention::Sliding })
            .collect());
    };
    if names.len() != count as usize {
        return Err(Error::InvalidField {
            field: FIELD,
            reason: format!("it names {} of {count} layers", names.len()),
        });
    }
    names
        .into_iter()
        .map(|name| match name {
            "sliding_attention" => Ok(Attention::Sliding),
            "full_attention" => Ok(Attention::Full),
            other => Err(Error::Unsupported(format!("layers of type `{other}`"))),
        })
        .collect()
}

fn rope(text: Fields<'_>, kind: &'static str, theta: f32) -> Result<RopeParameters, Error> {
    let default = RopeParameters {
        theta,
        partial_rotary_factor: 1.0,
    };
    let Some(all) = text.object("rope_parameters")? else {
        // The published models: only full layers turn a quarter of the head.
        let full = kind == "full_attention";
        return Ok(RopeParameters {
            partial_rotary_factor: if full { 0.25 } else { 1.0 },
            ..default
        });
    };
    let Some(fields) = all.object(kind)? else { return Ok(default) };
    let theta = fields.number("rope_theta")?.unwrap_or(theta);
    match fields.text("rope_type")?.as_deref() {
        // mlx-lm turns the whole head if no type is given, whatever the factor says.
        None | Some("default") => Ok(RopeParameters { theta, ..default }),
        Some("proportional") => Ok(RopeParameters {
            theta,
            partial_rotary_factor: fields.number("partial_rotary_factor")?.unwrap_or(1.0),
        }),
        Some(other) => Err(Error::Unsupported(format!("rotary positions of type `{other}`"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn parse(value: Value) -> Result<Gemma4Config, Error> {
        Gemma4Config::parse(Fields::new(value.as_object().unwrap()), Some(262_144))
    }

    fn text_config(hidden: u32, layers: u32, shared: u32, pattern: u32) -> Value {
        json!({"hidden_size": hidden, "num_hidden_layers": layers, "intermediate_size": 4 * hidden, "num_attention_heads": 8,
               "num_key_value_heads": 1, "num_kv_shared_layers": shared, "sliding_window_pattern": pattern})
    }

    #[test]
    fn shared_layers_of_the_published_models_find_their_donors() {
        let e2b = parse(text_config(1536, 35, 20, 5)).unwrap();
        assert_eq!((e2b.donor(15), e2b.donor(19), e2b.donor(34), e2b.donor(3)), (13, 14, 14, 3));
        let e4b = parse(text_config(2560, 42, 18, 6)).unwrap();
        assert_eq!((e4b.donor(24), e4b.donor(29), e4b.donor(41)), (22, 23, 23));
    }

    #[test]
    fn layers_with_shared_keys_are_twice_as_wide_where_the_config_says_so() {
        let widths = |wide: bool| {
            let mut config = text_config(1536, 35, 20, 5);
            config["use_double_wide_mlp"] = json!(wide);
            let config = parse(config).unwrap();
            (config.mlp_width(14), config.mlp_width(15), config.mlp_width(34))
        };
        assert_eq!(widths(true), (6144, 12288, 12288));
        assert_eq!(widths(false), (6144, 6144, 6144));
    }

    /// The large models as their repositories describe them, `null`s included.
    fn large(layers: u32, experts: Value) -> Value {
        let mut config = json!({"hidden_size": 5376, "num_hidden_layers": layers, "intermediate_size": 21504,
            "num_attention_heads": 32, "num_key_value_heads": 16, "num_global_key_value_heads": 4, "head_dim": 256,
            "global_head_dim": 512, "sliding_window": 1024, "num_kv_shared_layers": 0, "attention_k_eq_v": true,
            "hidden_size_per_layer_input": null, "final_logit_softcapping": 30.0, "use_double_wide_mlp": false,
            "enable_moe_block": false, "num_experts": null, "top_k_experts": null, "moe_intermediate_size": null});
        config.as_object_mut().unwrap().extend(experts.as_object().unwrap().clone());
        config
    }

    #[test]
    fn full_layers_of_the_large_models_have_other_heads() {
        let dense = parse(large(60, json!({}))).unwrap();
        assert_eq!(
            (
                dense.layers.iter().filter(|kind| **kind == Attention::Full).count(),
                dense.layers[5]
            ),
            (10, Attention::Full)
        );
        assert_eq!(
            (dense.key_heads(4), dense.head_width(4), dense.key_heads(5), dense.head_width(5)),
            (16, 256, 4, 512)
        );
        assert_eq!(
            (dense.hidden_size_per_layer_input, dense.experts, dense.own_kv_layers()),
            (None, None, 60)
        );
        // Without `attention_k_eq_v` full layers have as many key heads as the others.
        assert_eq!(parse(large(60, json!({"attention_k_eq_v": false}))).unwrap().key_heads(5), 16);
        assert_eq!(parse(large(60, json!({"global_head_dim": null}))).unwrap().head_width(5), 256);
    }

    #[test]
    fn experts_are_read_where_they_are_switched_on() {
        let experts = |count: u32, chosen: u32| {
            let fields = json!({"enable_moe_block": true, "num_experts": count, "top_k_experts": chosen, "moe_intermediate_size": 704});
            parse(large(30, fields)).map(|config| config.experts)
        };
        let expected = Gemma4MoeConfig {
            num_experts: 128,
            top_k_experts: 8,
            moe_intermediate_size: 704,
        };
        assert_eq!(experts(128, 8).unwrap(), Some(expected));
        assert!(experts(128, 129).unwrap_err().to_string().contains("top_k_experts"));
        assert!(experts(1 << 20, 8).unwrap_err().to_string().contains("num_experts"));
        let error = parse(large(30, json!({"enable_moe_block": true}))).unwrap_err().to_string();
        assert!(error.contains("num_experts"), "{error}");
    }

    #[test]
    fn the_last_layer_without_a_given_type_is_full() {
        let config = parse(text_config(64, 8, 0, 6)).unwrap();
        assert_eq!(config.layers.iter().filter(|kind| **kind == Attention::Full).count(), 2);
        assert_eq!(config.layers[7], Attention::Full);
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        let mut config = text_config(64, 8, 8, 6);
        assert!(parse(config.clone()).unwrap_err().to_string().contains("num_kv_shared_layers"));
        config["num_kv_shared_layers"] = json!(2);
        config["num_key_value_heads"] = json!(3);
        assert!(parse(config).unwrap_err().to_string().contains("num_key_value_heads"));
    }

    #[test]
    fn shapes_beyond_all_reason_are_refused_before_anything_is_allocated() {
        for (field, value) in [
            ("num_hidden_layers", u32::MAX),
            ("hidden_size", u32::MAX),
            ("intermediate_size", u32::MAX),
            ("head_dim", 1 << 31),
            ("head_dim", 0),
            ("global_head_dim", u32::MAX - 1),
            ("num_global_key_value_heads", 0),
            ("hidden_size_per_layer_input", u32::MAX),
            ("sliding_window", u32::MAX),
        ] {
            let mut config = text_config(64, 8, 2, 6);
            config[field] = json!(value);
            let error = parse(config).unwrap_err().to_string();
            assert!(error.contains(&format!("`{field}`")), "{field} {value}: {error}");
        }
        let mut heads = text_config(64, 8, 2, 6);
        heads["num_attention_heads"] = json!(2_000_000_000);
        assert!(parse(heads).unwrap_err().to_string().contains("head_dim"));
    }
}
