//! Shapes of the Gemma 4 text models. Names are those of `config.json`; what it leaves out follows transformers'
//! `Gemma4TextConfig`.

pub(crate) mod altup;
mod assistant;

use crate::config::activation::Activation;
use crate::config::decoder::QkNorm;
use crate::config::fields::Fields;
use crate::config::limits::{check_head, check_key_heads, check_layers, check_nonzero, check_width, MOST_EXPERTS};
use crate::error::{unusable, Error};
use crate::memory::{
    AttentionCost, DenseCost, ExpertsCost, FeedForwardCost, Keys, LayerCost, LayerInputs, ModelCost, Storage,
};
pub use altup::AltUpConfig;
pub use assistant::{AssistantConfig, Centroids};

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
    /// The reach of each layer's attention; one entry per layer.
    pub layers: Vec<Attention>,
    /// Layers at the end that use the keys and values of an earlier one.
    pub num_kv_shared_layers: u32,
    /// Width of the MLP.
    pub intermediate_size: u32,
    /// True if layers with shared keys and values have an MLP of twice that width.
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
    /// True if the embedding is also the output layer.
    pub tie_word_embeddings: bool,
    /// Rotation of sliding layers.
    pub sliding_rope: RopeParameters,
    /// Rotation of full layers.
    pub full_rope: RopeParameters,
    /// True if full layers have no values of their own (26B, 31B).
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
        let (count, used) = (experts.num_experts, experts.top_k_experts);
        if count > MOST_EXPERTS {
            return unusable("num_experts", format!("{count} is more than {MOST_EXPERTS}"));
        }
        if used > count {
            return unusable("top_k_experts", format!("a token cannot use {used} of {count} experts"));
        }
        Ok(Some(experts))
    }
}

impl Gemma4Config {
    /// Reads the text part; the wrapper's `vocab_size` counts if both say one.
    pub(crate) fn parse(text: Fields<'_>, vocab_size: Option<u32>) -> Result<Self, Error> {
        let shared = text.number("num_kv_shared_layers")?.unwrap_or(0);
        Self::parse_layers(text, vocab_size, shared)
    }

    /// The same if so many layers share keys and values.
    fn parse_layers(text: Fields<'_>, vocab_size: Option<u32>, num_kv_shared_layers: u32) -> Result<Self, Error> {
        let num_hidden_layers = check_layers(text.required("num_hidden_layers")?)?;
        let layers = layer_types(text, num_hidden_layers)?;
        let head_dim = text.number("head_dim")?.unwrap_or(256);
        let config = Self {
            hidden_size: text.required("hidden_size")?,
            num_kv_shared_layers,
            intermediate_size: text.required("intermediate_size")?,
            use_double_wide_mlp: text.flag("use_double_wide_mlp")?.unwrap_or(false),
            num_attention_heads: text.required("num_attention_heads")?,
            num_key_value_heads: text.required("num_key_value_heads")?,
            num_global_key_value_heads: text.number("num_global_key_value_heads")?,
            head_dim,
            // A `null` means that full layers have no width of their own.
            global_head_dim: text
                .number("global_head_dim")?
                .unwrap_or(if text.says_null("global_head_dim") {
                    head_dim
                } else {
                    512
                }),
            sliding_window: text.number("sliding_window")?.unwrap_or(512),
            hidden_size_per_layer_input: text.number("hidden_size_per_layer_input")?.filter(|width| *width > 0),
            vocab_size: vocab_size
                .or(text.number("vocab_size")?)
                .ok_or(Error::MissingField("vocab_size"))?,
            vocab_size_per_layer_input: text
                .number("vocab_size_per_layer_input")?
                .or(vocab_size)
                .unwrap_or(262_144),
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

    pub(crate) fn check(self, text: Fields<'_>) -> Result<Self, Error> {
        let key_heads = [
            ("num_key_value_heads", Some(self.num_key_value_heads)),
            ("num_global_key_value_heads", self.num_global_key_value_heads),
        ];
        for (field, count) in key_heads.into_iter().filter_map(|(field, count)| Some((field, count?))) {
            check_key_heads(field, self.num_attention_heads, count)?;
        }
        let heads = u64::from(self.num_attention_heads);
        let per_layer_inputs = u64::from(self.hidden_size_per_layer_input.unwrap_or(0)) * self.layers.len() as u64;
        let expert_width = self.experts.map_or(0, |experts| experts.moe_intermediate_size);
        let widths = [
            ("moe_intermediate_size", 2 * u64::from(expert_width)),
            ("hidden_size", u64::from(self.hidden_size)),
            ("intermediate_size", 2 * u64::from(self.intermediate_size)),
            ("head_dim", heads * u64::from(self.head_dim)),
            ("global_head_dim", heads * u64::from(self.global_head_dim)),
            ("hidden_size_per_layer_input", per_layer_inputs),
            ("sliding_window", u64::from(self.sliding_window)),
            ("vocab_size", u64::from(self.vocab_size)),
            ("vocab_size_per_layer_input", u64::from(self.vocab_size_per_layer_input)),
        ];
        for (field, width) in widths {
            check_width(field, width)?;
        }
        if self.num_kv_shared_layers as usize >= self.layers.len() {
            return unusable("num_kv_shared_layers", "no layer would have keys and values of its own");
        }
        let own = &self.layers[..self.own_kv_layers()];
        if self.layers.iter().any(|kind| !own.contains(kind)) {
            let reason = "a kind of layer has no keys and values to share";
            return unusable("num_kv_shared_layers", reason);
        }
        for (field, width) in [("head_dim", self.head_dim), ("global_head_dim", self.global_head_dim)] {
            check_head(field, width)?;
        }
        check_nonzero("sliding_window", self.sliding_window)?;
        match text.text("hidden_activation")?.as_deref() {
            None | Some("gelu_pytorch_tanh") => Ok(self),
            Some(other) => Err(Error::Unsupported(format!("the activation `{other}`"))),
        }
    }
}

pub(crate) fn layer_types(text: Fields<'_>, count: u32) -> Result<Vec<Attention>, Error> {
    use Attention::{Full, Sliding};
    if let Some(layers) = text.layer_types(count, &[("sliding_attention", Sliding), ("full_attention", Full)])? {
        return Ok(layers);
    }
    let pattern = text.number("sliding_window_pattern")?.unwrap_or(6).max(1);
    let is_full = |layer: u32| layer.is_multiple_of(pattern) || layer == count;
    let layers = (1..=count).map(|layer| if is_full(layer) { Full } else { Sliding });
    Ok(layers.collect())
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
    let Some(fields) = all.object(kind)? else {
        return Ok(default);
    };
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

impl Gemma4Config {
    pub(crate) fn cost(&self, storage: Storage) -> ModelCost {
        ModelCost {
            hidden: self.hidden_size.into(),
            vocabulary: self.vocab_size.into(),
            tied: self.tie_word_embeddings,
            cached: true,
            layers: (0..self.layers.len()).map(|layer| self.layer_cost(layer)).collect(),
            inputs: self.hidden_size_per_layer_input.map(|width| LayerInputs {
                tokens: self.vocab_size_per_layer_input.into(),
                width: width.into(),
            }),
            positions: 0,
            again: Vec::new(),
            skips: false,
            streams: self.altup.as_ref().map_or(1, |altup| altup.streams.into()),
            tables: Vec::new(),
            stream_operations: 0,
            norms_apart: false,
            adds_apart: false,
            parts_scaled: false,
            storage,
        }
    }

    fn layer_cost(&self, layer: usize) -> LayerCost {
        let full = self.layers[layer] == Attention::Full;
        let keys = match layer < self.own_kv_layers() {
            false => Keys::Shared,
            true if full && self.attention_k_eq_v => Keys::AreValues,
            true => Keys::Own,
        };
        let activation = Activation::GeluTanh.cost();
        let mut feed_forwards: Vec<Box<dyn FeedForwardCost>> = vec![Box::new(DenseCost {
            width: self.mlp_width(layer).into(),
            gated: true,
            activation,
        })];
        if let Some(experts) = self.experts {
            feed_forwards.push(Box::new(ExpertsCost {
                gated: true,
                count: experts.num_experts.into(),
                top_k: experts.top_k_experts.into(),
                width: experts.moe_intermediate_size.into(),
                activation,
                bias: false,
            }));
        }
        let (norms, one_kernel) = QkNorm::PerHead.cost();
        LayerCost {
            beside: Vec::new(),
            carried: 0,
            mixer: Box::new(AttentionCost {
                heads: self.num_attention_heads.into(),
                key_heads: self.key_heads(layer).into(),
                width: self.head_width(layer).into(),
                value_width: self.head_width(layer).into(),
                window: (!full).then_some(self.sliding_window.into()),
                keys,
                norms,
                one_kernel,
                tiled: false,
                turns: true,
                gate: 0,
                scales: false,
                mixes_loops: false,
                key_conv: false,
                sinks: false,
                capped: false,
                striped: false,
                bias: false,
                out_bias: false,
                index: None,
            }),
            feed_forwards,
            normed_after: true,
            parallel: false,
        }
    }
}

#[cfg(test)]
mod tests;
