//! The parametric decoder: a stack of layers described one by one. Each family's parser fills it from `config.json`;
//! one loader in the engine builds all of them.
//!
//! A new kind of mixer or feed is one variant of [`Mixer`] or [`FeedForward`] with a struct that a family's parser
//! fills, one file in `engine/src/models/decoder`, and one arm in each `match` of that folder's `mod.rs` and `mixer.rs`
//! or `feed_forward.rs`. A new family is one file in `families` and one row in the table there.

use crate::config::limits::{check_nonzero, check_range, check_width, MOST_LOOPS};
use crate::config::rope::RopeConfig;
use crate::config::{mla::MlaConfig, moe::LatentMoeConfig, moe::MoeConfig};

pub use crate::config::moe::{ModalMoeConfig, ShortcutConfig};
use crate::error::{unusable, Error};

pub use crate::config::activation::{Activation, EncoderActivation};
pub use crate::config::layers::attention::{
    AttentionConfig, GateFunction, GateSource, KeySource, OutputGate, QkNorm, QueryScaling,
};
pub use crate::config::layers::block_index::BlockIndexConfig;
pub use crate::config::layers::cross_attention::CrossAttentionConfig;
pub use crate::config::layers::cycles::CyclesConfig;
pub use crate::config::layers::delta_net::{
    ChannelDecays, DeltaNetConfig, DeltaProjections, CHANNEL_CHUNK, RULE_CHUNK,
};
pub use crate::config::layers::dense::DenseConfig;
pub use crate::config::layers::embedder::EmbedderConfig;
pub use crate::config::layers::folded::{FoldedFactors, MergedAdapter, RowFactors};
pub use crate::config::layers::gated_conv::GatedConvConfig;
pub use crate::config::layers::hyper::{BetweenStreams, HyperConfig};
pub use crate::config::layers::joint::JointConfig;
pub use crate::config::layers::key_conv::KeyConvConfig;
pub use crate::config::layers::layer_runs::LayerRunsConfig;
pub use crate::config::layers::lightning::LightningConfig;
pub use crate::config::layers::linear::LinearConfig;
pub use crate::config::layers::mamba::{MambaConfig, ScanInputNorms, SELECTIVE_CHUNK};
pub use crate::config::layers::mamba2::{Mamba2Config, ScanNorm, SCAN_CHUNK};
pub use crate::config::layers::mean_index::MeanIndexConfig;
pub use crate::config::layers::ngrams::NgramConfig;
pub use crate::config::layers::norms::{EmbeddingNorm, NormConfig, NormKind, OriginalMark};
pub use crate::config::layers::plain::PlainConfig;
pub use crate::config::layers::pooled::{PoolConfig, PoolIndexConfig, PooledAttentionConfig};
pub use crate::config::layers::rg_lru::RgLruConfig;
pub use crate::config::layers::rwkv::{ChannelMixConfig, RwkvConfig, TimeMixConfig, TimeMixRanks, WKV_CHUNK};
pub use crate::config::layers::stripes::StripesConfig;

/// A whole model.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Width of the residual stream.
    pub hidden_size: u32,
    /// Tokens of the vocabulary.
    pub vocab_size: u32,
    /// Tokens that are read and never written, whose embeddings follow those of the vocabulary (Llama 3.2 Vision).
    pub read_only_tokens: u32,
    /// All norms.
    pub norm: NormConfig,
    /// Tables of short runs of tokens, of which embeddings are the mean with their own (LongCat Flash Lite).
    pub ngrams: Option<NgramConfig>,
    /// Tables of short runs of tokens that some layers read (Qwen 4).
    pub layer_runs: Option<LayerRunsConfig>,
    /// The norm of embeddings, if they have one.
    pub embedding_norm: Option<EmbeddingNorm>,
    /// The most positions that the model knows, whatever its file calls the context (GPT-2, Qwen 1).
    pub most_positions: Option<u32>,
    /// True if a vector for each of these positions, `embed_positions`, is added to the embeddings (GPT-2).
    pub learned_positions: bool,
    /// Embeddings are multiplied by this (Gemma, Granite).
    pub embedding_multiplier: Option<f32>,
    /// Factor of the output of a mixer or feed-forward network before it is added (Granite).
    pub residual_multiplier: Option<f32>,
    /// True if attention is bidirectional, so that a text is read at once and nothing is generated (EmbeddingGemma).
    /// Windows then reach to both sides.
    pub bidirectional: bool,
    /// True if what the heads of a layer found, and what comes before the last projection of a network, is normed:
    /// `attn_sub_norm`, `ffn_sub_norm` (BitNet).
    pub inner_norms: bool,
    /// True if learned numbers are factors of what mixers and networks give, `attn_gain` and `mlp_gain`, of the
    /// embeddings, which are added to the stream after each layer, `embed_skip`, and of the logits, `lm_head_gain`
    /// (Talkie).
    pub gains: bool,
    /// True if the residual stream is clipped to the range of float16 (Gemma 3).
    pub clip_residual: bool,
    /// Logits are divided by this (Granite).
    pub logits_divisor: Option<f32>,
    /// Logits are squeezed into plus and minus this, after the division.
    pub logits_softcap: Option<f32>,
    /// True if original checkpoints store the projections of layers with the inputs first, recognized by the joined
    /// ones of the first layer (GPT-2).
    pub inputs_first_unless_sanitized: bool,
    /// The mark of original checkpoints in which norms of the stream, queries and keys are stored minus 1: mlx-lm's
    /// `sanitize` adds the 1 and takes the mark away.
    pub norm_offset_in_original: Option<OriginalMark>,
    /// The place of the output layer.
    pub lm_head: LmHead,
    /// Tokens that are never written, each run from its first one to the one after its last (Phi 3 small).
    pub unwritten: &'static [(u32, u32)],
    /// The rotary positions that layers refer to by index.
    pub ropes: Vec<RopeConfig>,
    /// The layers, first to last.
    pub layers: Vec<LayerConfig>,
    /// True if rows of the output layer of original files become unit vectors (Baichuan M1).
    pub unit_lm_head: bool,
    /// How often the stream goes through all layers, each time with keys of its own (Nanbeige); usually once.
    pub loops: u32,
    /// Two stacks of layers that the stream goes through in turn instead (HRM Text).
    pub cycles: Option<CyclesConfig>,
    /// The positions of its own keys that attention sees from the second loop on. It sees all keys of the first loop
    /// too, and `gate_projections` make a gate for each head that mixes what it finds in both (IQuest Loop).
    pub loop_window: Option<u32>,
    /// True if the last norm ends each of these loops and not only the last one.
    pub loops_normed: bool,
    /// How layers of the weights are two of these each, if they are.
    pub halved_layers: Option<HalvedLayers>,
    /// Parts that only a model for embeddings has (EmbeddingGemma 2).
    pub embedder: Option<EmbedderConfig>,
    /// Several streams between the layers (XING 4.0).
    pub hyper: Option<HyperConfig>,
    /// Numbers that no layer has, because the weights lack those that would have them.
    pub absent_layers: Vec<u32>,
    /// Parts of tensor names, and what this loader calls them: `("operator_norm", "input_layernorm")`. A part is one or
    /// more whole segments between dots; of several rows that fit a name the first counts. One table after another is
    /// applied.
    pub renames: &'static [&'static [(&'static str, &'static str)]],
    /// Factors that conversions have in their matrices and original files have not (Falcon-H1).
    pub folded: Option<FoldedFactors>,
    /// An adapter among the weights that belongs to them (Phi 4 Multimodal).
    pub merged: Option<MergedAdapter>,
}

/// The place of the output layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LmHead {
    /// It is the embedding, whatever else the weights hold.
    Tied,
    /// `lm_head`.
    Untied,
    /// `lm_head` if the weights have one, else the embedding: for families whose configs do not tell.
    UntiedIfPresent,
    /// Nowhere: the model makes embeddings, whatever else the weights hold.
    Absent,
}

/// The names of layers of the weights that are two of these each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalvedLayers {
    /// A part's name is followed by the number of the half (LongCat Flash).
    Numbered,
    /// `attn` and its norm are the first half, `ffn` and its norm the second (RWKV 7).
    Named,
}

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerConfig {
    /// The placement of its norms.
    pub norms: NormPlacement,
    /// How it mixes positions.
    pub mixer: Mixer,
    /// Its feed-forward network.
    pub feed_forward: FeedForward,
}

/// The placement of a layer's norms, and their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormPlacement {
    /// `input_layernorm` before the mixer, `post_attention_layernorm` before the feed (most families).
    Pre,
    /// `post_attention_layernorm` after the mixer, `post_feedforward_layernorm` after the feed (OLMo 2 and 3).
    Post,
    /// `input_layernorm`, `post_attention_layernorm` around the mixer, `pre_feedforward_layernorm`,
    /// `post_feedforward_layernorm` around the feed (Gemma 3, GLM 4).
    Sandwich,
    /// `input_layernorm` before mixer and feed, which read the same stream beside each other (Cohere).
    Parallel,
    /// The same with `post_attention_layernorm` before the feed (GPT-NeoX).
    ParallelPair,
    /// `input_layernorm` before the only part, a mixer or a feed (Nemotron-H).
    Single,
    /// None: connections with several streams norm what they read (Qwen 4).
    Absent,
    /// `post_attention_layernorm` before the feed; the mixer reads the stream as it is (the first layer of ModernBERT,
    /// whose embeddings are normed).
    BeforeNetwork,
}

/// How a layer mixes positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Mixer {
    /// Softmax attention, `self_attn`.
    Attention(AttentionConfig),
    /// A gated delta net, `linear_attn`.
    DeltaNet(DeltaNetConfig),
    /// Attention over latents, `self_attn`.
    Mla(MlaConfig),
    /// A gated short convolution, `conv`.
    GatedConv(GatedConvConfig),
    /// Attention to what a tower made of images, `cross_attn`; whoever sees none passes by the layer.
    CrossAttention(CrossAttentionConfig),
    /// A projection of each position by itself, `self_attn.linear` (Nemotron by architecture search).
    Linear(LinearConfig),
    /// Queries that gate short convolutions of keys and values, `local_mixer`.
    KeyConv(KeyConvConfig),
    /// Lightning attention, `self_attn`.
    Lightning(LightningConfig),
    /// Mamba, `mamba`.
    Mamba(MambaConfig),
    /// Mamba 2, `mamba`.
    Mamba2(Mamba2Config),
    /// Attention and Mamba 2 beside each other.
    Joint(JointConfig),
    /// A real-gated linear recurrent unit, `recurrent`.
    RgLru(RgLruConfig),
    /// A part of a layer of RWKV 7, `attn` or `ffn`.
    Rwkv(RwkvConfig),
    /// Attention to a window and to pooled positions before it, `self_attn`.
    Pooled(PooledAttentionConfig),
    /// None; nor is there a norm before it.
    Absent,
}

impl Mixer {
    /// Its softmax attention, if it has one.
    pub fn attention(&self) -> Option<&AttentionConfig> {
        match self {
            Self::Attention(attention) | Self::Joint(JointConfig { attention, .. }) => Some(attention),
            Self::CrossAttention(_)
            | Self::DeltaNet(_)
            | Self::GatedConv(_)
            | Self::Mamba(_)
            | Self::KeyConv(_)
            | Self::Lightning(_)
            | Self::Mamba2(_)
            | Self::Mla(_)
            | Self::Pooled(_)
            | Self::RgLru(_)
            | Self::Rwkv(_)
            | Self::Linear(_)
            | Self::Absent => None,
        }
    }
}

/// The feed-forward network of a layer.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedForward {
    /// One gated network for all tokens, `mlp`.
    Dense(DenseConfig),
    /// One without a gate for all tokens, `mlp`.
    Plain(PlainConfig),
    /// Many networks, of which each token uses a few, `mlp`.
    Moe(MoeConfig),
    /// One projection, `mlp.linear`.
    Linear(LinearConfig),
    /// The same over latents, `mlp`.
    LatentMoe(LatentMoeConfig),
    /// Experts of text and experts of images, `mlp`.
    ModalMoe(ModalMoeConfig),
    /// A network beside experts that are added after the next layer, `mlp`.
    Shortcut(ShortcutConfig),
    /// None; nor is there a norm before it.
    Absent,
}

impl FeedForward {
    /// One network without biases.
    pub(crate) fn dense(width: u32, activation: Activation) -> Self {
        Self::Dense(DenseConfig {
            width,
            activation,
            bias: false,
        })
    }
}

impl DecoderConfig {
    /// The attention of every layer that has one, to be changed.
    pub(crate) fn attention(&mut self) -> impl Iterator<Item = &mut AttentionConfig> {
        self.layers.iter_mut().filter_map(|layer| match &mut layer.mixer {
            Mixer::Attention(attention) | Mixer::Joint(JointConfig { attention, .. }) => Some(attention),
            Mixer::CrossAttention(_)
            | Mixer::DeltaNet(_)
            | Mixer::GatedConv(_)
            | Mixer::Mamba(_)
            | Mixer::KeyConv(_)
            | Mixer::Lightning(_)
            | Mixer::Mamba2(_)
            | Mixer::Mla(_)
            | Mixer::Pooled(_)
            | Mixer::RgLru(_)
            | Mixer::Rwkv(_)
            | Mixer::Linear(_)
            | Mixer::Absent => None,
        })
    }

    /// Changes the attention of every layer that has one.
    pub(crate) fn each_attention(&mut self, change: impl FnMut(&mut AttentionConfig)) {
        self.attention().for_each(change);
    }

    /// Changes every layer.
    pub(crate) fn each_layer(&mut self, change: impl FnMut(&mut LayerConfig)) {
        self.layers.iter_mut().for_each(change);
    }

    /// True if layers look at images beside the text.
    pub(crate) fn has_cross_attention(&self) -> bool {
        self.layers
            .iter()
            .any(|layer| matches!(layer.mixer, Mixer::CrossAttention(_)))
    }

    /// Leaves out the layers that look at images, which text passes by.
    pub(crate) fn leave_out_cross_attention(&mut self) {
        for (number, layer) in (0..).zip(std::mem::take(&mut self.layers)) {
            match layer.mixer {
                Mixer::CrossAttention(_) => self.absent_layers.push(number),
                _ => self.layers.push(layer),
            }
        }
    }

    /// Streams between the layers.
    pub(crate) fn streams(&self) -> u32 {
        self.hyper.map_or(1, |hyper| hyper.streams)
    }

    /// Refuses shapes that no model has, so that nothing overflows or is allocated for them.
    pub(crate) fn check(self) -> Result<Self, Error> {
        check_width("hidden_size", self.hidden_size.into())?;
        check_width("vocab_size", self.vocab_size.into())?;
        check_width("max_position_embeddings", self.most_positions.unwrap_or(1).into())?;
        check_nonzero("max_position_embeddings", self.most_positions.unwrap_or(1))?;
        check_range("num_loops", self.loops, 1..=MOST_LOOPS)?;
        self.cycles.map_or(Ok(()), |cycles| cycles.check(self.layers.len()))?;
        self.hyper.map_or(Ok(()), |hyper| hyper.check(self.hidden_size))?;
        let layers = self.layers.len() as u64;
        self.embedder.map_or(Ok(()), |embedder| embedder.check(layers))?;
        self.ngrams.map_or(Ok(()), |ngrams| ngrams.check())?;
        if let Some(runs) = &self.layer_runs {
            runs.check(self.layers.len(), self.hidden_size, self.streams())?;
        }
        check_nonzero("loop_window_size", self.loop_window.unwrap_or(1))?;
        check_width("loop_window_size", self.loop_window.unwrap_or(1).into())?;
        for layer in &self.layers {
            match &layer.mixer {
                Mixer::Attention(attention) => attention.check(&self.ropes)?,
                Mixer::DeltaNet(delta_net) => delta_net.check()?,
                Mixer::Mla(latent) => latent.check(&self.ropes)?,
                Mixer::Pooled(pooled) => pooled.check(&self.ropes)?,
                Mixer::CrossAttention(cross) => cross.check()?,
                Mixer::GatedConv(conv) => conv.check(self.hidden_size)?,
                Mixer::KeyConv(conv) => conv.check()?,
                Mixer::Lightning(lightning) => lightning.check(&self.ropes)?,
                Mixer::Mamba(mamba) => mamba.check()?,
                Mixer::Mamba2(mamba) => mamba.check()?,
                Mixer::Joint(joint) => {
                    joint.attention.check(&self.ropes)?;
                    joint.mamba.check()?;
                }
                Mixer::RgLru(unit) => unit.check()?,
                Mixer::Rwkv(part) => part.check()?,
                Mixer::Linear(_) | Mixer::Absent => {}
            }
            match &layer.feed_forward {
                FeedForward::Dense(dense) => check_width("intermediate_size", 2 * u64::from(dense.width))?,
                FeedForward::Plain(plain) => check_width("intermediate_size", plain.width.into())?,
                FeedForward::Moe(experts) => experts.check()?,
                FeedForward::LatentMoe(latent) => latent.check()?,
                FeedForward::ModalMoe(modal) => modal.check()?,
                FeedForward::Shortcut(shortcut) => {
                    check_width("ffn_hidden_size", 2 * u64::from(shortcut.dense.width))?;
                    shortcut.experts.check()?;
                }
                FeedForward::Linear(_) | FeedForward::Absent => {}
            }
        }
        let numbers = [
            ("rms_norm_eps", Some(self.norm.eps)),
            ("post_norm_eps", self.norm.eps_after),
            ("embedding_multiplier", self.embedding_multiplier),
            ("residual_multiplier", self.residual_multiplier),
            ("logits_scaling", self.logits_divisor),
            ("final_logit_softcapping", self.logits_softcap),
        ];
        match numbers
            .into_iter()
            .find(|(_, number)| number.is_some_and(|number| number.is_nan() || number <= 0.0))
        {
            Some((field, number)) => unusable(field, format!("{} is not above 0", number.unwrap_or_default())),
            None => Ok(self),
        }
    }
}
