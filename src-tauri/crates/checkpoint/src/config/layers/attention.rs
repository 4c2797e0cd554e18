//! Softmax attention, `self_attn`.

use crate::config::layers::block_index::BlockIndexConfig;
use crate::config::layers::mean_index::MeanIndexConfig;
use crate::config::layers::stripes::StripesConfig;
use crate::config::limits::{check_head, check_key_heads, check_nonzero, check_positive, check_rotation, check_width};
use crate::config::rope::RopeConfig;
use crate::error::{unusable, Error};
use crate::memory::{AttentionCost, HeadNorms, Keys};

/// Softmax attention with heads that may share keys.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionConfig {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub key_heads: u32,
    /// How many of them the checkpoint holds, each of which becomes several, because the heads that shared it turn it
    /// otherwise (Falcon-OCR); usually all.
    pub stored_key_heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// Width of a value.
    pub value_dim: u32,
    /// Factor of the values (MiMo V2).
    pub value_scale: Option<f32>,
    /// Positions a query sees, itself included; `None` for all.
    pub window: Option<u32>,
    /// Positions are cut into chunks of this many, and a query sees those of its own alone (Llama 4); the same for all
    /// layers that have such chunks.
    pub chunk: Option<u32>,
    /// Index into [`DecoderConfig::ropes`](crate::DecoderConfig::ropes); `None` for layers without positions.
    pub rope: Option<usize>,
    /// Factor of the scores, without what the rope adds.
    pub scale: f32,
    /// Scores are squeezed into plus and minus this by a hyperbolic tangent (Gemma 2).
    pub softcap: Option<f32>,
    /// Queries, keys and values are clipped to plus and minus this as they are projected (DBRX).
    pub clip: Option<f32>,
    /// True if q, k and v must have a bias.
    pub qkv_bias: bool,
    /// True if a joined `qkv_proj` has the queries, the key and the value of one key head after those of another
    /// (InternLM 2, GPT-NeoX); else all queries come first.
    pub joined_by_key_head: bool,
    /// True if o must have a bias.
    pub o_bias: bool,
    /// True if query head `i` reads key head `i` modulo their number (PLaMo 1); else neighbors share one.
    pub tiled: bool,
    /// Norms of queries and keys.
    pub qk_norm: QkNorm,
    /// True if the norms of queries have a factor for each head, `head_gain` (Talkie).
    pub head_gain: bool,
    /// Queries grow with their position (Ministral 3).
    pub query_scaling: Option<QueryScaling>,
    /// A gate for what each head found.
    pub output_gate: Option<OutputGate>,
    /// True if keys and values are sums of their own and of the token's before, with factors for each head, `conv_k`
    /// and `conv_v` (Baichuan M1).
    pub key_conv: bool,
    /// The layers whose keys and values it reads.
    pub keys: KeySource,
    /// True if keys and values are rounded to 8 bits, by the factors `quant_key_scale` and `quant_value_scale` (AFM 7).
    pub rounded: bool,
    /// True if every head has a `sinks`, the score of nothing at all (gpt-oss).
    pub sinks: bool,
    /// The blocks of positions that a query looks at; all if there is none (MiniMax M3).
    pub block_index: Option<BlockIndexConfig>,
    /// The same by the means of blocks (Qwen 4); no layer has both.
    pub mean_index: Option<MeanIndexConfig>,
    /// The blocks of positions that each head sees; all if there are none (Phi 3 small).
    pub stripes: Option<StripesConfig>,
}

impl AttentionConfig {
    /// Plain attention: everything in sight, scores over the root of the width, no bias, no norms.
    pub fn new(heads: u32, key_heads: u32, head_dim: u32, rope: Option<usize>) -> Self {
        Self {
            heads,
            key_heads,
            stored_key_heads: key_heads,
            head_dim,
            value_dim: head_dim,
            value_scale: None,
            window: None,
            chunk: None,
            rope,
            scale: (head_dim as f32).powf(-0.5),
            softcap: None,
            clip: None,
            qkv_bias: false,
            joined_by_key_head: false,
            o_bias: false,
            tiled: false,
            qk_norm: QkNorm::None,
            head_gain: false,
            query_scaling: None,
            output_gate: None,
            key_conv: false,
            keys: KeySource::Own,
            rounded: false,
            sinks: false,
            block_index: None,
            mean_index: None,
            stripes: None,
        }
    }
}

/// The layer whose keys and values attention reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// Its own.
    Own,
    /// Its own, which later layers read, too.
    Kept,
    /// The last layer before it that keeps them; it has queries alone (AFM 7).
    Earlier,
}

/// A gate that what the heads found is multiplied by, made of the attention's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputGate {
    /// The projection that makes it.
    pub source: GateSource,
    /// The function of its numbers.
    pub function: GateFunction,
}

/// The projection that makes an output gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateSource {
    /// `q_proj`, which makes a number for each of a head's after its query (Qwen 3.5).
    Queries,
    /// `g_proj`, which makes a number for each of a head's (AFMoE).
    Numbers,
    /// `g_proj`, which makes one number for each head (Laguna).
    Heads,
}

/// The function of an output gate's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateFunction {
    /// The logistic function.
    Sigmoid,
    /// `ln(1 + e^x)`, in 32 bits (Laguna).
    Softplus,
}

/// Norms of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QkNorm {
    /// None.
    None,
    /// `q_norm`, `k_norm` over the width of one head (Qwen 3).
    PerHead,
    /// The same with factors for each head by itself, `q_weight`, `k_weight`, and an epsilon of 1e-6 (PLaMo 2).
    EachHead,
    /// The same without factors (Muse Glimmer).
    PerHeadBare,
    /// Without factors, and after they have turned (Llama 4).
    PerHeadBareTurned,
    /// `q_norm`, `k_norm` over the width of one head after they have turned (HunYuan).
    PerHeadTurned,
    /// `q_norm`, `k_norm` over the width of one head, and values without factors (EmbeddingGemma 2).
    PerHeadAndValues,
    /// `q_norm`, `k_norm` over all heads together (OLMo 2).
    Whole,
}

/// Queries times `1 + beta · ln(1 + floor(position / original_context))` (`llama_4_scaling_beta`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryScaling {
    /// How fast.
    pub beta: f32,
    /// Positions without growth.
    pub original_context: u32,
    /// True if positions count from 1 (Llama 4).
    pub from_one: bool,
}

impl QkNorm {
    /// The operations of these norms, and true if CUDA's kernel that splits and rotates the projections has them.
    pub(crate) fn cost(self) -> (HeadNorms, bool) {
        match self {
            Self::None => (HeadNorms::None, true),
            Self::PerHead | Self::PerHeadAndValues | Self::EachHead | Self::PerHeadBare => (HeadNorms::Together, true),
            Self::PerHeadTurned | Self::PerHeadBareTurned => (HeadNorms::Turned, true),
            Self::Whole => (HeadNorms::Separate, false),
        }
    }
}

impl AttentionConfig {
    pub(crate) fn check(&self, ropes: &[RopeConfig]) -> Result<(), Error> {
        check_key_heads("num_key_value_heads", self.heads, self.key_heads)?;
        if self.stored_key_heads == 0 || !self.key_heads.is_multiple_of(self.stored_key_heads) {
            let reason = format!("{} heads cannot be made of {}", self.key_heads, self.stored_key_heads);
            return unusable("num_key_value_heads", reason);
        }
        check_head("head_dim", self.head_dim)?;
        check_width(
            "head_dim",
            (u64::from(self.heads) + 2 * u64::from(self.key_heads))
                .saturating_mul(self.head_dim.into())
                .saturating_add(self.gate_width()),
        )?;
        check_head("v_head_dim", self.value_dim)?;
        check_width("v_head_dim", u64::from(self.heads) * u64::from(self.value_dim))?;
        if self.value_dim != self.head_dim && (self.qk_norm != QkNorm::None || self.joined_by_key_head) {
            return Err(Error::Unsupported(
                "norms of heads whose values have another width".into(),
            ));
        }
        check_positive("attention_value_scale", self.value_scale.unwrap_or(1.0))?;
        let chunk = self.chunk.unwrap_or(1);
        check_nonzero("attention_chunk_size", chunk)?;
        check_width("attention_chunk_size", chunk.into())?;
        let window = self.window.unwrap_or(1);
        check_nonzero("sliding_window", window)?;
        check_width("sliding_window", window.into())?;
        if !self.scale.is_finite() || self.scale <= 0.0 {
            return unusable("head_dim", format!("it makes the attention's scale {}", self.scale));
        }
        check_positive("attn_logit_softcapping", self.softcap.unwrap_or(1.0))?;
        check_positive("clip_qkv", self.clip.unwrap_or(1.0))?;
        if let Some(index) = &self.block_index {
            index.check(self.key_heads, ropes)?;
        }
        self.mean_index.map_or(Ok(()), |index| index.check(ropes))?;
        self.stripes.map_or(Ok(()), |stripes| stripes.check())?;
        match self.rope.and_then(|rope| ropes.get(rope)) {
            Some(rope) => check_rotation("partial_rotary_factor", rope.dims, self.head_dim),
            None => Ok(()),
        }
    }
}

impl AttentionConfig {
    /// Numbers of the output gate for each token.
    fn gate_width(&self) -> u64 {
        match self.output_gate.map(|gate| gate.source) {
            None => 0,
            Some(GateSource::Heads) => self.heads.into(),
            Some(GateSource::Queries | GateSource::Numbers) => u64::from(self.heads) * u64::from(self.value_dim),
        }
    }

    pub(crate) fn cost(&self) -> AttentionCost {
        let (norms, one_kernel) = self.qk_norm.cost();
        AttentionCost {
            heads: self.heads.into(),
            key_heads: self.key_heads.into(),
            width: self.head_dim.into(),
            value_width: self.value_dim.into(),
            window: self.window.map(u64::from),
            keys: match self.keys {
                KeySource::Own | KeySource::Kept => Keys::Own,
                KeySource::Earlier => Keys::Shared,
            },
            norms,
            one_kernel: one_kernel && self.rope.is_some() && self.value_dim == self.head_dim,
            tiled: self.tiled,
            turns: self.rope.is_some(),
            gate: self.gate_width(),
            scales: self.query_scaling.is_some(),
            mixes_loops: false,
            key_conv: self.key_conv,
            sinks: self.sinks,
            capped: self.softcap.is_some(),
            striped: self.stripes.is_some(),
            bias: self.qkv_bias,
            out_bias: self.o_bias,
            index: match self.mean_index {
                Some(index) => Some(index.cost()),
                None => self.block_index.map(|index| index.cost()),
            },
        }
    }
}
