//! Gemma 4, the text model: sliding and full attention with heads of different width, keys and values that later layers
//! share, per-layer inputs, squeezed logits. Names are those of the checkpoint.

use mlx_rs::Dtype;
use prompt::config::gemma4::{Attention as Kind, Gemma4Config, RopeParameters};
use prompt::config::rope::RopeConfig;

use crate::cache::{Cache, PlainCache, RotatingCache, Seen};
use crate::error::{Error, Result};
use crate::layers::{attend, gated_gelu, Embedding, Gelu, Linear, Parameters, RmsNorm, Rope, Rotation};
use crate::ops::{concatenate, Mask};
use crate::tensor::Tensor;
use crate::weights::Weights;

/// Queries and keys are normed, so that nothing is left to scale.
const SCALE: f32 = 1.0;

/// What all layers of a kind share in one step.
struct Step<'a> {
    rope: &'a Rope,
    rotation: Rotation,
    mask: Mask,
}

impl Step<'_> {
    fn rotate(&self, heads: &Tensor) -> Result<Tensor> {
        self.rope.forward(heads, &self.rotation)
    }
}

struct Attention {
    heads: i32,
    key_heads: i32,
    width: i32,
    /// q_proj, and k_proj and v_proj where the layer has its own, side by side.
    qkv_proj: Linear,
    /// The norms of queries, keys and values; values have no factors, so theirs are ones.
    head_norms: RmsNorm,
    o_proj: Linear,
}

impl Attention {
    fn load(config: &Gemma4Config, layer: usize, weights: &mut Weights<'_>) -> Result<Self> {
        let path = |part: &str| format!("layers.{layer}.self_attn.{part}");
        let full = config.layers[layer] == Kind::Full;
        let width = if full { config.global_head_dim } else { config.head_dim } as i32;
        let key_heads = if full {
            config.num_global_key_value_heads.unwrap_or(config.num_key_value_heads)
        } else {
            config.num_key_value_heads
        } as i32;
        let heads = config.num_attention_heads as i32;
        let own = config.donor(layer) == layer;
        let mut parts = vec![(path("q_proj"), heads * width)];
        let mut factors = vec![(weights.take(&path("q_norm.weight"), &[width])?, heads)];
        if own {
            parts.extend([(path("k_proj"), key_heads * width), (path("v_proj"), key_heads * width)]);
            let k_norm = weights.take(&path("k_norm.weight"), &[width])?;
            let ones = Tensor::from_f32(&vec![1.0; width as usize], &[width]).astype(k_norm.dtype())?;
            factors.extend([(k_norm, key_heads), (ones, key_heads)]);
        }
        let rows: Vec<Tensor> = factors
            .iter()
            .flat_map(|(factor, count)| (0..*count).map(move |_| factor.reshape(&[1, width])))
            .collect::<Result<_>>()?;
        let head_norms = RmsNorm::new(concatenate(&rows.iter().collect::<Vec<_>>(), 0)?, config.rms_norm_eps)?;
        weights.settle(head_norms.tensors())?;
        Ok(Self {
            heads,
            key_heads,
            width,
            qkv_proj: Linear::load_joined(weights, &parts, config.hidden_size as i32)?,
            head_norms,
            o_proj: Linear::load(weights, &path("o_proj"), heads * width, config.hidden_size as i32)?,
        })
    }

    /// `x` `[length, hidden]`; keys and values come from the own cache, or from the layer that shares its.
    fn forward(&self, x: &Tensor, step: &Step<'_>, cache: Option<&mut Cache>, shared: &mut Option<Seen>) -> Result<Tensor> {
        let length = x.dim(0);
        let (heads, turned) = (self.heads, self.heads + if cache.is_some() { self.key_heads } else { 0 });
        let all = self.qkv_proj.forward(x)?;
        let rows = all.dim(-1) / self.width;
        let all = self.head_norms.forward(&all.reshape(&[length, rows, self.width])?)?;
        let all = if length == 1 {
            all.reshape(&[1, rows, 1, self.width])?
        } else {
            all.reshape(&[1, length, rows, self.width])?.swapaxes(1, 2)?
        };
        let Some(cache) = cache else {
            let seen = shared.as_ref().expect("a donor stands before the layers that share its keys");
            return self.o_proj.forward(&attend(&step.rotate(&all)?, seen, SCALE, &step.mask, None)?);
        };
        let turning = step.rotate(&all.slice(1, 0, turned)?)?;
        let seen = cache.update(&turning.slice(1, heads, turned)?, &all.slice(1, turned, rows)?)?;
        let attended = attend(&turning.slice(1, 0, heads)?, &seen, SCALE, &step.mask, None)?;
        *shared = Some(seen);
        self.o_proj.forward(&attended)
    }
}

struct Mlp {
    /// gate_proj and up_proj side by side.
    gate_up_proj: Linear,
    down_proj: Linear,
}

impl Mlp {
    fn load(config: &Gemma4Config, layer: usize, weights: &mut Weights<'_>) -> Result<Self> {
        let path = |part: &str| format!("layers.{layer}.mlp.{part}");
        let (hidden, width) = (config.hidden_size as i32, config.mlp_width(layer) as i32);
        Ok(Self {
            gate_up_proj: Linear::load_joined(weights, &[(path("gate_proj"), width), (path("up_proj"), width)], hidden)?,
            down_proj: Linear::load(weights, &path("down_proj"), width, hidden)?,
        })
    }

    fn forward(&self, x: &Tensor, gelu: &Gelu) -> Result<Tensor> {
        self.down_proj.forward(&gated_gelu(gelu, &self.gate_up_proj.forward(x)?)?)
    }
}

/// How a layer takes in its per-layer input.
struct InputGate {
    per_layer_input_gate: Linear,
    per_layer_projection: Linear,
    post_per_layer_input_norm: RmsNorm,
}

impl InputGate {
    fn load(config: &Gemma4Config, layer: usize, width: i32, weights: &mut Weights<'_>) -> Result<Self> {
        let path = |part: &str| format!("layers.{layer}.{part}");
        let hidden = config.hidden_size as i32;
        Ok(Self {
            per_layer_input_gate: Linear::load(weights, &path("per_layer_input_gate"), hidden, width)?,
            per_layer_projection: Linear::load(weights, &path("per_layer_projection"), width, hidden)?,
            post_per_layer_input_norm: RmsNorm::load(weights, &path("post_per_layer_input_norm"), hidden, config.rms_norm_eps)?,
        })
    }

    fn forward(&self, x: &Tensor, input: &Tensor, gelu: &Gelu) -> Result<Tensor> {
        let gate = gelu.forward(&self.per_layer_input_gate.forward(x)?)?;
        self.post_per_layer_input_norm
            .forward(&self.per_layer_projection.forward(&gate.mul(input)?)?)
    }
}

struct Layer {
    self_attn: Attention,
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    pre_feedforward_layernorm: RmsNorm,
    post_feedforward_layernorm: RmsNorm,
    input_gate: Option<InputGate>,
    /// `None` where it is 1 and would change nothing.
    layer_scalar: Option<Tensor>,
}

impl Layer {
    fn load(config: &Gemma4Config, layer: usize, weights: &mut Weights<'_>) -> Result<Self> {
        let (hidden, eps) = (config.hidden_size as i32, config.rms_norm_eps);
        let norm = |weights: &mut Weights<'_>, name: &str| RmsNorm::load(weights, &format!("layers.{layer}.{name}"), hidden, eps);
        let scalar = weights.take(&format!("layers.{layer}.layer_scalar"), &[1])?;
        Ok(Self {
            self_attn: Attention::load(config, layer, weights)?,
            mlp: Mlp::load(config, layer, weights)?,
            input_layernorm: norm(weights, "input_layernorm")?,
            post_attention_layernorm: norm(weights, "post_attention_layernorm")?,
            pre_feedforward_layernorm: norm(weights, "pre_feedforward_layernorm")?,
            post_feedforward_layernorm: norm(weights, "post_feedforward_layernorm")?,
            input_gate: match config.hidden_size_per_layer_input {
                Some(width) => Some(InputGate::load(config, layer, width as i32, weights)?),
                None => None,
            },
            layer_scalar: if scalar.to_f32()? == [1.0] { None } else { Some(scalar) },
        })
    }
}

/// The inputs that every layer gets for each token beside the residual stream.
struct PerLayerInputs {
    width: i32,
    embed_tokens_per_layer: Embedding,
    per_layer_model_projection: Linear,
    per_layer_projection_norm: RmsNorm,
    embedding_scale: Tensor,
    projection_scale: Tensor,
    joint_scale: Tensor,
}

impl PerLayerInputs {
    fn load(config: &Gemma4Config, width: u32, dtype: Dtype, weights: &mut Weights<'_>) -> Result<Self> {
        let (hidden, all) = (config.hidden_size, (width * config.layers.len() as u32) as i32);
        Ok(Self {
            width: width as i32,
            embed_tokens_per_layer: Embedding::load(weights, "embed_tokens_per_layer", config.vocab_size_per_layer_input as i32, all)?,
            per_layer_model_projection: Linear::load(weights, "per_layer_model_projection", hidden as i32, all)?,
            per_layer_projection_norm: RmsNorm::load(weights, "per_layer_projection_norm", width as i32, config.rms_norm_eps)?,
            embedding_scale: Tensor::scalar((width as f32).sqrt(), dtype)?,
            projection_scale: Tensor::scalar((hidden as f32).powf(-0.5), dtype)?,
            joint_scale: Tensor::scalar(0.5f32.sqrt(), dtype)?,
        })
    }

    /// `[length, layers · width]` for `ids` and their scaled embeddings `h`.
    fn forward(&self, ids: &Tensor, h: &Tensor) -> Result<Tensor> {
        let tokens = self.embed_tokens_per_layer.forward(ids)?.mul(&self.embedding_scale)?;
        let context = self.per_layer_model_projection.forward(h)?.mul(&self.projection_scale)?;
        let by_layer = context.reshape(&[h.dim(0), -1, self.width])?;
        let context = self.per_layer_projection_norm.forward(&by_layer)?.reshape(tokens.shape())?;
        context.add(&tokens)?.mul(&self.joint_scale)
    }
}

/// The whole model.
pub struct Gemma4 {
    config: Gemma4Config,
    embed_tokens: Embedding,
    embed_scale: Tensor,
    per_layer_inputs: Option<PerLayerInputs>,
    layers: Vec<Layer>,
    norm: RmsNorm,
    lm_head: Linear,
    softcap: Option<Tensor>,
    gelu: Gelu,
    sliding_rope: Rope,
    full_rope: Rope,
}

impl Gemma4 {
    /// Builds the model; every tensor of it is computed when this returns.
    pub fn load(config: &Gemma4Config, weights: &mut Weights<'_>) -> Result<Self> {
        if config.attention_k_eq_v {
            return Err(Error::NotYet("attention whose values are its keys (Gemma 4 26B and 31B)".into()));
        }
        if config.num_experts.is_some() {
            return Err(Error::NotYet("a mixture of experts (Gemma 4 26B)".into()));
        }
        let (hidden, vocabulary) = (config.hidden_size as i32, config.vocab_size as i32);
        let final_norm = weights.take("norm.weight", &[hidden])?;
        let dtype = final_norm.dtype();
        let embed_tokens = Embedding::load(weights, "embed_tokens", vocabulary, hidden)?;
        let rope = |width: u32, of: &RopeParameters| {
            let config = RopeConfig::proportional(width, of.theta, of.partial_rotary_factor);
            Rope::new(&config, width, dtype)
        };
        let model = Self {
            per_layer_inputs: match config.hidden_size_per_layer_input {
                Some(width) => Some(PerLayerInputs::load(config, width, dtype, weights)?),
                None => None,
            },
            layers: (0..config.layers.len())
                .map(|layer| Layer::load(config, layer, weights))
                .collect::<Result<_>>()?,
            norm: RmsNorm::new(final_norm, config.rms_norm_eps)?,
            lm_head: if config.tie_word_embeddings {
                embed_tokens.as_linear()?
            } else {
                Linear::load(weights, "lm_head", hidden, vocabulary)?
            },
            // Rounded to the model's type, as the training code and mlx-lm have it.
            embed_scale: Tensor::scalar((hidden as f32).sqrt(), dtype)?,
            embed_tokens,
            softcap: config.final_logit_softcapping.map(|cap| Tensor::scalar(cap, dtype)).transpose()?,
            gelu: Gelu::new(dtype)?,
            sliding_rope: rope(config.head_dim, &config.sliding_rope)?,
            full_rope: rope(config.global_head_dim, &config.full_rope)?,
            config: config.clone(),
        };
        weights.settle(model.tensors())?;
        Ok(model)
    }

    /// How many tokens its vocabulary has.
    pub fn vocabulary(&self) -> u32 {
        self.config.vocab_size
    }

    /// One empty cache for every layer that has keys and values of its own.
    pub fn caches(&self) -> Vec<Cache> {
        let own = &self.config.layers[..self.config.own_kv_layers()];
        own.iter()
            .map(|kind| match kind {
                Kind::Full => Cache::Plain(PlainCache::default()),
                Kind::Sliding => Cache::Rotating(RotatingCache::new(self.config.sliding_window)),
            })
            .collect()
    }

    /// States `[length, hidden]` of the tokens `ids` `[length]`, which come next in the sequence of these caches.
    pub fn forward(&self, ids: &Tensor, caches: &mut [Cache]) -> Result<Tensor> {
        let length = ids.size();
        let mut h = self.embed_tokens.forward(ids)?.mul(&self.embed_scale)?;
        let inputs = self.per_layer_inputs.as_ref().map(|inputs| inputs.forward(ids, &h)).transpose()?;
        let (sliding, full) = (self.step(Kind::Sliding, length, caches), self.step(Kind::Full, length, caches));
        // The keys and values that shared layers of each kind use: those of the last layer that has its own.
        let (mut sliding_shared, mut full_shared) = (None, None);
        for (index, layer) in self.layers.iter().enumerate() {
            let (step, shared) = match self.config.layers[index] {
                Kind::Sliding => (&sliding, &mut sliding_shared),
                Kind::Full => (&full, &mut full_shared),
            };
            let step = step.as_ref().expect("every kind of layer has one with a cache");
            let attended = layer
                .self_attn
                .forward(&layer.input_layernorm.forward(&h)?, step, caches.get_mut(index), shared)?;
            h = h.add(&layer.post_attention_layernorm.forward(&attended)?)?;
            let fed = layer.mlp.forward(&layer.pre_feedforward_layernorm.forward(&h)?, &self.gelu)?;
            h = h.add(&layer.post_feedforward_layernorm.forward(&fed)?)?;
            if let (Some(gate), Some(inputs)) = (&layer.input_gate, &inputs) {
                let (start, width) = (index as i32, inputs.dim(-1) / self.layers.len() as i32);
                h = h.add(&gate.forward(&h, &inputs.slice(1, start * width, (start + 1) * width)?, &self.gelu)?)?;
            }
            if let Some(scalar) = &layer.layer_scalar {
                h = h.mul(scalar)?;
            }
        }
        Ok(h)
    }

    fn step(&self, kind: Kind, length: usize, caches: &[Cache]) -> Option<Step<'_>> {
        let rope = if kind == Kind::Full { &self.full_rope } else { &self.sliding_rope };
        let (_, cache) = self.config.layers.iter().zip(caches).find(|(other, _)| **other == kind)?;
        Some(Step {
            rope,
            rotation: rope.at(cache.offset(), length),
            mask: cache.mask(length),
        })
    }

    /// Logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> Result<Tensor> {
        let logits = self.lm_head.forward(&self.norm.forward(states)?)?;
        match &self.softcap {
            Some(cap) => logits.div(cap)?.tanh()?.mul(cap),
            None => Ok(logits),
        }
    }
}

impl Parameters for Attention {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            heads: _,
            key_heads: _,
            width: _,
            qkv_proj,
            head_norms,
            o_proj,
        } = self;
        qkv_proj.visit(visitor);
        head_norms.visit(visitor);
        o_proj.visit(visitor);
    }
}

impl Parameters for Mlp {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self { gate_up_proj, down_proj } = self;
        gate_up_proj.visit(visitor);
        down_proj.visit(visitor);
    }
}

impl Parameters for InputGate {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            per_layer_input_gate,
            per_layer_projection,
            post_per_layer_input_norm,
        } = self;
        per_layer_input_gate.visit(visitor);
        per_layer_projection.visit(visitor);
        post_per_layer_input_norm.visit(visitor);
    }
}

impl Parameters for Layer {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            self_attn,
            mlp,
            input_layernorm,
            post_attention_layernorm,
            pre_feedforward_layernorm,
            post_feedforward_layernorm,
            input_gate,
            layer_scalar,
        } = self;
        self_attn.visit(visitor);
        mlp.visit(visitor);
        for norm in [
            input_layernorm,
            post_attention_layernorm,
            pre_feedforward_layernorm,
            post_feedforward_layernorm,
        ] {
            norm.visit(visitor);
        }
        input_gate.visit(visitor);
        layer_scalar.visit(visitor);
    }
}

impl Parameters for PerLayerInputs {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            width: _,
            embed_tokens_per_layer,
            per_layer_model_projection,
            per_layer_projection_norm,
            embedding_scale,
            projection_scale,
            joint_scale,
        } = self;
        embed_tokens_per_layer.visit(visitor);
        per_layer_model_projection.visit(visitor);
        per_layer_projection_norm.visit(visitor);
        for scale in [embedding_scale, projection_scale, joint_scale] {
            visitor(scale);
        }
    }
}

impl Parameters for Gemma4 {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            config: _,
            embed_tokens,
            embed_scale,
            per_layer_inputs,
            layers,
            norm,
            lm_head,
            softcap,
            gelu,
            sliding_rope,
            full_rope,
        } = self;
        embed_tokens.visit(visitor);
        visitor(embed_scale);
        per_layer_inputs.visit(visitor);
        layers.visit(visitor);
        norm.visit(visitor);
        lm_head.visit(visitor);
        softcap.visit(visitor);
        gelu.visit(visitor);
        sliding_rope.visit(visitor);
        full_rope.visit(visitor);
    }
}
